"""What one eager operator costs the host, beside the CPU device (or CUDA) and beside a bare launch; and the first calls.

    python bench/torch_device/operators.py [--peer cpu|cuda] [--rounds 15] [--calls 100] [--json FILE]

Tensors are small, so that the calls are what is timed: `us` until a call returned, without waiting for the device. `first`: the first call of an
operator whose plan nobody has made (an empty cache), the same in a second process's stead (the cache on disk), the first calls in
a second and in a third size.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OCLC_CACHE_DIR", tempfile.mkdtemp())

import torch
from torch.nn import functional as F

import oclc_torch  # noqa: F401

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from launch import Launcher
from turns import seconds, spread, synchronize, take_turns, write

Case = Callable[[dict[str, torch.Tensor]], Any]
CASES: dict[str, Case] = {
    "a + b": lambda t: t["a"] + t["b"],
    "a.add_(b)": lambda t: t["a"].add_(t["b"]),
    "a * 0.5": lambda t: t["a"] * 0.5,
    "relu(a)": lambda t: F.relu(t["a"]),
    "a.sum()": lambda t: t["a"].sum(),
    "mm(m, m)": lambda t: t["m"] @ t["m"],
    "addmm(v, m, m)": lambda t: torch.addmm(t["v"], t["m"], t["m"]),
    "softmax(m)": lambda t: F.softmax(t["m"], -1),
    "layer_norm(m)": lambda t: F.layer_norm(t["m"], (16,), t["v"], t["v"]),
    "a.zero_()": lambda t: t["a"].zero_(),
    "m.t().contiguous()": lambda t: t["m"].t().contiguous(),
    "empty_like(a)": lambda t: torch.empty_like(t["a"]),
}


def tensors(device: str) -> dict[str, torch.Tensor]:
    return {"a": torch.zeros(64, device=device), "b": torch.zeros(64, device=device), "m": torch.zeros(16, 16, device=device),
            "v": torch.zeros(16, device=device)}  # fmt: skip


def microseconds(case: Case, device: str, calls: int) -> Callable[[], float]:
    given = tensors(device)

    def run() -> None:
        for _ in range(calls):
            case(given)

    with torch.no_grad():
        for _ in range(3):
            run()
        synchronize(device)

    def measure() -> float:
        with torch.no_grad():
            return seconds(run, device)[0] / calls * 1e6

    return measure


def warm(peer: str, rounds: int, calls: int) -> list[dict[str, Any]]:
    launcher = Launcher(not torch.ocl.get_device_properties().host_memory)
    launcher.microseconds(calls)
    both = take_turns({"flushed": lambda: launcher.microseconds(calls), "unflushed": lambda: launcher.microseconds(calls, False)}, rounds)
    print("a bare launch, us: " + ", ".join(f"{name} {spread(values)['median']:.1f}" for name, values in both.items()), flush=True)
    rows: list[dict[str, Any]] = [{"operator": "a bare launch", **{f"{name}_us": spread(values) for name, values in both.items()}}]
    for name, case in CASES.items():
        sides = {"ocl": microseconds(case, "ocl", calls), peer: microseconds(case, peer, calls)}
        sides["launch"] = lambda: launcher.microseconds(calls)
        found = {side: spread(values) for side, values in take_turns(sides, rounds).items()}
        beyond = found["ocl"]["median"] - found["launch"]["median"]
        rows.append({"operator": name, **{f"{side}_us": s for side, s in found.items()}, "beyond_launch_us": beyond})
        print(f"{name:20s}" + "".join(f"  {side} {s['median']:6.1f} [{s['low']:.1f} .. {s['high']:.1f}]" for side, s in found.items())
              + f"  beyond the launch {beyond:5.1f} us", flush=True)  # fmt: skip
    return rows


def first() -> list[dict[str, Any]]:
    """Milliseconds of first calls, until the device was done."""
    rows = []
    cases: dict[str, Callable[[int], Callable[[], Any]]] = {}

    def case(name: str, make: Callable[[int], tuple[torch.Tensor, ...]], call: Callable[..., Any]) -> None:
        def of(n: int) -> Callable[[], Any]:
            given = make(n)
            return lambda: call(*given)

        cases[name] = of

    case("atan2", lambda n: (torch.zeros(n, 8, device="ocl"), torch.zeros(n, 8, device="ocl")), torch.atan2)
    case("logsumexp", lambda n: (torch.zeros(n, 8, device="ocl"),), lambda a: torch.logsumexp(a, 1))
    case("linear", lambda n: (torch.zeros(n, 32, device="ocl"), torch.zeros(24, 32, device="ocl")), F.linear)
    case("conv2d", lambda n: (torch.zeros(n, 3, 32, 32, device="ocl"), torch.zeros(8, 3, 3, 3, device="ocl")), F.conv2d)
    for name, of in cases.items():
        row: dict[str, Any] = {"operator": name}
        for what, n in (("new", 4), ("again", 4), ("second_size", 5), ("third_size", 6), ("fourth_size", 7)):
            call = of(n)
            synchronize("ocl")
            begin = time.perf_counter()
            with torch.no_grad():
                call()
            synchronize("ocl")
            row[f"{what}_ms"] = (time.perf_counter() - begin) * 1e3
        rows.append(row)
        print(f"{name:12s}" + "".join(f"  {key[:-3]} {value:.2f} ms" for key, value in row.items() if key != "operator"), flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--calls", type=int, default=100)
    parser.add_argument("--json", type=pathlib.Path)
    given = parser.parse_args()
    write(given.json, {"what": "operators", "peer": given.peer, "first": first(), "warm": warm(given.peer, given.rounds, given.calls)})


if __name__ == "__main__":
    main()
