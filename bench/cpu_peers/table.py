#!/usr/bin/env python3
"""Time several plans of each network beside the other systems, alternately, on two of a machine's cores.

    run_here table.py models/* --dim N=1 --dim T=128 --json table.json      the columns of docs/performance.md for AMX
    run_here table.py models/resnet50 --plan old=old/bin:--target=cpu-amx --plan new=--target=cpu-amx --peers openvino

Where cores are many and the machine is lent by the second, what is not timed runs on all of them first: weights, plans, and a run of
each plan, by which PoCL's cache holds its programs. Then every network has its rounds, as in compare.py: oclc (a fresh process)
with each plan and every peer, in the opposite order every second round. A plan is NAME=[FOLDER_OF_PROGRAMS:]OPTIONS, and is
compared with the fastest of its peers in each round: those whose names end in _bf16 if its own does, else the others.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import statistics

import numpy as np
from compare import Oclc, Peer, bindings, difference, extent, input_value, model_file, signature
from comparison import ROOT, THREADS, fail, run
from peer import PEERS

PLANS = ['amx_fp32=--target=cpu-amx', 'amx_fast=--target=cpu-amx --precision=fast', 'avx512=--target=cpu',
         'amx_bf16=--target=cpu-amx --precision=bf16']


class Plan:
    """One plan of one network, and the programs that made and run it."""

    def __init__(self, text, arguments):
        match = re.fullmatch(r'(\w+)=(?:([^:\s]+):)?(.*)', text)
        if not match:
            fail(f"--plan: wanted NAME=[FOLDER:]OPTIONS, found '{text}'")
        self.name, folder, options = match.groups()
        self.bin = pathlib.Path(folder).resolve() if folder else arguments.bin
        self.options = options.split()
        # The library of the runtime that belongs to these programs, wherever they were built.
        self.prefix = ['env', f'LD_LIBRARY_PATH={self.bin.parent / "lib"}']
        self.peers = [p for p in arguments.peers if p.endswith('_bf16') == self.name.endswith('_bf16')]


class Network:
    """What is known of a network before anything is timed."""

    def __init__(self, arguments, given, dims):
        self.name, self.model = model_file(arguments, given)
        self.folder = ROOT / 'build/cpu_peers' / self.name
        self.folder.mkdir(parents=True, exist_ok=True)
        specs, shapes, self.outputs = signature(self.model)
        self.inputs = list(shapes)
        self.dims = {mine: extent(d, dims) for n in self.inputs for mine, d in zip(shapes[n], specs[n]['shape']) if isinstance(mine, str)}
        for i, name in enumerate(self.inputs):
            np.save(self.folder / f'input_{i}.npy', input_value(specs[name], dims))

    def side(self, plan):
        """The plan, compiled; its first run leaves its programs in PoCL's cache, and its outputs."""
        file, outputs = self.folder / f'{plan.name}.bin', self.folder / plan.name
        outputs.mkdir(exist_ok=True)
        dims = [x for k, v in self.dims.items() for x in ('--dim', f'{k}={v}')]
        run([*plan.prefix, plan.bin / 'oclc', self.model, '-o', file, '--quiet', *dims, *plan.options])
        side = Oclc(argparse.Namespace(bin=plan.bin), file, self.folder, self.inputs, self.outputs)
        side.name, side.peers, side.command = plan.name, plan.peers, plan.prefix + side.command
        side.profiled = [*plan.prefix, plan.bin / 'oclrun', file, '--random', '--runs', 1, '--profile=json', '--quiet']
        side.outputs = [f'{name}={outputs}/oclc_{i}.npy' for i, name in enumerate(self.outputs)]
        side.times(0, 1)
        return side


def prepare(arguments, plans):
    """Networks with their sides, made on all cores."""
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        dims = bindings(arguments.dim)
        networks = list(pool.map(lambda given: Network(arguments, given, dims[0]), arguments.models))
        made = [[pool.submit(network.side, plan) for plan in plans] for network in networks]
        return [(network, [side.result() for side in sides]) for network, sides in zip(networks, made)]


def rounds_of(arguments, sides):
    """Median milliseconds of each side by round."""
    runs = {side.name: max(2, round(arguments.seconds * 1e3 / min(side.times(1, 2)))) for side in sides}
    rounds = []
    for number in range(arguments.rounds):
        order = sides if number % 2 == 0 else sides[::-1]
        rounds.append({side.name: statistics.median(side.times(1, runs[side.name])) for side in order})
    return rounds


def ratios_of(rounds, side):
    return [min(r[p] for p in side.peers) / r[side.name] for r in rounds] if side.peers else []


