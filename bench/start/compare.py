#!/usr/bin/env python3
"""Time from the start of a process to its first answer, cold (all caches empty) and warm, beside other systems.

    bench/start/run --json build/start/all.json                      the whole table: networks, first training steps, what is compiled
    bench/start/run --json build/start/all.json --minutes 20         goes on where that ended; samples that are there stay
    bench/start/run --json build/start/all.json --show               prints the table of the samples that are there
    bench/start/run --only resnet18,digits --peers '' --rounds 2     some rows, oclc alone; needs no package
    bench/start/run MODEL... --dim N=1                               other models
    bench/start/run MODEL --train cross_entropy --shape input=4x3x224x224      the first training step of another model

Every sample is a process of its own, with all that it starts, and the sides of a row take turns:

  cold      oclrun with the caches of oclc and of the driver in an empty folder; what it leaves compiling is killed
  settle    once: a cold start that runs until the session has the optimized kernels; its caches serve the next two sides
  warm      oclrun with those caches
  shipped   once caches are there: a plan with the driver's binaries, under --use-binaries, with empty caches
  others    a process of a peer, which imports its package, loads the model and answers once (its own caches empty)

Of a training step the compiler's own time counts too, as its user waits for it, and the answer is the first step's. Sides that take
minutes (settle of training, torch_inductor, shipped) are sampled once, behind three rounds of the others. With --minutes no sample begins
later; the table says how many each median is of. A side that fails is told and not tried again.
"""
import argparse
import json
import os
import pathlib
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import comparison
import networks
import tables
from processes import Failed, adopt_orphans, timed

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent
EARLY_ROUNDS = 3
LONG_S = 600


def caches(folder):
    """Environment with all caches below the folder."""
    for name in ('pocl', 'oclc', 'nvidia', 'inductor'):
        (folder / name).mkdir(parents=True, exist_ok=True)
    return {'POCL_CACHE_DIR': str(folder / 'pocl'), 'OCLC_CACHE_DIR': str(folder / 'oclc'), 'CUDA_CACHE_PATH': str(folder / 'nvidia'),
            'TORCHINDUCTOR_CACHE_DIR': str(folder / 'inductor'), 'TMPDIR': str(folder)}


class Start:
    """One row's processes."""

    def __init__(self, arguments, row):
        self.arguments, self.row = arguments, row
        self.folder = arguments.work / row.name.replace(' ', '_')
        self.folder.mkdir(parents=True, exist_ok=True)
        self.plan, self.kept, self.model = self.folder / 'plan.bin', self.folder / 'caches', None

    def model_file(self):
        if self.model is None:
            made = self.row.model
            self.model = made(self.arguments, self.folder) if callable(made) else comparison.model_file(self.arguments.bin, made, timed)
        return self.model

    def compile(self):
        """The plan, made anew, and what that took."""
        model = self.model_file()
        command = [self.arguments.bin / 'oclc', model, '-o', self.plan, '-q', '--device', self.arguments.device]
        return timed(command + self.row.options() + self.arguments.oclc_option, limit_s=LONG_S)[0]

    def command(self, *more):
        if self.row.command:
            return [self.arguments.bin / self.row.command[0], *self.row.command[1:]]
        entry = ['--entry', self.row.entry] if self.row.entry else []
        return [self.arguments.bin / 'oclrun', self.plan, '--random=1', '-q', '--device', self.arguments.device, *entry, *more]

    def with_plan(self):
        """Of a training step every sample compiles, of others the first."""
        if self.row.command:
            return {}
        if not self.plan.exists() or self.row.train:
            compiled = self.compile()
            return {'compile_ms': compiled['ms'], 'compile_processor_ms': compiled['processor_ms']}
        return {}

    def cold(self):
        sample = self.with_plan()
        with tempfile.TemporaryDirectory(dir=self.folder) as empty:
            sample |= timed(self.command(), caches(pathlib.Path(empty)), LONG_S)[0]
        sample['ms'] += sample.get('compile_ms', 0) if self.row.train else 0
        return sample

    def settle(self):
        shutil.rmtree(self.kept, ignore_errors=True)
        if self.row.command:
            sample = timed(self.command(), caches(self.kept), LONG_S, until_rest=True)[0]
            (self.kept / 'settled').touch()
            return sample
        if not self.plan.exists():
            self.compile()
        sample, text = timed(self.command('--json', '--explain-start'), caches(self.kept), LONG_S, until_rest=True)
        (self.kept / 'settled').touch()
        start = json.loads(text)['start']
        spans = {s['what']: s['ms'] for s in start['spans']}
        return sample | {'steady_after_ms': start['optimized_ms'], 'steady_ms': spans.get('steady run', spans['second run']),
                         'spans': spans, 'builds': start['builds'], 'texts': self.texts()}

    def texts(self):
        """Of the kernels' text: bytes, kernels, functions, and functions that differ in more than their names."""
        with tempfile.TemporaryDirectory(dir=self.folder) as emitted:
            command = [self.arguments.bin / 'oclc', self.model_file(), '-o', '/dev/null', '-q', '--device', self.arguments.device, '--emit-dir', emitted]
            timed(command + self.row.options() + self.arguments.oclc_option, limit_s=LONG_S)
            return tables.counted(f.read_text() for f in sorted(pathlib.Path(emitted).glob('*.cl')))

    def settled(self):
        return (self.kept / 'settled').exists()

    def warm(self):
        return timed(self.command(), caches(self.kept), LONG_S)[0]

    def shipped(self):
        with tempfile.TemporaryDirectory(dir=self.folder) as empty:
            folder = pathlib.Path(empty)
            plan = folder / 'shipped.bin'
            timed(self.command('--write-binaries', plan), caches(folder / 'first'), LONG_S)
            own, self.plan = self.plan, plan
            try:
                return timed(self.command('--use-binaries'), caches(folder / 'second'), LONG_S)[0] | {'plan_bytes': plan.stat().st_size}
            finally:
                self.plan = own

    def peer(self, name):
        wish = {'peer': name, 'model': str(self.model_file()), 'train': bool(self.row.train), 'dims': self.row.dims, 'shapes': self.row.shapes,
                'values': self.row.values}
        with tempfile.TemporaryDirectory(dir=self.folder) as empty:
            environment = caches(pathlib.Path(empty)) | {'PYTHONPATH': f'{HERE.parent}/peers:{HERE.parent}/cpu_peers'}
            sample, text = timed([sys.executable, HERE / 'peer_start.py', json.dumps(wish)], environment, LONG_S)
        return sample | json.loads(text.splitlines()[-1])

    def sample(self, side):
        return getattr(self, side)() if side in ('cold', 'settle', 'warm', 'shipped') else self.peer(side)


