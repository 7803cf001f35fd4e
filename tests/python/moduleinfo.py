"""PyTorch's own samples of its modules (module_db) through the backend: results, gradients of inputs and parameters, and buffers.

    python tests/python/moduleinfo.py [--dtype float32] [--samples 2] [--part K/N] [--only PATTERN] [--out FILE]
    python tests/python/moduleinfo.py --table FILE..

As opinfo.py. A module that differs between training and inference is a case in each.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import outcomes
import torch
from oclc.torch import backend as oclc_backend
from outcomes import Outcome, failed, far, gradients, in_double, tensors
from torch import nn
from torch.testing._internal.common_modules import module_db

# Those that draw in training: in double precision torch draws others.
DRAWN = ("Dropout", "RReLU", "FractionalMaxPool", "Transformer", "MultiheadAttention")


def results_of(module: nn.Module, args: Any, kwargs: Any) -> list[torch.Tensor]:
    torch.manual_seed(outcomes.SEED)
    return tensors(module(*args, **kwargs))


def leaves(module: nn.Module, args: Any, kwargs: Any) -> list[torch.Tensor]:
    """What gradients are asked for: each tensor once."""
    found = [t for t in (*tensors((args, kwargs)), *module.parameters()) if t.requires_grad and t.is_leaf]
    return list({id(t): t for t in found}.values())


def check_sample(module: nn.Module, args: Any, kwargs: Any) -> tuple[str, str]:
    """(kind, reason); kind "" where eager PyTorch does not run it."""
    torch._dynamo.reset()
    eager, double = copy.deepcopy(module), copy.deepcopy(module).double()
    try:
        expected = results_of(eager, args, kwargs)
    except (RuntimeError, NotImplementedError, ValueError):
        return "", ""
    step = torch.compile(module, backend=oclc_backend, fullgraph=True, options={"device": "cpu"})
    try:
        found = results_of(step, args, kwargs)
    except Exception as error:
        return failed(error)
    exact, exact_leaves = None, []
    if not any(name in type(module).__name__ for name in DRAWN):
        try:
            wide_args, wide_kwargs = in_double(args), in_double(kwargs)
            exact, exact_leaves = results_of(double, wide_args, wide_kwargs), leaves(double, wide_args, wide_kwargs)
        except Exception:
            exact = None
    different = far(found, expected, exact, outcomes.TOLERANCES)
    if different:
        return "wrong", different
    different = far(list(module.buffers()), list(eager.buffers()), list(double.buffers()) if exact else None, outcomes.TOLERANCES)
    if different:
        return "wrong", f"buffers: {different}"
    wanted = [i for i, e in enumerate(expected) if e.requires_grad and e.grad_fn is not None]
    if not wanted or not leaves(module, args, kwargs):
        return "passed", ""
    try:
        right = gradients(expected, wanted, leaves(eager, args, kwargs))
    except (RuntimeError, NotImplementedError):
        return "passed", ""
    try:
        given = gradients(found, wanted, leaves(module, args, kwargs))
    except Exception as error:
        return failed(error, "gradient: ")
    exact_gradients = gradients(exact, wanted, exact_leaves) if exact else None
    different = far(given, right, exact_gradients, outcomes.TOLERANCES)
    return ("wrong", f"gradient: {different}") if different else ("passed", "")


def samples_of(info: Any, dtype: torch.dtype, training: bool, samples: int) -> Iterator[tuple[str, str]]:
    torch.manual_seed(3)
    inputs = info.module_inputs_func(info, device="cpu", dtype=dtype, requires_grad=True, training=training)
    for given in outcomes.spread([one for one in inputs if one.forward_input is not None], samples):
        constructed, forward = given.constructor_input, given.forward_input
        torch.manual_seed(outcomes.SEED)
        module = info.module_cls(*constructed.args, **constructed.kwargs).to(dtype).train(training)
        yield check_sample(module, forward.args, forward.kwargs)


def check(name: str, info: Any, dtype: torch.dtype, training: bool, samples: int) -> Outcome:
    try:
        return outcomes.worst(name, samples_of(info, dtype, training, samples))
    except Exception as error:
        return Outcome(name, "none", f"no samples: {type(error).__name__}: {error}")


def cases(dtype: torch.dtype, samples: int) -> Iterator[tuple[str, Callable[[], Outcome]]]:
    for info in module_db:
        if dtype not in info.supported_dtypes("cpu"):
            continue
        for training in (True, False) if info.train_and_eval_differ else (True,):
            name = info.name + ("" if training else ".eval")
            yield name, lambda n=name, i=info, t=training: check(n, i, dtype, t, samples)  # type: ignore[misc]


def main() -> None:
    given = outcomes.parser(str(__doc__)).parse_args()
    outcomes.run(given, 'PyTorch\'s modules by `torch.compile(.., backend="oclc", fullgraph=True)`', cases(getattr(torch, given.dtype), given.samples))


if __name__ == "__main__":
    main()
