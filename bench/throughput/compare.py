#!/usr/bin/env python3
"""Samples a second of oclrun --streams --batch-sweep beside OpenVINO's throughput mode, on the same two cores, in turns.

    bench/throughput/run tests/models/resnet50 tests/models/mobilenet_v2 tests/models/bert_base --json build/throughput/all.json
    bench/throughput/run tests/models/resnet50 --batches 1,8 --streams 2 --seconds 1 --rounds 3

Batches 1 to 32 and 1 and 2 streams unless said otherwise; dimensions beside N (T of BERT) are fixed by --dim, T=128 by itself. A stream
is a session with a queue of its own (oclrun), or an inference request of a compiled model with so many streams under
PERFORMANCE_HINT=THROUGHPUT (OpenVINO); both may use both cores. Of each round's two measurements `ratio` is oclc's samples a second
divided by OpenVINO's, the median over the rounds: above 1 oclc is faster. OpenVINO's process is a fresh one each time, as oclrun is.
"""
import json
import pathlib
import statistics
import sys
import time

import comparison

TYPES = {1: 'f4', 6: 'i4', 7: 'i8', 9: '?', 10: 'f2', 11: 'f8'}


def list_of(text):
    return [int(part) for part in text.split(',')]


def dims_of(arguments):
    return {'T': 128} | dict((name, int(value)) for name, value in (text.split('=') for text in arguments.dim))


def symbols_of(model):
    """The names of the dimensions of the model's inputs."""
    import onnx
    graph = onnx.load(model, load_external_data=False).graph
    held = {t.name for t in graph.initializer}
    return {d.dim_param for v in graph.input if v.name not in held for d in v.type.tensor_type.shape.dim if d.dim_param}


def inputs_of(model, sizes):
    """Random inputs as oclrun makes them: floats from -1 to 1, integers 0 and 1."""
    import numpy as np
    import onnx
    graph = onnx.load(model, load_external_data=False).graph
    held = {t.name for t in graph.initializer}
    random, inputs = np.random.default_rng(0), {}
    for value in (v for v in graph.input if v.name not in held):
        kind = np.dtype(TYPES[value.type.tensor_type.elem_type])
        shape = [sizes[d.dim_param] if d.dim_param else d.dim_value for d in value.type.tensor_type.shape.dim]
        inputs[value.name] = (random.uniform(-1, 1, shape) if kind.kind == 'f' else random.integers(0, 2, shape)).astype(kind)
    return inputs


def peer_process(arguments, model):
    """Prints what OpenVINO does in a second; the streams are kept busy from the first request to the last."""
    import openvino as ov
    inputs = inputs_of(model, dims_of(arguments) | {'N': arguments.batch})
    core = ov.Core()
    network = core.read_model(model)
    network.reshape({name: list(x.shape) for name, x in inputs.items()})
    compiled = core.compile_model(network, 'CPU', {'INFERENCE_NUM_THREADS': comparison.THREADS, 'PERFORMANCE_HINT': 'THROUGHPUT',
                                                   'NUM_STREAMS': arguments.stream, 'INFERENCE_PRECISION_HINT': 'f32'})
    requests = ov.AsyncInferQueue(compiled, arguments.stream)
    for _ in range(2 * arguments.stream):
        requests.start_async(inputs)
    requests.wait_all()
    runs, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < arguments.seconds or runs < arguments.stream:
        requests.start_async(inputs)  # waits for a request that is idle
        runs += 1
    requests.wait_all()
    print(json.dumps({'samples_per_s': runs * arguments.batch / (time.perf_counter() - begin)}))


def peer_rate(arguments, model, batch, streams):
    options = [o for d in arguments.dim for o in ('--dim', d)]
    return json.loads(comparison.run([sys.executable, sys.argv[0], '--peer-process', model, '--batch', batch, '--stream', streams,
                                      '--seconds', arguments.seconds, *options]))['samples_per_s']


def own_rate(arguments, plan, sizes, batch, streams):
    dims = [o for name, value in sizes.items() if name != 'N' for o in ('--dim', f'{name}={value}')]
    done = json.loads(comparison.run([arguments.bin / 'oclrun', plan, '-d', 'cpu', '--random', '--streams', streams, '--batch-sweep',
                                      f'N={batch}', '--time', arguments.seconds, '--json', *dims]))
    row = next(r for r in done['streams'] if r['streams'] == streams)
    return row['runs_per_s'] * batch


def compare(arguments, given):
    name = given.name if given.is_dir() else given.parent.name
    model = comparison.model_file(arguments.bin, given)
    symbols = symbols_of(model)
    if 'N' not in symbols:
        comparison.fail(f"{model}: wanted a model whose batch is the dimension N, found {', '.join(sorted(symbols)) or 'none'}")
    sizes = {symbol: value for symbol, value in dims_of(arguments).items() if symbol in symbols}
    plan = (arguments.work / f'{name}.bin').resolve()
    plan.parent.mkdir(parents=True, exist_ok=True)
    fixed = [o for symbol, value in sizes.items() for o in ('--dim', f'{symbol}={value}')]
    comparison.run([arguments.bin / 'oclc', model, '-o', plan, '-d', 'cpu', *fixed, *arguments.oclc_option])
    rows = []
    for batch in arguments.batches:
        for streams in arguments.streams:
            rates = [], []
            sides = [lambda: rates[0].append(own_rate(arguments, plan, {}, batch, streams)),
                     lambda: rates[1].append(peer_rate(arguments, model, batch, streams))]
            for number in range(arguments.rounds):
                for side in sides if number % 2 == 0 else reversed(sides):
                    side()
            ratios = [ours / theirs for ours, theirs in zip(*rates)]
            row = {'batch': batch, 'streams': streams, 'oclc': statistics.median(rates[0]), 'openvino': statistics.median(rates[1]),
                   'ratio': statistics.median(ratios), 'spread': [min(ratios), max(ratios)], 'rounds': list(zip(*rates))}
            rows.append(row)
            print(f"{name:14s} N={batch:<3d} streams {streams}   oclc {row['oclc']:9.1f}/s   openvino {row['openvino']:9.1f}/s   "
                  f"ratio {row['ratio']:6.3f} [{min(ratios):.3f} .. {max(ratios):.3f}]", flush=True)
    best = {peer: max(row[peer] for row in rows) for peer in ('oclc', 'openvino')}
    print(f"{name:14s} best of all   oclc {best['oclc']:9.1f}/s   openvino {best['openvino']:9.1f}/s   "
          f"ratio {best['oclc'] / best['openvino']:6.3f}", flush=True)
    return {'model': name, 'dims': sizes, 'rows': rows, 'best': best}


def main():
    parser = comparison.parser_of(__doc__, rounds=3, warmup=0, runs=0)
    parser.add_argument('--batches', type=list_of, default=[1, 2, 4, 8, 16, 32])
    parser.add_argument('--streams', type=list_of, default=[1, 2])
    parser.add_argument('--seconds', type=float, default=3, help='of a measurement')
    parser.add_argument('--dim', action='append', default=[], help='size of a dimension beside N, as T=128 (repeatable)')
    parser.add_argument('--work', type=pathlib.Path, default=comparison.ROOT / 'build/throughput', help='where plans are written')
    parser.add_argument('--batch', type=int, default=1, help=comparison.HIDDEN)
    parser.add_argument('--stream', type=int, default=1, help=comparison.HIDDEN)
    comparison.main(parser, 'openvino', compare, peer_process)


if __name__ == '__main__':
    main()
