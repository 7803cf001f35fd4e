"""What the comparisons with other systems share: their options, two cores for both sides, rounds in which the sides take turns,
and the ratio of their times.

A comparison gives main() two functions. compare(arguments, model) prints a line and returns a row of the JSON;
peer_process(arguments, model) is what a fresh process of the other system does: it prints {'median': ms, ...}.
"""
import argparse
import importlib.metadata
import json
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
THREADS = 2
HIDDEN = argparse.SUPPRESS  # help of an option for the other system's process
NAME = pathlib.Path(sys.argv[0]).resolve().parent.name


def fail(message):
    sys.exit(f'{NAME}: error: {message}')


def run(command):
    """What the command prints; its failure ends the program."""
    done = subprocess.run([str(c) for c in command], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        fail(f'{" ".join(map(str, command))} ended with {done.returncode}:\n{done.stderr}')
    return done.stdout


def model_file(programs, given, run=run):
    """The ONNX file of a folder or a file; weights that its folder describes are generated beside the folder of programs, by `run`."""
    source = given if given.is_dir() else given.parent
    model = source / 'model.onnx' if given.is_dir() else given
    if (source / 'weights.json').exists() and not (source / 'model.weights').exists():
        built = programs.parent / 'models' / source.name
        run([programs / 'oclc-fill-weights', source, '--out', built, '--check'])
        for name in ('model.onnx', 'cases.json'):
            if (source / name).exists() and not (built / name).exists():
                shutil.copy(source / name, built)
        model = built / model.name
    return model


def run_peer(arguments, model, *options):
    """One fresh process of the other system."""
    return json.loads(run([sys.executable, sys.argv[0], '--peer-process', model, '--warmup', arguments.warmup, '--runs',
                           arguments.runs, *options]))


def take_turns(name, rounds, ours, theirs):
    """Results {'median': ms} of both sides by round, in the order AB BA AB ..., and the row of what they come to: `ratio` is the
    median over the rounds of our median time divided by theirs, so below 1 we are faster; `spread` is its smallest and largest."""
    results = [], []
    sides = [lambda: results[0].append(ours()), lambda: results[1].append(theirs())]
    for number in range(rounds):
        for side in sides if number % 2 == 0 else reversed(sides):
            side()
        if sys.stderr.isatty():
            print(f'\r{name}: round {number + 1} of {rounds}', end='', file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print('\r\033[K', end='', file=sys.stderr)
    ratios = [a['median'] / b['median'] for a, b in zip(*results)]
    row = {'model': name, 'oclc_ms': statistics.median(r['median'] for r in results[0]),
           'peer_ms': statistics.median(r['median'] for r in results[1]), 'ratio': statistics.median(ratios),
           'spread': [min(ratios), max(ratios)], 'rounds': list(zip(*results))}
    return *results, row


def line_of(row, peer):
    return (f"{row['model']:18s} oclc {row['oclc_ms']:9.2f} ms   {peer} {row['peer_ms']:9.2f} ms   ratio {row['ratio']:6.3f} "
            f"[{row['spread'][0]:.3f} .. {row['spread'][1]:.3f}]")


def machine(peer):
    cpu = next((line.split(':', 1)[1].strip() for line in open('/proc/cpuinfo') if line.startswith('model name')), '?')
    commit = subprocess.run(['git', '-C', ROOT, 'rev-parse', '--short', 'HEAD'], capture_output=True, text=True).stdout.strip()
    return {'cpu': cpu, 'cores': THREADS, 'kernel': platform.release(), peer: importlib.metadata.version(peer), 'commit': commit}


def write_json(path, document):
    """The file is whole, or as it was."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix('.tmp')
    temporary.write_text(json.dumps({'schema': 1} | document, indent=1) + '\n')
    temporary.replace(path)


def parser_of(description, rounds, warmup, runs):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('models', nargs='+', type=pathlib.Path)
    parser.add_argument('--rounds', type=int, default=rounds)
    parser.add_argument('--warmup', type=int, default=warmup)
    parser.add_argument('--runs', type=int, default=runs, help='timed executions a round')
    parser.add_argument('--bin', type=pathlib.Path, default=ROOT / 'build/release/bin', help='folder of oclc and oclrun')
    parser.add_argument('--oclc-option', action='append', default=[], help='passed to oclc (repeatable)')
    parser.add_argument('--json', type=pathlib.Path, help='write the result there')
    parser.add_argument('--peer-process', action='store_true', help=HIDDEN)
    return parser


def main(parser, peer, compare, peer_process):
    arguments = parser.parse_args()
    if arguments.peer_process:
        return peer_process(arguments, arguments.models[0])
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:THREADS])
    os.environ['POCL_MAX_PTHREAD_COUNT'] = str(THREADS)
    arguments.bin = arguments.bin.resolve()
    rows = [compare(arguments, m) for m in arguments.models]
    if arguments.json:
        write_json(arguments.json, {'machine': machine(peer), 'models': rows})
