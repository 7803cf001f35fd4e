#!/usr/bin/env python3
"""Write every different convolution of some models as a model of its own, to be compared alone.

    bench/cpu_peers/run --layers build/cpu_peers/layers --dim N=1 tests/models/resnet50 tests/models/vgg16
    bench/cpu_peers/run build/cpu_peers/layers/*.onnx --rounds 3 --seconds 0.1

Two convolutions with the same attributes and shapes are one file, named channels x size - filters x kernel and what is not
the default; its weights and its bias are random. What a network fuses with a convolution is left out.
"""
import pathlib

import numpy as np
import onnx
from onnx import helper, numpy_helper, shape_inference


def shapes_of(graph):
    """Shape of every value that has a type, all dimensions numbers."""
    found = {}
    for value in [*graph.input, *graph.value_info, *graph.output]:
        found[value.name] = [d.dim_value for d in value.type.tensor_type.shape.dim]
    return found


def attributes_of(node):
    return {a.name: helper.get_attribute_value(a) for a in node.attribute}


def name_of(x, w, attributes):
    """Such as 64x56x56-128x3x3-stride2."""
    parts = ['x'.join(map(str, x[1:])), 'x'.join(map(str, [w[0]] + w[2:]))]
    for key, plain in (('strides', 1), ('dilations', 1), ('group', 1)):
        values = np.ravel(attributes.get(key, plain))
        if (values != plain).any():
            parts.append(f"{key.rstrip('s')}{values[0]}")
    pads = attributes.get('pads', [0] * 2 * len(w[2:]))
    if any(pad != (taps - 1) // 2 for pad, taps in zip(pads, w[2:] * 2)):
        parts.append('pads' + 'x'.join(map(str, pads)))
    return '-'.join(parts)


def layer(name, node, x, w, has_bias, opset):
    random = np.random.default_rng(9000)
    weights = random.uniform(-1, 1, w).astype(np.float32) / np.float32(np.sqrt(np.prod(w[1:])))
    constants = [numpy_helper.from_array(weights, 'w')]
    if has_bias:
        constants.append(numpy_helper.from_array(random.uniform(-1, 1, w[0]).astype(np.float32), 'b'))
    copy = helper.make_node('Conv', ['x'] + [c.name for c in constants], ['y'], **attributes_of(node))
    graph = helper.make_graph([copy], name, [helper.make_tensor_value_info('x', onnx.TensorProto.FLOAT, x)],
                              [helper.make_tensor_value_info('y', onnx.TensorProto.FLOAT, None)], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', opset)])
    model.ir_version = 8
    return shape_inference.infer_shapes(model)


def write_layers(model_path, dims, folder):
    """Writes the convolutions of one model; `dims` binds its symbols. Returns the files, those that were there already too."""
    model = onnx.load(str(model_path), load_external_data=False)
    for value in model.graph.input:
        for d in value.type.tensor_type.shape.dim:
            if d.dim_param:
                d.dim_value = dims[d.dim_param]
    del model.graph.value_info[:]
    shapes = shapes_of(shape_inference.infer_shapes(model).graph)
    weights = {c.name: list(c.dims) for c in model.graph.initializer}
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for node in model.graph.node:
        if node.op_type != 'Conv' or node.input[1] not in weights:
            continue
        x, w = shapes[node.input[0]], weights[node.input[1]]
        file = pathlib.Path(folder) / (name_of(x, w, attributes_of(node)) + '.onnx')
        if not file.exists():
            onnx.save(layer(file.stem, node, x, w, len(node.input) > 2, model.opset_import[0].version), str(file))
        files.append(file)
    return files
