"""The optimizer's step over ResNet-50's 161 parameters: launches and time beside the peer's, torch's lists (foreach) and fused steps.

    python bench/torch_device/optimizer.py [--peer cpu|cuda] [--rounds 7] [--json FILE]
"""

from __future__ import annotations

import argparse
import pathlib
import sys
from collections.abc import Callable
from typing import Any

import torch

import oclc_torch  # noqa: F401

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import models
from turns import ratio, seconds, spread, synchronize, take_turns, write


def stepper(kind: Any, options: dict[str, Any], device: str, values: list[torch.Tensor]) -> Callable[[], None]:
    parameters = [v.detach().clone().to(device).requires_grad_() for v in values]
    for p in parameters:
        p.grad = torch.full_like(p, 1e-3)
    step: Callable[[], None] = kind(parameters, **options).step
    return step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=pathlib.Path)
    given = parser.parse_args()
    values = list(models.network("resnet50").parameters())
    assert len(values) == 161
    rows = []
    for kind, options in ((torch.optim.SGD, {"lr": 0.01, "momentum": 0.9}), (torch.optim.AdamW, {"lr": 1e-3})):
        for fused in (True, False):
            ways = {"fused": True} if fused else {"foreach": True}
            sides = {d: stepper(kind, {**options, **ways}, d, values) for d in ("ocl", given.peer)}
            first = seconds(sides["ocl"], "ocl")[1]
            for device, step in sides.items():
                for _ in range(3):
                    step()
                synchronize(device)
            before = torch.ocl.counters()
            sides["ocl"]()
            after = torch.ocl.counters()
            host: dict[str, list[float]] = {d: [] for d in sides}

            def measure(d: str) -> Callable[[], float]:
                def run() -> float:
                    returned, done = seconds(sides[d], d)
                    host[d].append(returned * 1e3)
                    return done * 1e3

                return run

            found = take_turns({d: measure(d) for d in sides}, given.rounds)
            row: dict[str, Any] = {"optimizer": kind.__name__, "fused": fused, "first_s": first}
            row |= {name: after[name] - before[name] for name in ("calls", "launches", "copied", "in_place")}
            row |= {f"{d}_ms": spread(found[d]) for d in sides} | {f"{d}_host_ms": spread(host[d])["median"] for d in sides}
            row["ratio"] = ratio(found["ocl"], found[given.peer])
            rows.append(row)
            print(f"{kind.__name__:6s} {'fused' if fused else 'foreach':8s}" + "  ".join(
                f"{d} {row[f'{d}_ms']['median']:.2f} ms (host {row[f'{d}_host_ms']:.2f})" for d in sides)
                + f"  ratio {row['ratio']['median']:.2f}; {row['calls']} operators, {row['launches']} launches, {row['copied']} copied, "
                f"first {first:.1f} s", flush=True)  # fmt: skip
            write(given.json, {"what": "optimizer", "peer": given.peer, "rows": rows, "fallbacks": {k: list(v) for k, v in torch.ocl.fallbacks().items()}})


if __name__ == "__main__":
    main()
