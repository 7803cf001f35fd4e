#!/usr/bin/env python3
"""Time training steps of oclc and of PyTorch (eager) on the same models, weights and two cores, alternately in one run.

    bench/training_peers/run tests/models/resnet18 --batch 8 --rounds 5 --json build/training_peers/resnet18.json
    bench/training_peers/run tests/models/gpt2 --batch 8 --tokens 64

MODEL is a folder with model.onnx; its weights are generated under build/. A step is forward, backward and SGD with momentum and
weight decay (with --tokens AdamW), on mean softmax cross-entropy. PyTorch runs the ONNX graph operator by operator, a GPT-2 as
gpt.py has it. Each round starts a fresh process of each system, in the order AB BA AB ...; `ratio` is the median over the rounds
of oclc's median time divided by PyTorch's, so below 1 oclc is faster; `spread` is the smallest and largest of the rounds.
Phases: oclc's by its profile, PyTorch's by clock.

With --rounding no time is taken: PyTorch trains as FOLDER/train.json says, and its losses are compared with those in float64.
"""
import json
import re
import statistics
import time

import comparison
import rounding
from comparison import THREADS, run

SGD = {'lr': 0.001, 'momentum': 0.9, 'weight_decay': 0.0001}
ADAMW = {'lr': 0.0001, 'weight_decay': 0.01}


class Network:
    """An ONNX graph as PyTorch functions in training form: batch normalisation by the batch, dropout left out."""

    def __init__(self, path):
        import onnx
        import torch
        graph = onnx.load(path).graph
        self.nodes = [(n, {a.name: onnx.helper.get_attribute_value(a) for a in n.attribute}) for n in graph.node]
        self.values = {i.name: torch.from_numpy(onnx.numpy_helper.to_array(i).copy()) for i in graph.initializer}
        self.input = next(i.name for i in graph.input if i.name not in self.values)
        self.output = graph.output[0].name
        statistics_of = {name for n, _ in self.nodes if n.op_type == 'BatchNormalization' for name in n.input[3:5]}
        self.parameters = [v.requires_grad_() for k, v in self.values.items() if v.is_floating_point() and k not in statistics_of]

    def __call__(self, x):
        values = {**self.values, self.input: x}
        for node, attributes in self.nodes:
            values[node.output[0]] = self.apply(node.op_type, [values[i] if i else None for i in node.input], attributes)
        return values[self.output]

    def apply(self, op, x, a):
        import torch
        from torch.nn import functional
        if op == 'Constant':
            import onnx
            return torch.from_numpy(onnx.numpy_helper.to_array(a['value']).copy())
        if op == 'Conv':
            before, after = a.get('pads', [0] * 4)[:2], a.get('pads', [0] * 4)[2:]
            assert before == after, 'asymmetric padding'
            return functional.conv2d(x[0], x[1], x[2] if len(x) > 2 else None, a.get('strides', 1), before,
                                     a.get('dilations', 1), a.get('group', 1))
        if op == 'BatchNormalization':
            return functional.batch_norm(x[0], x[3], x[4], x[1], x[2], True, 1 - a.get('momentum', 0.9), a.get('epsilon', 1e-5))
        if op in ('MaxPool', 'AveragePool'):
            pads = a.get('pads', [0] * 4)[:2]
            pool = functional.max_pool2d if op == 'MaxPool' else functional.avg_pool2d
            return pool(x[0], a['kernel_shape'], a.get('strides'), pads)
        if op == 'Gemm':
            assert a.get('transB', 0) == 1 and not a.get('transA', 0)
            return functional.linear(x[0], x[1], x[2])
        simple = {'Relu': lambda v: functional.relu(v), 'Add': torch.add, 'Flatten': lambda v: torch.flatten(v, a.get('axis', 1)),
                  'Clip': lambda v, lo, hi: torch.clamp(v, lo.item(), hi.item()), 'Dropout': lambda v, *rest: v,
                  'GlobalAveragePool': lambda v: functional.adaptive_avg_pool2d(v, 1), 'Identity': lambda v: v}
        return simple[op](*x)


