#!/usr/bin/env python3
"""The whole table of oclc beside PyTorch on one GPU, in one run: networks, training steps, tokens, products, convolutions.

    bench/gpu_peers/table                                        every row
    bench/gpu_peers/table forward:resnet50:16 --json rows.json   rows whose name has one of the patterns (regular expressions)
    bench/gpu_peers/table --list

Plans are compiled and their programs built by several processes at once, which then wait, with all they need on the device;
meanwhile other processes try PyTorch's modes, those that may be the fastest once more when all is quiet. Then, row by row,
PyTorch's fastest mode and oclc have stretches of --seconds in turns, --rounds each. Modes: a CUDA graph, with both memory
formats; with --compile torch.compile (reduce-overhead) too; a training step eager; a product called from Python by itself would
be bound by the host, so it is in a graph as well. A line a row: milliseconds of both, medians, and PyTorch's divided by oclc's,
so above 1 oclc is faster. --profile FILE: the launches of each plan that take longest. --until S: no row begins after S
seconds.
"""
import argparse
import concurrent.futures
import fcntl
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import threading
import time

import compare
import comparison
import pytorch_modes
from comparison import ROOT
from pytorch_modes import MLP, set_precision

NETWORKS = ['alexnet', 'vgg16', 'resnet18', 'resnet50', 'googlenet', 'densenet121', 'mobilenet_v2', 'efficientnet_b0']
TRANSFORMERS = [('vit_b_16', 16, 0), ('bert_base', 8, 128), ('gpt2', 8, 512), ('gpt2', 1, 1024)]
TRAINED = ['resnet18', 'alexnet', 'mobilenet_v2', 'vgg16', 'resnet50']
PRODUCTS = ['1024x1024x1024', '2048x2048x2048', '4096x4096x4096', '8192x8192x8192', '1000x1004x1023', '4097x260x2049']
# Channels, size, features, kernel, stride, padding.
LAYERS = {'resnet50': ['3x224x64x7x2x3', '64x56x64x1x1x0', '64x56x64x3x1x1', '64x56x256x1x1x0', '256x56x64x1x1x0',
                       '256x56x128x1x1x0', '128x56x128x3x2x1', '128x28x512x1x1x0', '256x56x512x1x2x0', '512x28x128x1x1x0',
                       '128x28x128x3x1x1', '512x28x256x1x1x0', '256x28x256x3x2x1', '256x14x1024x1x1x0', '512x28x1024x1x2x0',
                       '1024x14x256x1x1x0', '256x14x256x3x1x1', '1024x14x512x1x1x0', '512x14x512x3x2x1', '512x7x2048x1x1x0',
                       '1024x14x2048x1x2x0', '2048x7x512x1x1x0', '512x7x512x3x1x1'],
          'vgg16': ['3x224x64x3x1x1', '64x224x64x3x1x1', '64x112x128x3x1x1', '128x112x128x3x1x1', '128x56x256x3x1x1',
                    '256x56x256x3x1x1', '256x28x512x3x1x1', '512x28x512x3x1x1', '512x14x512x3x1x1']}
TOKENS_OF_DECODE = [128, 1023]
BUILD = ROOT / 'build/gpu_peers'
PEERS_OF_PRODUCTS = 4  # processes
LAST_ROW_SECONDS = 20  # in which what has begun in time is finished


def all_rows():
    """Names of rows, what matters most first."""
    for batch in (16, 64, 1):
        yield from (f'forward:{n}:{batch}:{p}' for n in NETWORKS for p in ('fp32', 'tf32'))
    yield from (f'forward:{n}:{b}:{p}' + f':{t}' * (t > 0) for n, b, t in TRANSFORMERS for p in ('fp32', 'tf32'))
    yield from (f'training:{n}:{b}:fp32' for b in (16, 64) for n in TRAINED)
    yield from (f'decode:gpt2_decode:1:fp32:{t}' for t in TOKENS_OF_DECODE)
    yield 'forward:mlp:{}:fp32'.format(MLP[0])
    yield from (f'product:gemm:{p}' for p in PRODUCTS)
    for network, layers in LAYERS.items():
        yield from (f'product:{way}:16x{c}' for c in layers for way in ('forward', 'data', 'weights') if way != 'data' or c[:2] != '3x')


class Row:
    def __init__(self, name):
        self.name = name
        self.work, *rest = name.split(':')
        self.precision = 'fp32'
        if self.work == 'product':
            self.kind, sizes = rest
            self.sizes = [int(n) for n in sizes.split('x')]
        else:
            self.network, self.batch, self.precision = rest[0], int(rest[1]), rest[2]
            self.tokens = int(rest[3]) if len(rest) > 3 else None


