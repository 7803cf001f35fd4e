#!/usr/bin/env python3
"""Time from the start of a process to its first answer: oclc cold (all caches empty), warm, and other systems beside it.

    bench/start/run tests/models/resnet50 tests/models/mobilenet_v2 --dim N=1 --json build/start/all.json
    bench/start/run tests/models/* --dim N=1 --dim T=64 --peers ''                  oclc alone; needs no package
    bench/start/run tests/models/resnet18 --train cross_entropy --shape input=4x3x224x224 --peers ''      the first training step

Every sample is a process of its own, in turns: oclrun with the caches of oclc and of the driver in an empty folder (cold), then with
what that one left there (warm), then a process of each peer, which imports its package, loads the model and answers once; of
those `load_ms` leaves the import out. With --train the compiler's own time counts too, as its user waits for it, and the answer is the first
training step's. `steady after`: when the session took the optimized kernels, 0 where it began with them; `steady`: a run with those. Medians of --rounds.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent


def fail(message):
    sys.exit(f'start: error: {message}')


def run(command, **environment):
    """Seconds that the command took, and what it printed; its failure ends the program."""
    begin = time.perf_counter()
    done = subprocess.run([str(c) for c in command], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          env=dict(os.environ, **environment))
    if done.returncode != 0:
        fail(f'{" ".join(map(str, command))} ended with {done.returncode}:\n{done.stderr}')
    return time.perf_counter() - begin, done.stdout


def model_file(arguments, given):
    source = given if given.is_dir() else given.parent
    model = source / 'model.onnx' if given.is_dir() else given
    if (source / 'weights.json').exists() and not (source / 'model.weights').exists():
        built = arguments.bin.parent / 'models' / source.name
        run([arguments.bin / 'oclc-fill-weights', source, '--out', built, '--check'])
        if not (built / 'model.onnx').exists():
            shutil.copy(source / 'model.onnx', built)
        model = built / model.name
    return source.name if given.is_dir() else given.stem, model


def symbols_of(arguments, plan):
    _, text = run([arguments.bin / 'oclc', 'info', plan, '--json'])
    return {s['name'] for s in json.loads(text)['symbols']}


def oclrun(arguments, plan, dims, caches):
    """One process of oclrun: wall time, and what it says of its start."""
    command = [arguments.bin / 'oclrun', plan, '--random=1', '--json', '--explain-start', '--device', arguments.device]
    command += [x for d in dims for x in ('--dim', d)] + (['--entry', 'train_step'] if arguments.train else [])
    seconds, text = run(command, POCL_CACHE_DIR=str(caches / 'pocl'), OCLC_CACHE_DIR=str(caches / 'oclc'),
                        CUDA_CACHE_PATH=str(caches / 'nvidia'))
    document = json.loads(text)
    spans = {s['what']: s['ms'] for s in document['start']['spans']}
    later = ('second run', 'runs until the optimized kernels are compiled', 'steady run')
    after = sum(spans[w] for w in later if w in spans) + document['latency_ms']['mean'] * document['latency_ms']['runs']
    return {'ms': seconds * 1e3 - after, 'processor_ms': document['start']['processor_ms'],
            'steady_ms': spans.get('steady run', spans['second run']), 'optimized_ms': document['start']['optimized_ms'],
            'builds': document['start']['builds'], 'spans': spans}


def peer_process(name, model, shapes):
    """What a process of a peer does."""
    import numpy as np
    import peer
    begin = time.perf_counter()
    inputs = [np.load(f) for f in sorted(pathlib.Path(shapes).glob('input_*.npy'), key=lambda f: int(f.stem[6:]))]
    peer.PEERS[name](model, inputs)()
    print(json.dumps({'load_ms': (time.perf_counter() - begin) * 1e3}))


def peer_inputs(model, dims, folder):
    import numpy as np
    import onnx
    values = dict(d.split('=') for d in dims)
    graph = onnx.load(model, load_external_data=False).graph
    known = {i.name for i in graph.initializer}
    for number, value in enumerate(v for v in graph.input if v.name not in known):
        tensor = value.type.tensor_type
        shape = [d.dim_value or int(values.get(d.dim_param, 1)) for d in tensor.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        np.save(folder / f'input_{number}.npy', np.zeros(shape, dtype))


def sample(arguments, name, model, folder):
    """One round: cold, warm, each peer."""
    row = {}
    plan = folder / 'plan.bin'
    options = [x for s in arguments.shape for x in ('--shape', s)] + (['--train', arguments.train] if arguments.train else [])
    compile_s, _ = run([arguments.bin / 'oclc', model, '-o', plan, '-q', '--device', arguments.device] + options + arguments.oclc_option)
    known = symbols_of(arguments, plan)
    dims = [d for d in arguments.dim if d.split('=')[0] in known]
    with tempfile.TemporaryDirectory() as caches:
        (pathlib.Path(caches) / 'pocl').mkdir()
        for state in ('cold', 'warm'):
            row[state] = oclrun(arguments, plan, dims, pathlib.Path(caches))
    row['compile_ms'] = compile_s * 1e3
    if arguments.peers:
        peer_inputs(model, arguments.dim, folder)
    for p in arguments.peers:
        seconds, text = run([sys.executable, HERE / 'compare.py', '--peer-process', p, model, folder],
                            PYTHONPATH=f'{HERE.parent}/peers:{HERE.parent}/cpu_peers')
        row[p] = {'ms': seconds * 1e3, **json.loads(text.splitlines()[-1])}
    return row


def report(arguments, name, rounds):
    middle = lambda side, key: statistics.median(r[side][key] for r in rounds)
    compile_ms = statistics.median(r['compile_ms'] for r in rounds)
    first = rounds[0]['cold']
    text = sum(b['text_bytes'] for b in first['builds'])
    kernels = sum(b['kernels'] for b in first['builds'])
    line = (f"{name:18s} cold {middle('cold', 'ms') * 1e-3:6.2f} s (processor {middle('cold', 'processor_ms') * 1e-3:6.2f})  "
            f"steady after {middle('cold', 'optimized_ms') * 1e-3:6.2f} s  warm {middle('warm', 'ms') * 1e-3:5.2f} s  steady {middle('warm', 'steady_ms'):8.2f} ms  "
            f"{len(first['builds'])} programs, {kernels} kernels, {text * 1e-3:.0f} KB  oclc {compile_ms * 1e-3:5.2f} s")
    if arguments.train:
        line += f"  first step {(compile_ms + middle('cold', 'ms')) * 1e-3:6.2f} s"
    for p in arguments.peers:
        line += f"  {p} {middle(p, 'ms') * 1e-3:.2f} s (loaded in {middle(p, 'load_ms') * 1e-3:.2f})"
    print(line, flush=True)
    return {'model': name, 'compile_ms': compile_ms, 'rounds': rounds,
            **{s: {k: middle(s, k) for k in ('ms', 'processor_ms', 'optimized_ms', 'steady_ms')}
               for s in ('cold', 'warm')}, **{p: {'ms': middle(p, 'ms'), 'load_ms': middle(p, 'load_ms')} for p in arguments.peers}}


def main():
    if sys.argv[1:2] == ['--peer-process']:
        return peer_process(*sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('models', nargs='+', type=pathlib.Path, metavar='MODEL')
    parser.add_argument('--dim', action='append', default=[], metavar='N=1')
    parser.add_argument('--shape', action='append', default=[], metavar='x=1x3x224x224', help='for oclc, of an input')
    parser.add_argument('--train', metavar='LOSS', help='the first training step instead of the first inference')
    parser.add_argument('--peers', default='onnxruntime,openvino,torch,torch_inductor', help='separated by commas; empty: none')
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--device', default='cpu')
    parser.add_argument('--bin', type=pathlib.Path, default=ROOT / 'build/release/bin', help='of the programs to measure')
    parser.add_argument('--oclc-option', action='append', default=[], help='for oclc')
    parser.add_argument('--json', type=pathlib.Path, help='every sample')
    arguments = parser.parse_args()
    arguments.peers = [p for p in arguments.peers.split(',') if p]
    arguments.bin = arguments.bin.resolve()
    rows = []
    for given in arguments.models:
        name, model = model_file(arguments, given.resolve())
        with tempfile.TemporaryDirectory() as folder:
            rows.append(report(arguments, name, [sample(arguments, name, model, pathlib.Path(folder)) for _ in range(arguments.rounds)]))
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps({'rows': rows}, indent=1))


if __name__ == '__main__':
    main()
