"""The training steps of a model's train.json, which are in float64: how far PyTorch's single precision leads away from them, in
the stored run and on the machine at hand. `oclrun PLAN --entry train_step --verify FOLDER` says the same of oclc."""
import numpy

SMALLEST_NORM = 1e-4  # of the largest: smaller gradients are left out


def uniform(seed, shape, low, high):
    """float32 of tests/models: element i is low + (high - low) * u, u from the splitmix64 finaliser of seed and i."""
    count = int(numpy.prod(shape))
    z = (numpy.arange(1, count + 1, dtype=numpy.uint64) * numpy.uint64(0xBF58476D1CE4E5B9) +
         numpy.uint64(seed * 0x9E3779B97F4A7C15 % 2**64))
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        z = (z ^ (z >> numpy.uint64(shift))) * numpy.uint64(factor)
    u = (z >> numpy.uint64(40)).astype(numpy.float32) / numpy.float32(2**24)
    return (numpy.float32(low) + (numpy.float32(high) - numpy.float32(low)) * u).reshape(shape)


def batch_of(reference, step):
    x, labels = reference['input'], reference['labels']
    classes = uniform(7500 + step, labels['shape'], 0, 1).astype(numpy.float64) * labels['limit']
    return uniform(7000 + step, x['shape'], x['lo'], x['hi']), numpy.minimum(classes.astype(numpy.int64), labels['limit'] - 1)


def train_peer(network, reference, device):
    """PyTorch's losses, and how far its first gradients' norms are off at worst."""
    import torch
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    for name, value in network.values.items():
        network.values[name] = value.detach().to(device).requires_grad_(value.requires_grad)
    parameters = {k: v for k, v in network.values.items() if v.requires_grad}
    optimizer = torch.optim.SGD(parameters.values(), **{k: reference[k] for k in ('lr', 'momentum', 'weight_decay')})
    losses, norms = [], {}
    for step in range(len(reference['losses'])):
        x, labels = (torch.from_numpy(a).to(device) for a in batch_of(reference, step))
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(network(x), labels)
        loss.backward()
        if step == 0:
            norms = {k: v.grad.double().norm().item() for k, v in parameters.items()}
        optimizer.step()
        losses.append(loss.item())
    wanted = reference['first_step_gradient_norms']
    least = SMALLEST_NORM * max(wanted.values())
    return {'losses': losses, 'worst_gradient_norm_deviation': max(abs(norms[k] / n - 1) for k, n in wanted.items() if n > least)}


def deviations(reference, losses):
    return [abs(found / wanted - 1) for found, wanted in zip(losses, reference['losses'])]


def compare(reference, name, network, device):
    stored, here = reference['pytorch_float32'], train_peer(network, reference, device)
    runs = {'stored': stored, 'here': here | {'device': device}}
    print(f'{name}: relative deviation of the losses, and of the first gradients\' norms at worst')
    for kind, losses in runs.items():
        values = ' '.join(f'{d:8.1e}' for d in deviations(reference, losses['losses']))
        print(f"  PyTorch, {kind:8s}{values}   gradients {losses['worst_gradient_norm_deviation']:8.1e}", flush=True)
    return {'model': name} | runs