def mlp_model(folder):
    """An ONNX model of the multi-layer perceptron, which has no folder of its own."""
    import numpy
    import onnx
    from onnx import TensorProto, helper, numpy_helper
    folder.mkdir(parents=True, exist_ok=True)
    random, nodes, constants, value = numpy.random.default_rng(1), [], [], 'x'
    for i, (inner, features) in enumerate(zip(MLP[1:], MLP[2:])):
        constants.append(numpy_helper.from_array(random.standard_normal((features, inner), numpy.float32) * inner**-0.5, f'w{i}'))
        constants.append(numpy_helper.from_array(random.standard_normal(features, numpy.float32), f'b{i}'))
        nodes.append(helper.make_node('Gemm', [value, f'w{i}', f'b{i}'], [f'h{i}'], transB=1))
        value = f'h{i}'
        if features != MLP[-1]:
            nodes.append(helper.make_node('Relu', [value], [f'r{i}']))
            value = f'r{i}'
    x = helper.make_tensor_value_info('x', TensorProto.FLOAT, ['N', MLP[1]])
    y = helper.make_tensor_value_info(value, TensorProto.FLOAT, ['N', MLP[-1]])
    model = helper.make_model(helper.make_graph(nodes, 'mlp', [x], [y], constants), opset_imports=[helper.make_opsetid('', 17)])
    model.ir_version = 8
    onnx.save(model, folder / 'model.onnx')


class Models:
    """Files of models with their weights, each made once."""

    def __init__(self, binaries):
        self.binaries, self.locks, self.lock = binaries, {}, threading.Lock()

    def file(self, name):
        with self.lock:
            lock = self.locks.setdefault(name, threading.Lock())
        built = self.binaries.parent / 'models' / name
        with lock:
            if name == 'mlp':
                if not (built / 'model.onnx').exists():
                    mlp_model(built)
            else:
                folder = ROOT / 'tests/models' / name
                if not (folder / 'weights.json').exists():
                    return folder / 'model.onnx'
                comparison.run([self.binaries / 'oclc-fill-weights', folder, '--out', built, '--check'])
            return built / 'model.onnx'


