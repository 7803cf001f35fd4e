#!/usr/bin/env python3
"""Time oclc and other systems on the same models, the same inputs and the same two cores, alternately in one run.

    bench/cpu_peers/run tests/models/resnet50 --dim N=1 --json build/cpu_peers/resnet50.json
    bench/cpu_peers/run tests/models/bert_base tests/models/gpt2 --dim N=1,8 --dim T=128 --svg build/cpu_peers/all.svg
    bench/cpu_peers/run tests/models/gpt2_decode --dim N=1 --dim T=1 --dim P=128 --dim S=129       a token after 128 (S = P + T)
    bench/cpu_peers/run tests/models/vgg16 --peers onnxruntime --seconds 1 --dim N=1      one network, one peer
    bench/cpu_peers/run tests/models/resnet18 --peers torch,torch_channels_last,torch_inductor --dim N=1      (convolutional ones)

    bench/cpu_peers/run tests/models/resnet50 tests/models/vgg16 --layers build/cpu_peers/layers --dim N=1      then time those:
    bench/cpu_peers/run build/cpu_peers/layers/*.onnx --rounds 3 --seconds 0.1

MODEL is an ONNX file or a folder with model.onnx; a folder with weights.json gets its weights generated beside the programs.
Inputs come from cases.json beside the model, else uniform in [-1, 1). Every peer is one process that stays; each round runs
oclc (a fresh process) and every peer for about --seconds, in turns, in the opposite order every second round. `ratio` is the
median over the rounds of the best peer's median time divided by oclc's: above 1 oclc is faster. `spread` is its smallest and
largest round. `roofline` is oclc's rate over the rate of fused multiply-adds on registers, measured once by
oclc-fma-peak; operations are those of the direct algorithms, so that Winograd may pass it.
"""
import argparse
import importlib.metadata
import json
import os
import pathlib
import statistics
import subprocess
import sys

import chart
import comparison
import layers
import numpy as np
from comparison import ROOT, THREADS, fail, run
from peer import PEERS

HERE = pathlib.Path(__file__).resolve().parent
PACKAGE_OF = {'onnxruntime': 'onnxruntime', 'openvino': 'openvino', 'openvino_bf16': 'openvino', 'tinygrad': 'tinygrad'}


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


def extent(d, dims):
    """An integer, a symbol, or a sum of these such as P+1."""
    if isinstance(d, int):
        return d
    terms = [t.strip() for t in d.split('+')]
    for t in terms:
        if not t.isdigit() and t not in dims:
            fail(f"the inputs of this model want --dim {t}=...; bound are {' '.join(f'{k}={v}' for k, v in dims.items()) or 'none'}")
    return sum(int(t) if t.isdigit() else dims[t] for t in terms)


