"""One peer in a process of its own: loads a model, then times single inferences whenever it is asked.

    peer.py NAME MODEL INPUTS     NAME is a key of PEERS, INPUTS a folder with input_<i>.npy in the order of the model's inputs

Each line of standard input, `WARMUP RUNS`, is answered by a line of JSON: {'times': [ms, ...]}. The outputs of the first answer
are left in INPUTS as NAME_<i>.npy.
"""
import json
import os
import pathlib
import sys
import time

import numpy as np

THREADS = 2


def onnxruntime(model, inputs):
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.intra_op_num_threads = THREADS
    options.inter_op_num_threads = 1
    session = ort.InferenceSession(str(model), options, providers=['CPUExecutionProvider'])
    feed = {v.name: x for v, x in zip(session.get_inputs(), inputs)}
    return lambda: session.run(None, feed)


def openvino(model, inputs, precision='f32'):
    import openvino as ov
    core = ov.Core()
    network = core.read_model(model)
    network.reshape({value.any_name: list(x.shape) for value, x in zip(network.inputs, inputs)})
    compiled = core.compile_model(network, 'CPU', {'INFERENCE_NUM_THREADS': THREADS, 'PERFORMANCE_HINT': 'LATENCY',
                                                   'INFERENCE_PRECISION_HINT': precision})
    request = compiled.create_infer_request()
    for i, x in enumerate(inputs):
        request.set_input_tensor(i, ov.Tensor(x))

    def infer():
        request.infer()
        return [request.get_output_tensor(i).data for i in range(len(compiled.outputs))]
    return infer


def torch_eager(model, inputs, channels_last=False, compiled=False):
    import torch
    import torch_network
    torch.set_num_threads(THREADS)
    values = [torch.from_numpy(x) for x in inputs]
    network = torch_network.Network(str(model)).eval()
    if channels_last:
        network = network.to(memory_format=torch.channels_last)
        values = [v.to(memory_format=torch.channels_last) if v.dim() == 4 else v for v in values]
    if compiled:
        network = torch.compile(network)

    def infer():
        with torch.inference_mode():
            return [y.numpy() for y in network(*values)]
    return infer


def tinygrad(model, inputs):
    os.environ['DEV'] = 'CL'  # its OpenCL back end, before it is imported
    from tinygrad import Device, Tensor, TinyJit
    from tinygrad.nn.onnx import OnnxRunner
    network = OnnxRunner(str(model))
    for name, value in network.graph_values.items():
        if isinstance(value, Tensor):  # a weight: on the device once, not in each run
            network.graph_values[name] = value.to(Device.DEFAULT).contiguous().realize()
    run = TinyJit(lambda *values: [y.realize() for y in network(dict(zip(network.graph_inputs, values))).values()])
    return lambda: [y.numpy() for y in run(*[Tensor(x).realize() for x in inputs])]


PEERS = {
    'onnxruntime': onnxruntime,
    'openvino': openvino,
    'openvino_bf16': lambda model, inputs: openvino(model, inputs, 'bf16'),
    'tinygrad': tinygrad,
    'torch': torch_eager,
    'torch_channels_last': lambda model, inputs: torch_eager(model, inputs, channels_last=True),
    'torch_inductor': lambda model, inputs: torch_eager(model, inputs, compiled=True),
}


def main():
    name, model, folder = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    answers = os.fdopen(os.dup(1), 'w', buffering=1)  # what libraries print goes to standard error
    os.dup2(2, 1)
    inputs, written = [], False
    while (folder / f'input_{len(inputs)}.npy').exists():
        inputs.append(np.load(folder / f'input_{len(inputs)}.npy'))
    infer = PEERS[name](model, inputs)
    for line in sys.stdin:
        warmup, runs = map(int, line.split())
        for _ in range(warmup):
            infer()
        times = []
        for _ in range(runs):
            start = time.perf_counter()
            outputs = infer()
            times.append((time.perf_counter() - start) * 1e3)
        if not written:
            for i, value in enumerate(outputs):
                np.save(folder / f'{name}_{i}.npy', np.asarray(value))
            written = True
        print(json.dumps({'times': times}), file=answers)


if __name__ == '__main__':
    main()
