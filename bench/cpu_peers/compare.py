#!/usr/bin/env python3
"""Time oclc and ONNX Runtime on the same models, the same inputs and the same two cores, alternately in one run.

    bench/cpu_peers/run tests/models/resnet50 --dim N=1 --rounds 7 --json build/cpu_peers/resnet50.json

MODEL is an ONNX file or a folder with model.onnx; a folder with weights.json gets its weights generated under build/models.
Inputs come from cases.json beside the model, else uniform in [-1, 1). Each round starts a fresh process of each system, in
the order AB BA AB ...; a process warms up, then times single inferences. `ratio` is the median over the rounds of
oclc's median time divided by ONNX Runtime's, so below 1 oclc is faster; `spread` is the smallest and largest of the rounds.
"""
import json
import pathlib
import statistics
import time

import comparison
import numpy as np
from comparison import ROOT, THREADS, run


def uniform(seed, count, lo, hi):
    """The numbers of tools/fill_weights/uniform.h."""
    with np.errstate(over='ignore'):
        z = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0xBF58476D1CE4E5B9)
        z += np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    u = (z >> np.uint64(40)).astype(np.float32) * np.float32(1 / (1 << 24))
    return np.float32(lo) + (np.float32(hi) - np.float32(lo)) * u


def input_value(spec, dims):
    """One input as an array; `spec` is an entry of cases.json."""
    shape = [dims[d] if isinstance(d, str) else d for d in spec['shape']]
    count = int(np.prod(shape))
    if 'const' in spec:
        flat = np.full(count, spec['const'])
    elif 'arange' in spec:
        first = spec['arange']
        flat = np.tile(np.arange(shape[-1]) + (dims[first] if isinstance(first, str) else first), count // shape[-1])
    elif 'limit' in spec:
        unit = uniform(spec['seed'], count, 0, 1).astype(np.float64)
        flat = np.minimum((unit * spec['limit']).astype(np.int64), spec['limit'] - 1)
    else:
        flat = uniform(spec['seed'], count, spec['lo'], spec['hi'])
    return flat.astype(spec['dtype']).reshape(shape)


def session_of(model):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(str(model), options, providers=['CPUExecutionProvider'])


def input_specs(model):
    cases = model.parent / 'cases.json'
    if cases.exists():
        return json.loads(cases.read_text())['inputs']
    specs = []
    for i, value in enumerate(session_of(model).get_inputs()):
        if value.type != 'tensor(float)':
            comparison.fail(f"{model}: input '{value.name}' is {value.type}; wanted cases.json to say its values")
        specs.append({'name': value.name, 'dtype': 'float32', 'shape': value.shape, 'seed': 9001 + i, 'lo': -1, 'hi': 1})
    return specs


def peer_process(arguments, model):
    """Prints ONNX Runtime's latencies and leaves its outputs in the folder of the inputs."""
    folder = arguments.inputs
    session = session_of(model)
    feed = {v.name: np.load(folder / f'input_{i}.npy') for i, v in enumerate(session.get_inputs())}
    for _ in range(arguments.warmup):
        outputs = session.run(None, feed)
    latencies = []
    for _ in range(arguments.runs):
        start = time.perf_counter()
        outputs = session.run(None, feed)
        latencies.append((time.perf_counter() - start) * 1e3)
    for i, value in enumerate(outputs):
        np.save(folder / f'peer_{i}.npy', value)
    print(json.dumps({'median': statistics.median(latencies), 'min': min(latencies)}))


def time_oclc(arguments, plan, folder, inputs, outputs):
    """Latency {median, min} in ms, from oclrun's JSON."""
    command = [arguments.bin / 'oclrun', plan, '--warmup', arguments.warmup, '--runs', arguments.runs, '--json']
    for i, name in enumerate(inputs):
        command += ['--input', f'{name}={folder}/input_{i}.npy']
    for i, name in enumerate(outputs):
        command += ['--output', f'{name}={folder}/oclc_{i}.npy']
    return json.loads(run(command))['latency_ms']


def difference(folder, count):
    """max |oclc - peer| / max |peer|, the worst output."""
    worst = 0.0
    for i in range(count):
        ours, theirs = np.load(folder / f'oclc_{i}.npy'), np.load(folder / f'peer_{i}.npy')
        worst = max(worst, float(np.abs(ours.astype(np.float64) - theirs).max() / max(np.abs(theirs).max(), 1e-30)))
    return worst


def compare(arguments, given):
    source = given if given.is_dir() else given.parent
    name = source.name if given.is_dir() else given.stem
    model = source / 'model.onnx' if given.is_dir() else given
    if (source / 'weights.json').exists():
        built = arguments.bin.parent / 'models' / name
        run([arguments.bin / 'oclc-fill-weights', source, '--out', built, '--check'])
        if (source / 'cases.json').exists():
            (built / 'cases.json').write_bytes((source / 'cases.json').read_bytes())
        model = built / model.name
    folder = ROOT / 'build/cpu_peers' / name
    folder.mkdir(parents=True, exist_ok=True)
    dims = {k: int(v) for k, v in (d.split('=', 1) for d in arguments.dim)}
    specs = {s['name']: s for s in input_specs(model)}
    session = session_of(model)
    inputs, outputs = [v.name for v in session.get_inputs()], [v.name for v in session.get_outputs()]
    del session
    for i, value in enumerate(inputs):
        np.save(folder / f'input_{i}.npy', input_value(specs[value], dims))
    plan = folder / 'plan.bin'
    run([arguments.bin / 'oclc', model, '-o', plan] + [x for d in arguments.dim for x in ('--dim', d)] + arguments.oclc_option)

    ours, peers, row = comparison.take_turns(name, arguments.rounds,
                                             lambda: time_oclc(arguments, plan, folder, inputs, outputs),
                                             lambda: comparison.run_peer(arguments, model, '--inputs', folder))
    row |= {'dims': dims, 'oclc_min_ms': min(r['min'] for r in ours), 'peer_min_ms': min(r['min'] for r in peers),
            'difference': difference(folder, len(outputs))}
    print(f"{comparison.line_of(row, 'onnxruntime')}   outputs differ by {row['difference']:.1e}", flush=True)
    return row


if __name__ == '__main__':
    parser = comparison.parser_of(__doc__, rounds=7, warmup=3, runs=10)
    parser.add_argument('--dim', action='append', default=[], metavar='N=1', help='bind a symbolic dimension (repeatable)')
    parser.add_argument('--inputs', type=pathlib.Path, help=comparison.HIDDEN)
    comparison.main(parser, 'onnxruntime', compare, peer_process)