def sides_of(arguments, row):
    """Names, and whether each is sampled in every round."""
    sides = [('cold', True), ('settle', False)] + [('warm', True)]
    if row.kind == 'inference' and arguments.shipped:
        sides.append(('shipped', False))
    if row.kind != 'program':
        sides += [(p, p != 'torch_inductor') for p in arguments.peers if row.kind == 'inference' or p.startswith('torch')]
    return sides


def tasks(arguments, rows):
    """Row, side and the number of samples that there are to be."""
    quick = [(row, side) for row in rows for side, often in sides_of(arguments, row) if often or (side == 'settle' and row.kind != 'training')]
    late = [(row, side) for row in rows for side, _ in sides_of(arguments, row) if (row, side) not in quick]
    times = lambda side, number: 1 if side == 'settle' else number
    for number in range(1, min(EARLY_ROUNDS, arguments.rounds) + 1):
        yield from ((row, side, times(side, number)) for row, side in quick)
    yield from ((row, side, 1) for row, side in late)
    for number in range(min(EARLY_ROUNDS, arguments.rounds) + 1, arguments.rounds + 1):
        yield from ((row, side, times(side, number)) for row, side in quick)
    yield from ((row, 'warm', number) for number in range(1, arguments.rounds + 1) for row in rows)  # of what settled late


def measure(arguments, rows, document):
    starts = {row.name: Start(arguments, row) for row in rows}
    deadline = time.monotonic() + arguments.minutes * 60
    for row, side, number in tasks(arguments, rows):
        entry, start = document['rows'].setdefault(row.name, {'samples': {}, 'failed': {}}), starts[row.name]
        taken = entry['samples'].setdefault(side, [])
        if side == 'settle' and not start.settled():
            taken.clear()  # its caches are gone
        if len(taken) >= number or side in entry['failed'] or (side == 'warm' and not start.settled()):
            continue
        if time.monotonic() > deadline:
            print(f'start: note: {arguments.minutes:g} minutes are over; the same command goes on', file=sys.stderr)
            break
        take(start, side, taken, entry['failed'])
        if arguments.json:
            write_json(arguments.json, document)


def take(start, side, taken, failed):
    """One more sample, or why there is none."""
    try:
        taken.append(start.sample(side))
        text = f"{taken[-1]['ms'] * 1e-3:7.2f} s"
    except (Failed, OSError, LookupError, ImportError, ValueError, subprocess.SubprocessError) as error:
        failed[side] = str(error) if isinstance(error, Failed) else f'{type(error).__name__}: {error}'
        text = f'failed: {failed[side]}'
    print(f'{start.row.name:20s} {side:14s} {len(taken)}  {text}', file=sys.stderr, flush=True)


