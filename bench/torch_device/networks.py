"""Inference and the training step of whole networks on the device ocl, eager, in turns with the CPU device or with CUDA.

    python bench/torch_device/networks.py [--peer cpu|cuda] [--batch 2] [--rounds 5] [--runs 3] [--only PATTERN] [--json FILE]

Each side is a process of its own (torch's autograd knows one accelerator a process). Weights are random, data lies on the device, float32. A training step is forward, cross entropy, backward and the optimizer (SGD with
momentum; AdamW for vit_b_16 and gpt2) by an ordinary loop. CUDA computes once as PyTorch starts (convolutions in TF32) and once
without TF32 (`cuda_fp32`). `host`: milliseconds until the calls returned. `first`: seconds of the first two calls, which make the plans.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import time
from typing import Any

import torch

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import models
from turns import ratio, seconds, spread, synchronize, take_turns, write


class Work:
    """A network on a device, in this process."""

    def __init__(self, name: str, device: str, count: int, training: bool, fused: bool, runs: int) -> None:
        self.name, self.runs = name, runs
        self.device = device.removesuffix("_fp32")
        torch.backends.cudnn.allow_tf32 = not device.endswith("_fp32")
        self.model = models.network(name).to(self.device).train(training)
        torch.manual_seed(2)
        self.x, self.y = (t.to(self.device) for t in models.batch(name, count))
        kind: Any = torch.optim.AdamW if name in ("vit_b_16", "gpt2") else torch.optim.SGD
        options = {"lr": 1e-4} if kind is torch.optim.AdamW else {"lr": 1e-3, "momentum": 0.9}
        self.optimizer = kind(self.model.parameters(), **options, fused=fused or None)
        self.call = self.step if training else self.infer

    def infer(self) -> None:
        with torch.inference_mode():
            self.result = self.model(self.x)

    def step(self) -> None:
        self.optimizer.zero_grad()
        loss = models.loss(self.name, self.model(self.x), self.y)
        loss.backward()
        self.optimizer.step()
        self.result = loss.detach()

    def several(self, calls: int) -> tuple[float, float]:
        def run() -> None:
            for _ in range(calls):
                self.call()

        return seconds(run, self.device)

    def begin(self) -> dict[str, Any]:
        """What the first calls take and give, and what a call is made of."""
        first = self.several(2)[1]
        facts: dict[str, Any] = {"first_s": first, "result": float(self.result.float().abs().mean())}
        if self.device == "ocl":
            before = torch.ocl.counters()
            self.several(1)
            after = torch.ocl.counters()
            facts |= {name: after[name] - before[name] for name in ("calls", "launches", "copied")}
            facts |= {"plans_made": after["traced"], "fallbacks": torch.ocl.fallbacks()}
        return facts

    def measure(self) -> dict[str, float]:
        self.several(1)
        host, done = self.several(self.runs)
        return {"host_ms": host / self.runs * 1e3, "ms": done / self.runs * 1e3}


def serve(given: Any) -> None:
    """The process of a side: a line of JSON for the first calls, then one for each line that comes in."""
    if given.side == "ocl":
        import oclc_torch  # noqa: F401
    work = Work(given.only, given.side, given.batch, given.what == "training", given.fused, given.runs)
    print(json.dumps(work.begin()), flush=True)
    for _ in sys.stdin:
        print(json.dumps(work.measure()), flush=True)


class Side:
    def __init__(self, name: str, device: str, training: bool, given: Any) -> None:
        command = [sys.executable, __file__, "--side", device, "--only", name, "--what", "training" if training else "inference",
                   "--batch", str(given.batch), "--runs", str(given.runs), *(["--fused"] if given.fused else [])]  # fmt: skip
        environment = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "1" if device == "ocl" else "0"}
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        self.host: list[float] = []
        self.begun: dict[str, Any] = {}

    def wait(self) -> None:
        """For its first calls."""
        self.begun = self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the process of the side ended with {self.process.wait()}")
        return dict(json.loads(line))

    def measure(self) -> float:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        found = self._answer()
        self.host.append(found["host_ms"])
        return float(found["ms"])

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def compare(name: str, given: Any, training: bool) -> dict[str, Any]:
    peers = ["cpu"] if given.peer == "cpu" else ["cuda", "cuda_fp32"]
    sides: dict[str, Side] = {}
    row: dict[str, Any] = {"network": name, "batch": given.batch, "what": "training" if training else "inference"}
    try:
        for d in ["ocl", *peers]:
            sides[d] = Side(name, d, training, given)
            if given.peer == "cpu":  # they would take each other's processor
                sides[d].wait()
        for side in sides.values():
            if not side.begun:
                side.wait()
        found = take_turns({d: side.measure for d, side in sides.items()}, given.rounds)
    finally:
        for side in sides.values():
            side.end()
    for d, side in sides.items():
        row |= {f"{d}_ms": spread(found[d]), f"{d}_host_ms": spread(side.host)["median"], f"{d}_begin": side.begun}
    for d in peers:
        row["ratio" if d == peers[0] else f"ratio_{d}"] = ratio(found["ocl"], found[d])
    ours = sides["ocl"].begun
    print(f"{name:13s} {row['what']:9s} batch {given.batch}: " + "  ".join(
        f"{d} {row[f'{d}_ms']['median']:.2f} ms (host {row[f'{d}_host_ms']:.2f})" for d in sides)
        + f"  ratio {row['ratio']['median']:.2f} [{row['ratio']['low']:.2f} .. {row['ratio']['high']:.2f}]"
        + (f", without TF32 {row['ratio_cuda_fp32']['median']:.2f}" if "ratio_cuda_fp32" in row else "")
        + f"; {ours['calls']} operators, {ours['launches']} launches, {ours['copied']} copied, first {ours['first_s']:.1f} s, results "
        + " ".join(f"{side.begun['result']:.5f}" for side in sides.values())
        + (f", on the CPU: {ours['fallbacks']}" if ours["fallbacks"] else ""), flush=True)  # fmt: skip
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--runs", type=int, default=3, help="timed calls a round")
    parser.add_argument("--only", default="")
    parser.add_argument("--what", default="inference,training")
    parser.add_argument("--minutes", type=float, default=60, help="no further network is begun behind these")
    parser.add_argument("--side", help=argparse.SUPPRESS)
    parser.add_argument("--fused", action="store_true", help="fused=True for the optimizers of all sides")
    parser.add_argument("--json", type=pathlib.Path)
    given = parser.parse_args()
    if given.side:
        return serve(given)
    begin, rows = time.monotonic(), []
    for name in models.NETWORKS:
        for what in given.what.split(","):
            if not re.fullmatch(given.only or ".*", name) or time.monotonic() - begin > given.minutes * 60:
                continue
            try:
                rows.append(compare(name, given, what == "training"))
            except RuntimeError as error:
                print(f"{name} {what}: {str(error).splitlines()[0]}", flush=True)
                rows.append({"network": name, "batch": given.batch, "what": what, "error": str(error)[:2000]})
            write(given.json, {"what": "networks", "peer": given.peer, "rows": rows})


if __name__ == "__main__":
    main()
