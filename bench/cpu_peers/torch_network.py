"""An ONNX graph of a convolutional network as a PyTorch module, operator by operator, for inference."""
import onnx
import torch
from torch.nn import functional


def constant(attributes):
    return torch.from_numpy(onnx.numpy_helper.to_array(attributes['value']).copy())


def convolution(a, x, w, b=None):
    before, after = halves(a)
    if before != after:
        raise ValueError('asymmetric padding of a Conv')
    return functional.conv2d(x, w, b, a.get('strides', 1), before, a.get('dilations', 1), a.get('group', 1))


def halves(a):
    pads = a.get('pads', [0] * 4)
    return pads[:2], pads[2:]


def max_pool(a, x):
    (top, left), (bottom, right) = halves(a)
    if a.get('ceil_mode', 0):
        return functional.max_pool2d(x, a['kernel_shape'], a.get('strides'), (top, left), ceil_mode=True)
    x = functional.pad(x, (left, right, top, bottom), value=float('-inf'))
    return functional.max_pool2d(x, a['kernel_shape'], a.get('strides'))


def average_pool(a, x):
    return functional.avg_pool2d(x, a['kernel_shape'], a.get('strides'), halves(a)[0], bool(a.get('ceil_mode', 0)),
                                 bool(a.get('count_include_pad', 0)))


def gemm(a, x, w, b=None):
    if a.get('transA', 0) or a.get('alpha', 1.0) != 1.0 or a.get('beta', 1.0) != 1.0:
        raise ValueError('Gemm with alpha, beta or a transposed left operand')
    return functional.linear(x, w if a.get('transB', 0) else w.T, b)


OPERATORS = {
    'Add': lambda a, x, y: x + y,
    'AveragePool': average_pool,
    'BatchNormalization': lambda a, x, s, b, m, v: functional.batch_norm(x, m, v, s, b, False, 0.0, a.get('epsilon', 1e-5)),
    'Clip': lambda a, x, lo, hi: torch.clamp(x, lo.item(), hi.item()),
    'Concat': lambda a, *x: torch.cat(x, a['axis']),
    'Conv': convolution,
    'Flatten': lambda a, x: torch.flatten(x, a.get('axis', 1)),
    'Gemm': gemm,
    'GlobalAveragePool': lambda a, x: functional.adaptive_avg_pool2d(x, 1),
    'MaxPool': max_pool,
    'Mul': lambda a, x, y: x * y,
    'Relu': lambda a, x: functional.relu(x),
    'Sigmoid': lambda a, x: torch.sigmoid(x),
}


class Network(torch.nn.Module):
    def __init__(self, path):
        super().__init__()
        graph = onnx.load(path).graph
        self.tensors = torch.nn.ParameterDict()
        self.names, self.scalars, self.steps = {}, {}, []
        for i, tensor in enumerate(graph.initializer):
            value = torch.from_numpy(onnx.numpy_helper.to_array(tensor).copy())
            self.keep(tensor.name, value, f't{i}')
        for node in graph.node:
            attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
            if node.op_type == 'Constant':
                self.scalars[node.output[0]] = constant(attributes)
                continue
            if node.op_type not in OPERATORS:
                raise ValueError(f'operator {node.op_type} is not among those of torch_network.py')
            self.steps.append((OPERATORS[node.op_type], attributes, list(node.input), node.output[0]))
        self.inputs = [v.name for v in graph.input if v.name not in self.names]
        self.outputs = [v.name for v in graph.output]

    def keep(self, name, value, key):
        if value.is_floating_point():
            self.tensors[key] = torch.nn.Parameter(value, requires_grad=False)
            self.names[name] = key
        else:
            self.scalars[name] = value

    def forward(self, *inputs):
        values = dict(zip(self.inputs, inputs)) | self.scalars
        for name, key in self.names.items():
            values[name] = self.tensors[key]
        for function, attributes, operands, result in self.steps:
            values[result] = function(attributes, *[values[o] for o in operands if o])
        return [values[o] for o in self.outputs]