def write_json(path, document):
    """The file is whole, or as it was."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix('.tmp')
    temporary.write_text(json.dumps(document, indent=1) + '\n')
    temporary.replace(path)


def machine(arguments):
    cpu = next((line.split(':', 1)[1].strip() for line in open('/proc/cpuinfo') if line.startswith('model name')), platform.processor())
    commit = subprocess.run(['git', '-C', ROOT, 'rev-parse', '--short', 'HEAD'], capture_output=True, text=True).stdout.strip()
    return {'cpu': cpu, 'cores': len(os.sched_getaffinity(0)), 'commit': commit, 'device': arguments.device}


def programs(arguments):
    """What tells one build from another."""
    files = [arguments.bin / 'oclc', arguments.bin / 'oclrun', *sorted((arguments.bin.parent / 'lib').glob('liboclc_runtime.so.*'))]
    return ' '.join(f'{f.name} {f.stat().st_size} {f.stat().st_mtime_ns}' for f in files if f.exists() and not f.is_symlink())


def clean_work(arguments):
    """Plans and caches of other programs are of no use."""
    told = arguments.work / 'programs.txt'
    if not told.exists() or told.read_text() != programs(arguments):
        shutil.rmtree(arguments.work, ignore_errors=True)
        arguments.work.mkdir(parents=True)
        told.write_text(programs(arguments))


def rows_of(arguments):
    if not arguments.models:
        wanted = [w for w in arguments.only.split(',') if w]
        rows = [r for r in networks.ROWS if not wanted or any(w in r.name for w in wanted)]
        if not rows:
            sys.exit(f"start: error: --only: no row has '{arguments.only}' in its name; there are {', '.join(r.name for r in networks.ROWS)}")
        return rows
    dims = dict(d.split('=') for d in arguments.dim)
    shapes = {k: tuple(map(int, v.split('x'))) for k, v in (s.split('=') for s in arguments.shape)}
    name = lambda m: m.name if m.is_dir() else m.stem
    train = ('--train', arguments.train) if arguments.train else ()
    return [networks.Row(name(m), m.resolve(), dims, shapes, train=train, entry='train_step' if train else '') for m in arguments.models]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('models', nargs='*', type=pathlib.Path, metavar='MODEL')
    parser.add_argument('--only', default='', help='parts of names of rows, separated by commas')
    parser.add_argument('--dim', action='append', default=[], metavar='N=1', help='of MODEL')
    parser.add_argument('--shape', action='append', default=[], metavar='x=1x3x224x224', help='of an input of MODEL')
    parser.add_argument('--train', metavar='LOSS', help="MODEL's first training step instead of the first inference")
    parser.add_argument('--peers', default='onnxruntime,openvino,torch,torch_inductor', help='separated by commas; empty: none')
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--minutes', type=float, default=25, help='after which no sample begins')
    parser.add_argument('--no-shipped', dest='shipped', action='store_false', help='no plans with binaries')
    parser.add_argument('--device', default='cpu')
    parser.add_argument('--bin', type=pathlib.Path, default=ROOT / 'build/release/bin', help='of the programs to measure')
    parser.add_argument('--work', type=pathlib.Path, default=ROOT / 'build/start/work', help='folder of plans and caches')
    parser.add_argument('--oclc-option', action='append', default=[], help='for oclc')
    parser.add_argument('--json', type=pathlib.Path, help='every sample; what it holds already is kept')
    parser.add_argument('--show', action='store_true', help='measure nothing')
    arguments = parser.parse_args()
    arguments.peers = [p for p in arguments.peers.split(',') if p]
    arguments.bin, arguments.work = arguments.bin.resolve(), arguments.work.resolve()
    rows = rows_of(arguments)
    document = json.loads(arguments.json.read_text()) if arguments.json and arguments.json.exists() else {'rows': {}}
    document = {'schema': 2, 'machine': machine(arguments), 'programs': programs(arguments)} | document
    if not arguments.show:
        if document['programs'] != programs(arguments):
            sys.exit(f"start: error: {arguments.json} holds samples of other programs ({document['programs']}); name another file")
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends what is being timed as well
        adopt_orphans()
        clean_work(arguments)
        measure(arguments, rows, document)
    print(tables.markdown(rows, document, arguments.peers))


if __name__ == '__main__':
    main()
