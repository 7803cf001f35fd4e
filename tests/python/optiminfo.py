"""The settings of PyTorch's own tests of optimizers (optim_db): `optimizer.step` through the backend, and TrainStep.

    python tests/python/optiminfo.py [--samples 100] [--part K/N] [--only PATTERN] [--out FILE]
    python tests/python/optiminfo.py --table FILE..

As opinfo.py. A case is an optimizer by a setting; those named `TrainStep.*` make the same steps by one plan.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import oclc.torch as oclc_torch
import outcomes
import torch
from oclc.torch import backend as oclc_backend
from oclc.torch.optimizers import ROWS
from outcomes import Outcome, failed, far
from torch import nn
from torch.nn import functional as F
from torch.testing._internal.common_optimizers import optim_db

STEPS = 3
# After three steps: a rounding error of a gradient near 0 is a large part of the step of what divides by its root.
LIMITS = {torch.float32: (1e-4, 1e-5)}


# Of matrices alone.
WITHOUT_BIAS = {getattr(torch.optim, "Muon", None)}


def perceptron(info: Any) -> nn.Module:
    torch.manual_seed(2)
    bias = info.optim_cls not in WITHOUT_BIAS
    return nn.Sequential(nn.Linear(6, 16, bias=bias), nn.Tanh(), nn.Linear(16, 4, bias=bias))


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(8)
    return torch.randn(8, 6, generator=generator), torch.randint(4, (8,), generator=generator)


def trained(model: nn.Module, optimizer: Any, step: Callable[[], Any]) -> list[torch.Tensor]:
    x, y = batch()
    for _ in range(STEPS):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        step()
    return [p.detach() for p in model.parameters()]


def settings(info: Any) -> list[Any]:
    found = [s for s in info.optim_inputs_func(device="cpu") if s.params is None]
    return found or info.optim_inputs_func(device="cpu")


def in_eager(info: Any, kwargs: dict[str, Any], dtype: torch.dtype) -> list[torch.Tensor]:
    model = perceptron(info).to(dtype)
    x, y = batch()
    optimizer = info.optim_cls(model.parameters(), **copy.deepcopy(kwargs))
    for _ in range(STEPS):
        optimizer.zero_grad()
        F.cross_entropy(model(x.to(dtype)), y).backward()
        optimizer.step()
    return [p.detach() for p in model.parameters()]


def compared(found: list[torch.Tensor], info: Any, kwargs: dict[str, Any]) -> tuple[str, str]:
    expected = in_eager(info, kwargs, torch.float32)
    with mock.patch.object(torch.Tensor, "bfloat16", lambda tensor: tensor):  # Muon's steps of 16 bits too
        exact = in_eager(info, kwargs, torch.float64)
    different = far(found, expected, exact, LIMITS)
    return ("wrong", different) if different else ("passed", "")


def stepped(model: nn.Module, optimizer: Any) -> list[torch.Tensor]:
    step = torch.compile(optimizer.step, backend=oclc_backend, options={"device": "cpu"})
    return trained(model, optimizer, step)


def whole_steps(model: nn.Module, optimizer: Any) -> list[torch.Tensor]:
    step = oclc_torch.TrainStep(model, loss=F.cross_entropy, optimizer=optimizer, example=batch(), device="cpu")
    for _ in range(STEPS):
        step(*batch())
    step.sync()
    return [p.detach() for p in model.parameters()]


def check(info: Any, kwargs: dict[str, Any], train: Callable[[nn.Module, Any], list[torch.Tensor]]) -> tuple[str, str]:
    torch._dynamo.reset()
    try:
        in_eager(info, kwargs, torch.float32)
    except Exception:
        return "", ""
    model = perceptron(info)
    optimizer = info.optim_cls(model.parameters(), **copy.deepcopy(kwargs))
    try:
        return compared(train(model, optimizer), info, kwargs)
    except Exception as error:
        return failed(error)


def cases(samples: int) -> Iterator[tuple[str, Callable[[], Outcome]]]:
    for info in optim_db:
        for i, setting in enumerate(outcomes.spread(settings(info), samples)):
            name = f"{info.optim_cls.__name__}.{i}_{(setting.desc or 'default').replace(' ', '_').replace(',', '')}"
            yield name, lambda n=name, i=info, k=setting.kwargs: outcomes.worst(n, [check(i, k, stepped)])  # type: ignore[misc]
            if info.optim_cls in ROWS:
                own = f"TrainStep.{name}"
                yield own, lambda n=own, i=info, k=setting.kwargs: outcomes.worst(n, [check(i, k, whole_steps)])  # type: ignore[misc]


def main() -> None:
    parser = outcomes.parser(str(__doc__))
    parser.set_defaults(samples=100)
    given = parser.parse_args()
    outcomes.run(given, "The settings of PyTorch's optimizers", cases(given.samples))


if __name__ == "__main__":
    main()