def error_of(network, side):
    """The plan's difference from its first peer, whose outputs lie beside the inputs."""
    for i in range(len(network.outputs)):
        (network.folder / f'oclc_{i}.npy').write_bytes((network.folder / side.name / f'oclc_{i}.npy').read_bytes())
    return difference(network.folder, side.peers[0], len(network.outputs)) if side.peers else 0.0


def timed(arguments, network, sides):
    peers = [Peer(name, network.model, network.folder) for name in arguments.peers]
    rounds = rounds_of(arguments, sides + peers)
    for peer in peers:
        peer.end()
    ms = {name: statistics.median(r[name] for r in rounds) for name in rounds[0]}
    print(f"{network.name:16s} {'  '.join(f'{k} {v:.2f}' for k, v in ms.items())}", flush=True)
    plans = {}
    for side in sides:
        ratios = ratios_of(rounds, side) or [float('nan')]
        plans[side.name] = {'ratio': statistics.median(ratios), 'spread': [min(ratios), max(ratios)],
                            'least_ms': min(r[side.name] for r in rounds), 'difference': error_of(network, side)}
        p = plans[side.name]
        print(f"    {side.name:12s} {p['ratio']:.2f} ({p['spread'][0]:.2f} to {p['spread'][1]:.2f})  least {p['least_ms']:.2f} ms"
              f"  differs by {p['difference']:.1e}", flush=True)
    return {'model': network.name, 'dims': network.dims, 'ms': ms, 'plans': plans, 'rounds': rounds}


def profile(arguments, network, side):
    """Least time of each launch over several processes, the slowest first: other work on the machine only ever adds to it."""
    least = {}
    for _ in range(arguments.profile_runs):
        found = json.JSONDecoder().raw_decode(run(side.profiled))[0]['rows']
        for i, row in enumerate(sorted(found, key=lambda row: (row['kernel'], row['nodes']))):
            if i not in least or row['time_us'] < least[i]['time_us']:
                least[i] = row
    rows = sorted(least.values(), key=lambda row: -row['time_us'])
    file = arguments.profile_to / f'{network.name}_{side.name}.txt'
    file.write_text(''.join(f"{r['time_us']:9.1f} us {r['gflops']:8.1f} GFLOP/s  {r['kernel']}  {r['nodes']}\n" for r in rows))


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('models', nargs='+', type=pathlib.Path)
    parser.add_argument('--plan', action='append', default=[], metavar='NAME=[FOLDER:]OPTIONS')
    parser.add_argument('--peers', default='onnxruntime,openvino,openvino_bf16', help='of ' + ', '.join(PEERS))
    parser.add_argument('--dim', action='append', default=[], metavar='N=1')
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--seconds', type=float, default=0.2, help='of each side in a round')
    parser.add_argument('--jobs', type=int, default=os.cpu_count(), help='plans made at a time')
    parser.add_argument('--bin', type=pathlib.Path, default=ROOT / 'build/release/bin', help='folder of oclc and oclrun')
    parser.add_argument('--profile', default='', metavar='NETWORK,...', help='write the launches of these')
    parser.add_argument('--profile-plans', default='amx_fp32', metavar='NAME,...', help='with these plans')
    parser.add_argument('--profile-runs', type=int, default=6)
    parser.add_argument('--profile-to', type=pathlib.Path, default=pathlib.Path('.'), metavar='FOLDER')
    parser.add_argument('--json', type=pathlib.Path)
    arguments = parser.parse_args()
    arguments.bin = arguments.bin.resolve()
    arguments.peers = [p for p in arguments.peers.split(',') if p]
    return arguments


def main():
    arguments = parse()
    os.environ['POCL_MAX_PTHREAD_COUNT'] = os.environ['OMP_NUM_THREADS'] = str(THREADS)
    os.environ['LD_LIBRARY_PATH'] = str(arguments.bin.parent / 'lib')
    made = prepare(arguments, [Plan(text, arguments) for text in arguments.plan or PLANS])
    print('prepared', flush=True)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:THREADS])
    peak = [float(run([arguments.bin / 'oclc-fma-peak']))]
    rows = [timed(arguments, network, sides) for network, sides in made]
    peak.append(float(run([arguments.bin / 'oclc-fma-peak'])))
    print(f'multiply-adds before and after: {peak[0]:.0f} and {peak[1]:.0f} GFLOP/s', flush=True)
    for network, sides in made:
        for side in sides if network.name in arguments.profile.split(',') else []:
            if side.name in arguments.profile_plans.split(','):
                profile(arguments, network, side)
    if arguments.json:
        cpu = next((line.split(':', 1)[1].strip() for line in open('/proc/cpuinfo') if line.startswith('model name')), '?')
        arguments.json.write_text(json.dumps({'schema': 1, 'cpu': cpu, 'peak_gflops': peak, 'models': rows}, indent=1) + '\n')


if __name__ == '__main__':
    main()
