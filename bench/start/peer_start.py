"""What a process of a peer does: imports its package, loads the model, answers once. Its argument is a document of JSON."""
import importlib.util
import json
import pathlib
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent


def inputs_of(wish):
    """Zeros, of the model's own types, and what the document gives."""
    import numpy as np
    import onnx
    graph = onnx.load(wish['model'], load_external_data=False).graph
    known = {i.name for i in graph.initializer}
    inputs = []
    for value in (v for v in graph.input if v.name not in known):
        tensor = value.type.tensor_type
        shape = wish['shapes'].get(value.name) or [d.dim_value or int(wish['dims'].get(d.dim_param, 1)) for d in tensor.shape.dim]
        inputs.append(np.full(shape, wish['values'].get(value.name, 0), onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)))
    return inputs


def training_peers():
    """bench/training_peers/compare.py."""
    file = HERE.parent / 'training_peers/compare.py'
    sys.path.insert(0, str(file.parent))
    spec = importlib.util.spec_from_file_location('training_peers', file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def first_step(wish):
    """A function that takes a training step."""
    import torch
    peers = training_peers()
    torch.set_num_threads(peers.THREADS)
    tokens = 'T' in wish['dims']
    if tokens:
        from gpt import Gpt
        network = Gpt(wish['model'])
        x = torch.zeros((int(wish['dims']['N']), int(wish['dims']['T'])), dtype=torch.int64)
        labels = torch.zeros(x.numel(), dtype=torch.int64)
        optimizer = torch.optim.AdamW(network.parameters, **peers.ADAMW)
    else:
        network = peers.Network(wish['model'])
        x = torch.from_numpy(inputs_of(wish)[0])
        labels = torch.zeros(len(x), dtype=torch.int64)
        optimizer = torch.optim.SGD(network.parameters, **peers.SGD)
    call = torch.compile(network.__call__) if wish['peer'] == 'torch_inductor' else network

    def step():
        torch.nn.functional.cross_entropy(call(x).flatten(0, -2), labels).backward()
        optimizer.step()
    return step


def main():
    wish = json.loads(sys.argv[1])
    if wish['train']:
        import torch  # noqa: F401, its import is no part of loading
        begin = time.perf_counter()
        first_step(wish)()
    else:
        import peer
        inputs = inputs_of(wish)
        __import__({'torch_inductor': 'torch'}.get(wish['peer'], wish['peer']))
        begin = time.perf_counter()
        peer.PEERS[wish['peer']](wish['model'], inputs)()
    print(json.dumps({'load_ms': (time.perf_counter() - begin) * 1e3}))


if __name__ == '__main__':
    main()
