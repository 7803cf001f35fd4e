"""What the scripts of this folder share: sides that take turns, medians and spreads, JSON."""

from __future__ import annotations

import json
import os
import pathlib
import platform
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch


def synchronize(device: str) -> None:
    if device != "cpu":
        torch.get_device_module(device).synchronize()


def seconds(work: Callable[[], Any], device: str) -> tuple[float, float]:
    """Until the calls returned, and until the device was done."""
    synchronize(device)
    begin = time.perf_counter()
    work()
    returned = time.perf_counter()
    synchronize(device)
    return returned - begin, time.perf_counter() - begin


def take_turns(sides: dict[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Of each side what it measured, in the order AB BA AB .."""
    found: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(rounds):
        for name in list(sides)[:: 1 if number % 2 == 0 else -1]:
            found[name].append(sides[name]())
    return found


def spread(values: list[float]) -> dict[str, float]:
    return {"median": statistics.median(values), "low": min(values), "high": max(values)}


def ratio(ours: list[float], theirs: list[float]) -> dict[str, float]:
    """Theirs divided by ours, round by round: above 1 we are faster."""
    return spread([b / a for a, b in zip(ours, theirs, strict=True)])


def machine() -> dict[str, Any]:
    names = [line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
    facts = {"cpu": names[0] if names else "?", "cores": os.cpu_count(), "kernel": platform.release(), "torch": torch.__version__}
    if hasattr(torch, "ocl"):
        facts["ocl"] = torch.ocl.get_device_name()
    if torch.cuda.is_available():
        facts["cuda"] = torch.cuda.get_device_name()
    return facts


def write(path: pathlib.Path | None, document: dict[str, Any]) -> None:
    if path is not None:
        path.write_text(json.dumps({"schema": 1, "machine": machine(), **document}, indent=1) + "\n")