def peer_process(arguments, model):
    """Prints PyTorch's times."""
    import torch
    torch.set_num_threads(THREADS)
    torch.manual_seed(1)
    if arguments.tokens:
        from gpt import Gpt
        network = Gpt(model)
        x, labels = torch.randint(0, network.vocabulary, (2, arguments.batch, arguments.tokens))
        labels = labels.flatten()
        optimizer = torch.optim.AdamW(network.parameters, **ADAMW)
    else:
        network = Network(model)
        x, labels = torch.rand(arguments.batch, 3, 224, 224) * 2 - 1, torch.randint(0, 1000, (arguments.batch,))
        if arguments.channels_last:
            x = x.to(memory_format=torch.channels_last)
            for p in network.parameters:
                p.data = p.data.to(memory_format=torch.channels_last) if p.dim() == 4 else p.data
        optimizer = torch.optim.SGD(network.parameters, **SGD)
    times = []
    for _ in range(arguments.warmup + arguments.runs):
        clock = [time.perf_counter()]
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(network(x).flatten(0, -2), labels)
        clock.append(time.perf_counter())
        loss.backward()
        clock.append(time.perf_counter())
        optimizer.step()
        loss.item()
        clock.append(time.perf_counter())
        times.append([(b - a) * 1e3 for a, b in zip(clock, clock[1:])])
    times = times[arguments.warmup:]
    phases = dict(zip(('forward', 'backward', 'optimizer'), (statistics.median(t) for t in zip(*times))))
    print(json.dumps({'median': statistics.median(sum(t) for t in times), 'phases': phases}))


def phase_of(row):
    """Phase of a launch, by the name that the plan gives it."""
    name = row['kernel']
    if re.search(r'grad_(matmul|unfold|reduce)', name):
        return 'weight gradient'
    if '_grad_' in name:
        return 'data gradient' if row['anchor'] == 'contraction' else 'other backward'
    return 'optimizer' if name.startswith('k_optimizer') else 'layouts' if '_store' in name else 'forward'


def oclc_command(arguments, plan):
    return [arguments.bin / 'oclrun', plan, '--entry', 'train_step', '--random', '--json', '--warmup', arguments.warmup, '--runs',
            arguments.runs]


def compare(arguments, folder):
    name = folder.resolve().name
    built = arguments.bin.parent / 'models' / name
    run([arguments.bin / 'oclc-fill-weights', folder, '--out', built, '--check'])
    if arguments.rounding:
        reference = json.loads((folder / 'train.json').read_text())
        return rounding.compare(reference, name, Network(built / 'model.onnx'), arguments.device)
    plan = built / 'train.bin'
    options = ['--batch', arguments.batch, '--tokens', arguments.tokens] + ['--channels-last'] * arguments.channels_last
    rule, settings = ('adamw', ADAMW) if arguments.tokens else ('sgd', SGD)
    optimizer = ','.join([rule] + [f'{k}={v}' for k, v in settings.items()])
    sizes = ['--dim', f'N={arguments.batch}'] + (['--dim', f'T={arguments.tokens}'] if arguments.tokens else [])
    run([arguments.bin / 'oclc', built / 'model.onnx', '--train', 'cross_entropy', '--optimizer', optimizer, '-o', plan] + sizes +
        arguments.oclc_option)
    _, peers, row = comparison.take_turns(
        name, arguments.rounds, lambda: json.loads(run(oclc_command(arguments, plan)))['latency_ms'],
        lambda: comparison.run_peer(arguments, built / 'model.onnx', *options))
    profile = json.JSONDecoder().raw_decode(run([c for c in oclc_command(arguments, plan) if c != '--json'] + ['--profile=json']))[0]
    phases = {}
    for launch in profile['rows']:
        phases[phase_of(launch)] = phases.get(phase_of(launch), 0) + launch['time_us'] / 1e3
    plan.unlink()
    row |= {'batch': arguments.batch, 'oclc_phases_ms': phases, 'launches': len(profile['rows']),
            'peer_phases_ms': {k: statistics.median(p['phases'][k] for p in peers) for k in peers[0]['phases']}}
    text = lambda phases: ', '.join(f'{k} {v:.0f}' for k, v in sorted(phases.items(), key=lambda p: -p[1]))
    print(f"{comparison.line_of(row, 'pytorch')}\n  oclc ms: {text(phases)}\n  pytorch ms: {text(row['peer_phases_ms'])}",
          flush=True)
    return row


if __name__ == '__main__':
    parser = comparison.parser_of(__doc__, rounds=5, warmup=2, runs=6)
    parser.add_argument('--batch', type=int, default=8)
    parser.add_argument('--rounding', action='store_true', help='losses beside float64 instead of times')
    parser.add_argument('--device', default='cpu', help='of PyTorch with --rounding (default: cpu)')
    parser.add_argument('--tokens', type=int, default=0, help='of each sample of a language model')
    parser.add_argument('--channels-last', action='store_true', help="images in PyTorch's channels_last format")
    comparison.main(parser, 'torch', compare, peer_process)
