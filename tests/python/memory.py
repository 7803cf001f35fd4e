"""What the process grows by in 10,000 calls of a compiled model, and in 1,000 training steps: resident size, in KiB.

    python tests/python/memory.py [--calls 10000] [--steps 1000] [--limit 1024]

A tenth of each runs first, so that what is kept from call to call is there. The status is 1 where one grows by more than the limit.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
from collections.abc import Callable

import oclc.torch as oclc_torch
import torch
from oclc.torch import backend as oclc_backend
from torch import nn
from torch.nn import functional as F


def resident_kib() -> int:
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise AssertionError("no VmRSS")


def perceptron() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))


def compiled(model: nn.Module) -> Callable[..., torch.Tensor]:
    return torch.compile(model, backend=oclc_backend, fullgraph=True, options={"device": "cpu"})  # type: ignore[no-any-return]


def inference() -> Callable[[], None]:
    step, x = compiled(perceptron().eval()), torch.randn(4, 8)

    def once() -> None:
        with torch.no_grad():
            step(x)

    return once


def usual_loop() -> Callable[[], None]:
    model, x, labels = perceptron(), torch.randn(4, 8), torch.randint(3, (4,))
    step, optimizer = compiled(model), torch.optim.AdamW(model.parameters(), 1e-3)

    def once() -> None:
        optimizer.zero_grad()
        F.cross_entropy(step(x), labels).backward()
        optimizer.step()

    return once


def whole_step() -> Callable[[], None]:
    model, x, labels = perceptron(), torch.randn(4, 8), torch.randint(3, (4,))
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    step = oclc_torch.TrainStep(model, loss=F.cross_entropy, optimizer=optimizer, example=(x, labels), device="cpu")

    def once() -> None:
        step(x, labels)
        step.losses()

    return once


def growth(once: Callable[[], None], count: int) -> int:
    for _ in range(max(count // 10, 10)):
        once()
    before = resident_kib()
    for _ in range(count):
        once()
    return resident_kib() - before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=10000)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--limit", type=int, default=1024)
    given = parser.parse_args()
    worst = 0
    for name, make, count in (
        ("calls of a compiled model", inference, given.calls),
        ("steps of a usual loop", usual_loop, given.steps),
        ("steps of one plan", whole_step, given.steps),
    ):
        found = growth(make(), count)
        worst = max(worst, found)
        print(f"{count} {name}: {found} KiB", flush=True)
    sys.exit(1 if worst > given.limit else 0)


if __name__ == "__main__":
    main()