def input_value(spec, dims):
    """One input as an array; `spec` is an entry of cases.json."""
    shape = [extent(d, dims) for d in spec['shape']]
    count = int(np.prod(shape))
    if 'const' in spec:
        flat = np.full(count, spec['const'])
    elif 'arange' in spec:
        flat = np.tile(np.arange(shape[-1]) + extent(spec['arange'], dims), count // shape[-1])
    elif 'limit' in spec:
        unit = uniform(spec['seed'], count, 0, 1).astype(np.float64)
        flat = np.minimum((unit * spec['limit']).astype(np.int64), spec['limit'] - 1)
    else:
        flat = uniform(spec['seed'], count, spec['lo'], spec['hi'])
    return flat.astype(spec['dtype']).reshape(shape)


def signature(model):
    """What makes the inputs' values, the inputs' shapes, and the outputs' names."""
    import onnxruntime
    session = onnxruntime.InferenceSession(str(model), providers=['CPUExecutionProvider'])
    inputs, outputs = session.get_inputs(), [v.name for v in session.get_outputs()]
    cases = model.parent / 'cases.json'
    if cases.exists():
        return {s['name']: s for s in json.loads(cases.read_text())['inputs']}, {v.name: v.shape for v in inputs}, outputs
    specs = {}
    for i, value in enumerate(inputs):
        if value.type != 'tensor(float)':
            fail(f"{model}: input '{value.name}' is {value.type}; wanted cases.json to say its values")
        specs[value.name] = {'dtype': 'float32', 'shape': value.shape, 'seed': 9001 + i, 'lo': -1, 'hi': 1}
    return specs, {v.name: v.shape for v in inputs}, outputs


class Peer:
    """A process of peer.py."""

    def __init__(self, name, model, folder):
        self.name = name
        self.log = open(folder / f'{name}.log', 'w')
        self.process = subprocess.Popen([sys.executable, HERE / 'peer.py', name, model, folder], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.log, text=True)

    def times(self, warmup, runs):
        try:
            print(warmup, runs, file=self.process.stdin, flush=True)
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ''
        if not line:
            fail(f'{self.name} ended; see {self.log.name}')
        return json.loads(line)['times']

    def end(self):
        self.process.stdin.close()
        self.process.wait()


class Oclc:
    name = 'oclc'

    def __init__(self, arguments, plan, folder, inputs, outputs):
        self.command = [arguments.bin / 'oclrun', plan, '--json']
        for i, name in enumerate(inputs):
            self.command += ['--input', f'{name}={folder}/input_{i}.npy']
        self.outputs = [f'{name}={folder}/oclc_{i}.npy' for i, name in enumerate(outputs)]

    def times(self, warmup, runs):
        command = self.command + ['--warmup', warmup + 1, '--runs', runs] + [x for o in self.outputs for x in ('--output', o)]
        self.outputs = []
        latency = json.loads(run(command))['latency_ms']
        return [latency['median']]

    def end(self):
        pass


def difference(folder, peer, count):
    """max |oclc - peer| / max |peer|, the worst output."""
    worst = 0.0
    for i in range(count):
        ours, theirs = np.load(folder / f'oclc_{i}.npy'), np.load(folder / f'{peer}_{i}.npy')
        worst = max(worst, float(np.abs(ours.astype(np.float64) - theirs).max() / max(np.abs(theirs).max(), 1e-30)))
    return worst


def model_file(arguments, given):
    return given.name if given.is_dir() else given.stem, comparison.model_file(arguments.bin, given)


def flops_of(arguments, plan):
    """Floating-point operations of one run, as the plan's launches count them."""
    rows = json.JSONDecoder().raw_decode(run([arguments.bin / 'oclrun', plan, '--random', '--profile=json']))[0]['rows']
    return sum(row['flops'] for row in rows)


def compare(arguments, given, dims, peak):
    name, model = model_file(arguments, given)
    folder = ROOT / 'build/cpu_peers' / name
    folder.mkdir(parents=True, exist_ok=True)
    specs, shapes, outputs = signature(model)
    inputs = list(shapes)
    # The model's own symbols, which cases.json may call otherwise, with what the inputs' sizes come to.
    used = {mine: extent(d, dims) for name in inputs for mine, d in zip(shapes[name], specs[name]['shape']) if isinstance(mine, str)}
    for old in folder.glob('input_*.npy'):
        old.unlink()
    for i, value in enumerate(inputs):
        np.save(folder / f'input_{i}.npy', input_value(specs[value], dims))
    plan = folder / 'plan.bin'
    options = [x for k, v in used.items() for x in ('--dim', f'{k}={v}')] + arguments.oclc_option
    run([arguments.bin / 'oclc', model, '-o', plan] + options)
    sides = [Oclc(arguments, plan, folder, inputs, outputs)] + [Peer(p, model, folder) for p in arguments.peers]
    rounds = []
    runs = {side.name: max(1, round(arguments.seconds * 1e3 / min(side.times(2, 2)))) for side in sides}
    for number in range(arguments.rounds):
        order = sides if number % 2 == 0 else sides[::-1]
        rounds.append({side.name: statistics.median(side.times(1, runs[side.name])) for side in order})
    for side in sides:
        side.end()
    best = {r: min(rounds[r][p] for p in arguments.peers) for r in range(len(rounds))}
    ratios = [best[r] / rounds[r]['oclc'] for r in best]
    ms = {side.name: statistics.median(r[side.name] for r in rounds) for side in sides}
    row = {'model': name, 'dims': used, 'ms': ms, 'ratio': statistics.median(ratios), 'spread': [min(ratios), max(ratios)],
           'rounds': rounds, 'difference': {p: difference(folder, p, len(outputs)) for p in arguments.peers}}
    text = '  '.join(f'{k} {v:8.2f}' for k, v in ms.items())
    if peak:
        row['gflop'] = flops_of(arguments, plan) * 1e-9
        row['roofline'] = row['gflop'] / ms['oclc'] * 1e3 / peak
        text += f"  roofline {row['roofline']:.2f}"
    label = ' '.join([name] + [f'{k}={v}' for k, v in used.items()])
    print(f"{label:28s} ms: {text}  ratio {row['ratio']:.3f} [{row['spread'][0]:.3f} .. {row['spread'][1]:.3f}]"
          f"  differ by {max(row['difference'].values()):.1e}", flush=True)
    plan.unlink()
    return row


def machine(arguments, peak):
    cpu = next((line.split(':', 1)[1].strip() for line in open('/proc/cpuinfo') if line.startswith('model name')), '?')
    commit = subprocess.run(['git', '-C', ROOT, 'rev-parse', '--short', 'HEAD'], capture_output=True, text=True).stdout.strip()
    versions = {p: importlib.metadata.version(PACKAGE_OF.get(p, 'torch')) for p in arguments.peers}
    return {'cpu': cpu, 'cores': THREADS, 'peak_gflops': peak, 'versions': versions, 'commit': commit}


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('models', nargs='+', type=pathlib.Path)
    parser.add_argument('--peers', default='onnxruntime,openvino', help='of ' + ', '.join(PEERS))
    parser.add_argument('--dim', action='append', default=[], metavar='N=1,8',
                        help='bind a symbolic dimension (repeatable); several values: one row each')
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--seconds', type=float, default=0.5, help='of each system in a round')
    parser.add_argument('--bin', type=pathlib.Path, default=ROOT / 'build/release/bin', help='folder of oclc and oclrun')
    parser.add_argument('--oclc-option', action='append', default=[], help='passed to oclc (repeatable)')
    parser.add_argument('--json', type=pathlib.Path, help='write the result there')
    parser.add_argument('--svg', type=pathlib.Path, help='write a bar chart there')
    parser.add_argument('--layers', type=pathlib.Path, metavar='FOLDER',
                        help='time nothing: write each different convolution of the models there, as a model of its own')
    arguments = parser.parse_args()
    arguments.peers = arguments.peers.split(',')
    for name in arguments.peers:
        if name not in PEERS:
            fail(f"wanted peers of {', '.join(PEERS)}, found '{name}'")
    arguments.bin = arguments.bin.resolve()
    return arguments


def bindings(dims):
    """Every combination of the values given with --dim."""
    rows = [{}]
    for dim in dims:
        symbol, values = dim.split('=', 1)
        rows = [row | {symbol: int(v)} for row in rows for v in values.split(',')]
    return rows


def main():
    arguments = parse()
    if arguments.layers:
        files = {f for dims in bindings(arguments.dim) for m in arguments.models
                 for f in layers.write_layers(model_file(arguments, m)[1], dims, arguments.layers)}
        print(f'{len(files)} convolutions in {arguments.layers}')
        return
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:THREADS])
    os.environ['POCL_MAX_PTHREAD_COUNT'] = os.environ['OMP_NUM_THREADS'] = str(THREADS)
    measure = arguments.bin / 'oclc-fma-peak'
    peak = float(run([measure])) if measure.exists() else None
    rows = [compare(arguments, m, dims, peak) for dims in bindings(arguments.dim) for m in arguments.models]
    if len(rows) > 1:
        worst = min(rows, key=lambda row: row['ratio'])
        print(f"{len(rows)} models: ratio {statistics.median(row['ratio'] for row in rows):.3f} (median), least {worst['ratio']:.3f} "
              f"({worst['model']})")
    result = {'schema': 2, 'machine': machine(arguments, peak), 'models': rows}
    for path, text in ((arguments.json, json.dumps(result, indent=1) + '\n'), (arguments.svg, chart.bars(result))):
        if path:
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary = path.with_suffix('.tmp')
            temporary.write_text(text)
            temporary.replace(path)


if __name__ == '__main__':
    main()
