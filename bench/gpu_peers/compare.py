#!/usr/bin/env python3
"""Time oclc and PyTorch on one GPU, on the same networks with all data on the device, alternately in one run.

    bench/gpu_peers/run tests/models/resnet50 tests/models/gpt2 --batch 1 --batch 16 --precision fp32 --precision tf32 \
        --json build/gpu_peers/h200.json
    bench/gpu_peers/run tests/models/resnet18 --work training --batch 16 --precision fp32
    bench/gpu_peers/run tests/models/gpt2_decode --work decode --batch 1 --tokens 128 --precision fp32

MODEL is a folder with model.onnx; a folder with weights.json gets its weights generated under build/models. Each round starts
a fresh process of each system, in the order AB BA AB ...; both run without waiting between runs, after a warm-up. PyTorch's time
is that of its fastest mode: eager, a CUDA graph, each with both memory formats, or torch.compile. `ratio` is the median over the
rounds of oclc's time divided by PyTorch's, so below 1 oclc is faster; `spread` is the smallest and largest of the rounds.

A step of `training` is forward, backward and SGD with momentum and weight decay on mean softmax cross-entropy, without dropout.
A step of `decode` is one token behind `--tokens` of them, whose keys and values are kept: PyTorch's in a static cache.
"""
import copy
import json
import shutil
import subprocess
import time

import comparison
from comparison import ROOT, run

# Tokens of a sequence, and the class that stands for the network where it is not torchvision's of the folder's name.
NETWORKS = {'gpt2': (128, 'GPT2LMHeadModel', 'GPT2Config'), 'bert_base': (128, 'BertModel', 'BertConfig'),
            'gpt2_decode': (128, 'GPT2LMHeadModel', 'GPT2Config')}
# The model's names of how many tokens are kept, come and are read then.
KEPT, COMING, READ = 's12', 's27', 's64'
OPTIMIZER = {'lr': 0.001, 'momentum': 0.9, 'weight_decay': 0.0001}
VOCABULARY = 30000
WARM_RUNS, RUNS_IN_A_ROW = 10, 10


def tokens_of(name, arguments):
    return (arguments.tokens or NETWORKS[name][0]) if name in NETWORKS else None


def network(name, batch, tokens):
    """The module and an input of it."""
    import torch
    if name in NETWORKS:
        import transformers
        _, model, config = NETWORKS[name]
        with torch.device('cuda'):
            module = getattr(transformers, model)(getattr(transformers, config)(use_cache=False))
        return module.eval(), torch.randint(0, VOCABULARY, (batch, tokens), device='cuda')
    import torchvision
    options = {'aux_logits': False, 'init_weights': True} if name == 'googlenet' else {}
    with torch.device('cuda'):  # random numbers of 138 million weights take seconds on the host
        module = getattr(torchvision.models, name)(**options)
    return module.eval(), torch.rand(batch, 3, 224, 224, device='cuda')


def graph_of(function):
    import torch
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            function()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        function()

    def replay(kept=function):  # the graph reads what the function holds
        graph.replay()
    return replay


def modes(module, x, compiled, wanted=lambda name: True):
    """Names and functions, one after another: a mode is made when its turn comes, if it is wanted."""
    import torch
    images = x.dim() == 4
    for layout in (torch.contiguous_format, torch.channels_last)[:2 if images else 1]:
        # A copy, since `to` moves a module's parameters away from the modes before.
        m = copy.deepcopy(module).to(memory_format=layout) if images else module
        y = x.to(memory_format=layout) if images else x

        def run(forward=m, y=y):
            return forward(y)
        suffix = ' channels_last' if layout == torch.channels_last else ''
        if wanted('eager' + suffix):
            yield 'eager' + suffix, run
        if wanted('graph' + suffix):
            yield 'graph' + suffix, graph_of(run)
        if compiled and wanted('compile' + suffix):
            fast = torch.compile(m, mode='reduce-overhead', dynamic=False)
            yield 'compile' + suffix, lambda fast=fast, y=y: fast(y)


def training_modes(module, x, compiled, wanted=lambda name: True):
    import torch
    for part in module.modules():
        if isinstance(part, torch.nn.Dropout):
            part.p = 0.0
    labels = torch.randint(0, 1000, (len(x),), device='cuda')
    for layout in (torch.contiguous_format, torch.channels_last):
        m, y = copy.deepcopy(module).train().to(memory_format=layout), x.to(memory_format=layout)
        optimizer = torch.optim.SGD(m.parameters(), **OPTIMIZER)

        def step(forward=m, y=y, optimizer=optimizer):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(forward(y), labels).backward()
            optimizer.step()
        suffix = ' channels_last' if layout == torch.channels_last else ''
        if wanted('eager' + suffix):
            yield 'eager' + suffix, step
        if compiled and wanted('compile' + suffix):
            fast = torch.compile(m, dynamic=False)
            yield 'compile' + suffix, lambda step=step, fast=fast: step(fast)


def decode_modes(module, batch, tokens):
    import torch
    import transformers
    cache = transformers.StaticCache(config=module.config, max_cache_len=tokens + 1)
    token = torch.zeros(batch, 1, dtype=torch.long, device='cuda')
    place = torch.full((1,), tokens - 1, dtype=torch.long, device='cuda')

    def step():
        cache.reset()  # a cache counts its tokens, and refuses more than it has room for
        return module(token, past_key_values=cache, cache_position=place, position_ids=place[None], use_cache=True).logits
    yield 'eager', step
    yield 'graph', graph_of(step)