class Ours:
    """A process of oclc that has prepared a row and waits for its turns."""

    def __init__(self, row, models, arguments):
        self.row, self.plan, device = row, None, ['--device', arguments.device]
        if row.work == 'product':
            command = ['oclc-bench-products', *device, '--turns', '--precision', row.precision, row.name.split(':', 1)[1]]
        else:
            self.plan = BUILD / (row.name.replace(':', '_') + '.plan')
            entry = self.compile(models.file(row.network), arguments)
            command = ['bench_megakernel', self.plan, *device, '--turns', '--runs', 10, '--top', 16, *entry]
        words = [arguments.bin / command[0], '--seconds', arguments.seconds, *command[1:]]
        self.process = subprocess.Popen([str(w) for w in words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        stderr=subprocess.PIPE, bufsize=1)
        if self.process.stdout.readline() != 'ready\n':
            raise RuntimeError(self.process.stderr.read()[-500:])
        if self.plan:
            self.plan.unlink()  # its process has it open

    def compile(self, model, arguments):
        """Compiles the plan, and returns the options of its run."""
        row = self.row
        dims, options, entry = [f'N={row.batch}'] + ([f'T={row.tokens}'] if row.tokens else []), list(arguments.oclc_option), []
        if row.work == 'training':
            words = ','.join(['sgd', *(f'{k}={v}' for k, v in compare.OPTIMIZER.items())])
            options += ['--train', 'cross_entropy', '--optimizer', words]
            entry = ['--entry', 'train_step']
        elif row.work == 'decode':
            dims = [f'N={row.batch}', f'{compare.COMING}=1']
            entry = [f'{compare.KEPT}={row.tokens - 1}', f'{compare.READ}={row.tokens}']
        target = ['--target', arguments.target] if arguments.target else []
        comparison.run([arguments.bin / 'oclc', model, '-o', self.plan, '--precision', row.precision, *target,
                        *[word for d in dims for word in ('--dim', d)], *options])
        return entry

    def turn(self):
        self.process.stdin.write('turn\n')
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def end(self):
        """What it prints at its end: the profile, or the error."""
        if self.row.work == 'product':
            self.process.stdin.write('\n')
        self.process.stdin.close()
        text = self.process.stdout.read()
        self.process.wait()
        return text


def state_of_device(known=[-1e9, None]):
    """Clock and temperature, asked for every ten seconds: it takes long."""
    if time.perf_counter() - known[0] > 10:
        known[:] = time.perf_counter(), compare.device_state()
    return known[1]


class Peer:
    """A process of PyTorch with the fastest mode of each of some rows, which waits for their turns."""

    def __init__(self, names, arguments, ready_by):
        options = ['--seconds', arguments.seconds, '--modes', arguments.modes, '--ready-by', ready_by, '--peer-process',
                   *(['--compile'] * arguments.compile)]
        self.process = subprocess.Popen([sys.executable, __file__, *map(str, options), *names], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, bufsize=1)
        self.names = names
        self.known = {}

    def answer(self):
        for line in self.process.stdout:
            if line.startswith('{'):  # libraries print as well
                return json.loads(line)
        raise RuntimeError('the process of PyTorch ended')

    def prepare(self):
        for name in self.names:
            self.known[name] = self.answer()

    def turn(self, name):
        self.process.stdin.write(name + '\n')
        self.process.stdin.flush()
        answer = self.answer()
        self.known[name].update({k: v for k, v in answer.items() if k != 'ms'})
        return answer['ms']

    def end(self):
        self.process.kill()
        self.process.wait()


def peer_process(names, arguments):
    """What a Peer's process does: a line of JSON for each row, then one for each name on standard input."""
    import torch
    torch.manual_seed(0)
    torch.set_num_threads(1)
    torch.backends.cudnn.benchmark = True
    rows = {name: Row(name) for name in names}
    functions, chosen, begin = {}, {}, time.perf_counter()
    BUILD.mkdir(parents=True, exist_ok=True)
    with open(BUILD / 'peers.lock', 'w') as lock:
        torch.zeros(1, device='cuda')
        for name, row in rows.items():
            try:
                compiled = pytorch_modes.compiled_modes(row, arguments) if arguments.compile else []
                # One of them at a time, since PyTorch chooses its kernels by their times.
                fcntl.flock(lock, fcntl.LOCK_EX)
                if time.perf_counter() - begin > arguments.ready_by:
                    raise RuntimeError('PyTorch was not ready')
                functions[name], tried = pytorch_modes.fastest(row, compiled, arguments)
                found = {'modes': tried}
            except Exception as problem:  # the other rows still have their turns
                found = {'problem': str(problem)[-500:]}
            torch.cuda.synchronize()
            torch.cuda.empty_cache()
            fcntl.flock(lock, fcntl.LOCK_UN)
            print(json.dumps(found), flush=True)
    for line in sys.stdin:
        row = rows[line.strip()]
        set_precision(row)
        answer = {}
        with torch.set_grad_enabled(row.work == 'training'):
            if row.name not in chosen:  # host and device are quiet now
                quiet = {
                    name: compare.milliseconds(function, arguments.seconds, warm_runs=3, least_runs=1)
                    for name, function in functions[row.name].items()
                }
                mode = min(quiet, key=quiet.get)
                chosen[row.name] = functions[row.name][mode]
                answer = {'mode': mode, 'quiet': quiet}
            ms = compare.milliseconds(chosen[row.name], arguments.seconds, warm_runs=1, least_runs=1)
        print(json.dumps({'ms': ms, **answer}), flush=True)


def shares(rows, arguments):
    """Rows by the process that runs PyTorch's side of them: where it compiles, one each."""
    parts = {}
    for i, row in enumerate(rows):
        part = f'{row.work} {row.network}' if row.work != 'product' else f'product {i % PEERS_OF_PRODUCTS}'
        if arguments.compile:
            part = row.name
        parts.setdefault(part, []).append(row.name)
    return parts.values()


def measure(row, ours, peer, arguments, profile):
    known = peer.known.get(row.name, {'problem': 'PyTorch was not ready'})
    if 'problem' in known:
        raise RuntimeError(known['problem'])
    # What a driver does once for a process that has waited should not be in the turns; PyTorch's first one chooses its mode.
    ours.turn()
    peer.turn(row.name)
    pairs = [(peer.turn(row.name), ours.turn()) for _ in range(arguments.rounds)]
    text = ours.end()
    if profile and row.work != 'product':
        profile.write(f'## {row.name}\n{text}')
        profile.flush()
    error = re.search(r'error (\S+)', text)
    theirs_ms, ours_ms = (statistics.median(side) for side in zip(*pairs))
    ratios = [a / b for a, b in pairs]
    return {'row': row.name, 'oclc_ms': ours_ms, 'peer_ms': theirs_ms, 'ratio': theirs_ms / ours_ms, 'rounds': pairs,
            'spread': [min(ratios), max(ratios)], **known, 'error': error and error.group(1), 'device': state_of_device()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('patterns', nargs='*')
    parser.add_argument('--list', action='store_true', help='names of rows, and nothing else')
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--seconds', type=float, default=0.5, help='of a timed stretch')
    parser.add_argument('--until', type=float, default=1e9, help='seconds from the start after which no row begins')
    parser.add_argument('--ready-by', type=float, default=1e9, help='seconds from the start after which no row is waited for')
    parser.add_argument('--peer-process', action='store_true', help=argparse.SUPPRESS)
    parser.add_argument('--jobs', type=int, default=max(1, (os.cpu_count() or 2) - 2), help='plans prepared at once')
    parser.add_argument('--ahead', type=int, default=32, help='rows that may be ready before their turns: they hold memory')
    parser.add_argument('--compile', action='store_true', help='torch.compile too, which takes minutes a network')
    parser.add_argument('--modes', default='', help='a pattern: modes of PyTorch that are tried (default: all)')
    parser.add_argument('--device', default='gpu')
    parser.add_argument('--target', help='of oclc (default: the device)')
    parser.add_argument('--bin', type=pathlib.Path, default=ROOT / 'build/release/bin')
    parser.add_argument('--oclc-option', action='append', default=[], help='passed to oclc (repeatable)')
    parser.add_argument('--json', type=pathlib.Path, help='write the rows there')
    parser.add_argument('--profile', type=pathlib.Path, help='write the launches of plans that take longest there')
    arguments = parser.parse_args()
    # In the order of the patterns; each row once.
    names = arguments.patterns if arguments.peer_process else list(
        dict.fromkeys(n for p in arguments.patterns or [''] for n in all_rows() if re.search(p, n)))
    if arguments.list:
        print('\n'.join(names))
        return
    if not names:
        sys.exit('table: error: no row has one of the patterns; --list names them')
    if arguments.peer_process:
        return peer_process(names, arguments)
    begin = time.perf_counter()
    arguments.bin = arguments.bin.resolve()
    BUILD.mkdir(parents=True, exist_ok=True)
    rows, models, done = [Row(n) for n in names], Models(arguments.bin), []
    room = threading.Semaphore(arguments.ahead)
    profile = arguments.profile.open('w') if arguments.profile else None

    def is_late():
        return time.perf_counter() - begin >= arguments.until

    def prepare(row):
        room.acquire()
        try:
            return None if is_late() or time.perf_counter() - begin >= arguments.ready_by else Ours(row, models, arguments)
        except SystemExit as problem:  # of a program that failed
            raise RuntimeError(str(problem)) from None

    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool, concurrent.futures.ThreadPoolExecutor() as peer_pool:
        prepared = [pool.submit(prepare, row) for row in rows]
        for first in range(0, len(rows), arguments.ahead):
            group = list(zip(rows, prepared))[first:first + arguments.ahead]
            left = max(0.0, arguments.ready_by - time.perf_counter() + begin)
            peers = [Peer(names, arguments, left) for names in shares([row for row, _ in group], arguments)]
            peer_of = {name: peer for peer in peers for name in peer.names}
            asked = [peer_pool.submit(peer.prepare) for peer in peers]
            # The turns begin when the device is quiet: what is late then is left out.
            late = concurrent.futures.wait(asked + [p for _, p in group], left + LAST_ROW_SECONDS)[1]
            for peer, answer in zip(peers, asked):
                if answer in late:
                    peer.end()
            print(f'# {len(group)} rows ready after {time.perf_counter() - begin:.0f} s', flush=True)
            for row, ours in group:
                try:
                    ours = ours.result() if ours not in late else None
                    if not ours or is_late():
                        print(f'{row.name}: left out, no time', flush=True)
                        continue
                    r = measure(row, ours, peer_of[row.name], arguments, profile)
                    done.append(r)
                    print(f"{row.name:36s} oclc {r['oclc_ms']:9.4f} ms   PyTorch {r['peer_ms']:9.4f} ms   {r['ratio']:5.2f} "
                          f"[{r['spread'][0]:.2f} .. {r['spread'][1]:.2f}]  {r['mode']}" + f"  error {r['error']}" * bool(r['error']) +
                          '  (' + ', '.join(f'{m} {t:.3f}' for m, t in r['quiet'].items()) + ')',
                          flush=True)
                except (RuntimeError, ValueError, OSError) as problem:
                    print(f'{row.name}: {problem}', flush=True)
                if arguments.json:
                    machine = {**comparison.machine('torch'), 'gpu': state_of_device()}
                    comparison.write_json(arguments.json, {'machine': machine, 'rows': done})
            for peer in peers:
                peer.end()
            # Only now: what is prepared runs on the device too, and would take time from those whose turn it is.
            room.release(len(group))


if __name__ == '__main__':
    main()
