"""PyTorch's side of a row of table.py: the modes it has for the row's work, and the fastest of them."""
import itertools
import re

import compare

MLP = [10000, 10000, 5000, 1000, 10]  # rows, and the features of its layers


def set_precision(row):
    import torch
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = row.precision == 'tf32'


def product_modes(row):
    import torch
    if row.kind == 'gemm':
        m, n, k = row.sizes
        a, b = torch.rand(m, k, device='cuda') * 2 - 1, torch.rand(k, n, device='cuda') * 2 - 1
        out = torch.empty(m, n, device='cuda')
        yield 'graph', compare.graph_of(lambda: torch.matmul(a, b, out=out))
        return
    images, channels, size, features, kernel, stride, pad = row.sizes
    after = (size + 2 * pad - kernel) // stride + 1
    for layout in (torch.contiguous_format, torch.channels_last):
        def image(c, s):
            return (torch.rand(images, c, s, s, device='cuda') * 2 - 1).to(memory_format=layout)
        x, g = image(channels, size), image(features, after)
        w = (torch.rand(features, channels, kernel, kernel, device='cuda') * 2 - 1).to(memory_format=layout)
        wanted = [row.kind == 'data', row.kind == 'weights', False]

        def gradient(x=x, g=g, w=w):
            return torch.ops.aten.convolution_backward(g, x, w, None, [stride] * 2, [pad] * 2, [1, 1], False, [0, 0], 1, wanted)

        def forward(x=x, w=w):
            return torch.nn.functional.conv2d(x, w, None, stride, pad)
        suffix = ' channels_last' if layout == torch.channels_last else ''
        yield 'graph' + suffix, compare.graph_of(forward if row.kind == 'forward' else gradient)


def modes_of(row, compiled, wanted):
    """Names and functions of PyTorch's modes."""
    import torch
    if row.work == 'product':
        return product_modes(row)
    if row.network == 'mlp':
        layers = [layer for i, o in zip(MLP[1:], MLP[2:]) for layer in (torch.nn.Linear(i, o), torch.nn.ReLU())][:-1]
        return compare.modes(torch.nn.Sequential(*layers).cuda(), torch.rand(row.batch, MLP[1], device='cuda'), compiled, wanted)
    module, x = compare.network(row.network, row.batch, row.tokens)
    if row.work == 'decode':
        return compare.decode_modes(module, row.batch, row.tokens)
    return (compare.modes if row.work == 'forward' else compare.training_modes)(module, x, compiled, wanted)


def compiled_modes(row, arguments):
    """Modes of torch.compile, called once: that takes the host a minute and the device little."""
    import torch
    if row.work not in ('forward', 'training'):
        return []
    set_precision(row)
    torch.backends.cudnn.benchmark = False  # kernels are chosen by their times when no other process runs
    try:
        with torch.set_grad_enabled(row.work == 'training'):
            modes = list(modes_of(row, True, lambda name: name.startswith('compile') and re.search(arguments.modes, name)))
            for _, function in modes:
                function()
    finally:
        torch.backends.cudnn.benchmark = True
    return modes


# What a busy host may add to a trial: modes within it of the best are timed again when all is quiet.
BUSY = 3


def fastest(row, compiled, arguments):
    """Modes of PyTorch that may be its fastest by name (all of a training step), and milliseconds of a trial by name.

    While other rows compile on the host a trial may take a multiple of what it does alone.
    """
    import torch
    set_precision(row)

    def is_wanted(name):  # a graph runs the kernels of eager without waiting for the host
        return bool(re.search(arguments.modes, name)) and (row.work == 'training' or not name.startswith('eager'))
    with torch.set_grad_enabled(row.work == 'training'):
        times, functions = {}, {}
        for name, function in itertools.chain(compiled, modes_of(row, False, is_wanted)):
            if not is_wanted(name):
                continue
            times[name] = compare.milliseconds(function, arguments.seconds / 2, least_runs=1)
            functions[name] = function
            least = min(times.values())
            functions = {n: f for n, f in functions.items() if row.work == 'training' or times[n] <= BUSY * least}
    return functions, times