def milliseconds(function, seconds, warm_runs=WARM_RUNS, least_runs=3 * RUNS_IN_A_ROW):
    import torch
    for _ in range(warm_runs):
        function()
    torch.cuda.synchronize()
    runs, begin = 0, time.perf_counter()
    while runs < least_runs or time.perf_counter() - begin < seconds:
        for _ in range(RUNS_IN_A_ROW):
            function()
        runs += RUNS_IN_A_ROW
        torch.cuda.synchronize()
    return (time.perf_counter() - begin) / runs * 1e3


def peer_process(arguments, model):
    import torch
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    tf32 = arguments.precision[0] == 'tf32'
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
    batch, tokens = arguments.batch[0], tokens_of(model.name, arguments)
    module, x = network(model.name, batch, tokens)
    with torch.set_grad_enabled(arguments.work == 'training'):
        made = {'forward': lambda: modes(module, x, arguments.compile),
                'training': lambda: training_modes(module, x, arguments.compile),
                'decode': lambda: decode_modes(module, batch, tokens)}[arguments.work]()
        times = {name: milliseconds(f, arguments.seconds) for name, f in made}
    best = min(times, key=times.get)
    print(json.dumps({'median': times[best], 'mode': best, 'modes': times}))


def with_weights(model, arguments):
    """The model's file, in a folder that has its weights."""
    if not (model / 'weights.json').exists():
        return model / 'model.onnx'
    built = arguments.bin.parent / 'models' / model.name
    run([arguments.bin / 'oclc-fill-weights', model, '--out', built, '--check'])
    return built / 'model.onnx'


def device_state():
    if not shutil.which('nvidia-smi'):
        return {}
    fields = 'clocks.sm,temperature.gpu,power.draw'
    done = subprocess.run(['nvidia-smi', f'--query-gpu={fields}', '--format=csv,noheader,nounits'], capture_output=True, text=True)
    return dict(zip(fields.split(','), done.stdout.strip().split(', '))) if done.returncode == 0 else {}


def compare(arguments, model, batch, precision):
    tokens = tokens_of(model.name, arguments)
    dims, options, sizes = [f'N={batch}'] + ([f'T={tokens}'] if tokens else []), arguments.oclc_option, []
    if arguments.work == 'training':
        optimizer = ','.join(['sgd', *(f'{k}={v}' for k, v in OPTIMIZER.items())])
        options = options + ['--train', 'cross_entropy', '--optimizer', optimizer]
        sizes = ['--entry', 'train_step']
    elif arguments.work == 'decode':
        dims = [f'N={batch}', f'{COMING}=1']
        sizes = [f'{KEPT}={tokens - 1}', f'{READ}={tokens}']
    plan = ROOT / 'build/gpu_peers' / f'{model.name}_{batch}_{precision}.plan'
    run([arguments.bin / 'oclc', with_weights(model, arguments), '-o', plan, '--precision', precision,
         *[word for d in dims for word in ('--dim', d)], *options])
    states = []

    def ours():
        words = run([arguments.bin / 'bench_megakernel', plan, '--seconds', arguments.seconds, *sizes]).split()
        states.append(device_state())
        fields = dict(zip(words[::2], words[1::2]))
        return {'median': float(fields['run_ms']), **{k: float(v) for k, v in fields.items()}}

    def theirs():
        words = ['--work', arguments.work, '--batch', batch, '--precision', precision, '--seconds', arguments.seconds]
        words += ['--compile'] if arguments.compile else []
        words += ['--tokens', tokens] if tokens else []
        return comparison.run_peer(arguments, model, *words)

    name = f'{model.name} {precision} {batch}'
    _, peers, row = comparison.take_turns(name, arguments.rounds, ours, theirs)
    row.update(work=arguments.work, batch=batch, precision=precision, mode=peers[-1]['mode'], states=states)
    line = comparison.line_of({**row, 'model': name}, 'PyTorch')
    print(f"{line}  {row['mode']}  {states[-1].get('clocks.sm', '?')} MHz {states[-1].get('temperature.gpu', '?')} C", flush=True)
    plan.unlink()
    return row


def main():
    parser = comparison.parser_of(__doc__, rounds=3, warmup=0, runs=0)
    parser.add_argument('--work', choices=['forward', 'training', 'decode'], default='forward')
    parser.add_argument('--batch', type=int, action='append', help='repeatable (default: 1 and 16)')
    parser.add_argument('--tokens', type=int, help='of a sequence, where the network reads one')
    parser.add_argument('--precision', action='append', choices=['strict', 'fp32', 'tf32'], help='repeatable (default: fp32, tf32)')
    parser.add_argument('--seconds', type=float, default=1, help='of a timed stretch')
    parser.add_argument('--compile', action='store_true', help='torch.compile too, which takes minutes a network')
    arguments = parser.parse_args()
    arguments.batch = arguments.batch or [1, 16]
    arguments.precision = arguments.precision or ['fp32', 'tf32']
    if arguments.peer_process:
        return peer_process(arguments, arguments.models[0])
    arguments.bin = arguments.bin.resolve()
    (ROOT / 'build/gpu_peers').mkdir(parents=True, exist_ok=True)
    rows = [compare(arguments, m, b, p) for m in arguments.models for b in arguments.batch for p in arguments.precision]
    if arguments.json:
        machine = {**comparison.machine('torch'), 'gpu': device_state()}
        comparison.write_json(arguments.json, {'machine': machine, 'models': rows})


if __name__ == '__main__':
    main()
