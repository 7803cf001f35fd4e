"""Exported programs that are almost right, compiled: each gives a plan or one CompileError.

    python tests/python/fuzz_pt2.py [COUNT] [SEED]

Anything else is a failure: the file is kept in the current folder. A crash ends the process; the seed of the file that it was at is
the last line printed.
"""

from __future__ import annotations

import copy
import io
import json
import pathlib
import random
import sys
import warnings
import zipfile
from typing import Any

import oclc
import torch
from torch import nn

VALUES: list[Any] = [None, -1, 0, 1, 2**31, 2**62, -(2**63), 1.5, "", "x", "Symbol('s9')", "Integer(0)", "Infinity", [], {}, True, [[]]]


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
        self.head = nn.Linear(64, 5)

    def forward(self, x: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        y = self.head(self.body(x)).softmax(-1)
        return torch.cat([y[:, 1:], y.gather(1, k)], 1).reshape(-1).sum(0, keepdim=True)


def members(program: Any) -> dict[str, bytes]:
    memory = io.BytesIO()
    torch.export.save(program, memory)
    with zipfile.ZipFile(memory) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def places(value: Any, found: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Every container with each of its keys or positions."""
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        found.append((value, key))
        if isinstance(value[key], (dict, list)):
            places(value[key], found)
    return found


def mutate(document: Any, draw: random.Random) -> None:
    for _ in range(draw.choice([1, 1, 1, 2, 4])):
        found = places(document, [])
        if not found:
            return
        container, key = draw.choice(found)
        what = draw.randrange(4)
        if what == 0:
            del container[key]
        elif what == 1:
            container[key] = copy.deepcopy(draw.choice(VALUES))
        elif what == 2:
            other, at = draw.choice(found)
            try:
                container[key] = copy.deepcopy(other[at])
            except (KeyError, IndexError):
                pass
        elif isinstance(container, list):
            container.insert(key, copy.deepcopy(container[key]))
        elif isinstance(container[key], int):
            container[key] += draw.choice([-1, 1])


def almost_right(original: dict[str, bytes], draw: random.Random) -> bytes:
    parts = dict(original)
    if draw.random() < 0.85:
        name = draw.choice([n for n in parts if n.endswith(".json")] + [n for n in parts if n.endswith("models/model.json")] * 8)
        document = json.loads(parts[name])
        mutate(document, draw)
        parts[name] = json.dumps(document).encode()
    else:
        name = draw.choice(list(parts))
        data = bytearray(parts[name])
        if data:
            del data[draw.randrange(len(data)) :]
        parts[name] = bytes(data)
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_STORED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    result = bytearray(memory.getvalue())
    if draw.random() < 0.1:
        for _ in range(draw.choice([1, 8])):
            result[draw.randrange(len(result))] = draw.randrange(256)
    return bytes(result)


def main(count: int, seed: int) -> int:
    warnings.simplefilter("ignore")
    torch.manual_seed(1)
    example = (torch.randn(2, 3, 8, 8), torch.zeros(2, 1, dtype=torch.int64))
    batch = torch.export.Dim("N", max=64)
    program = torch.export.export(Network().eval(), example, dynamic_shapes={"x": {0: batch}, "k": {0: batch}})
    original = members(program)
    compiled = refused = failed = 0
    path = pathlib.Path("almost_right.pt2")
    for at in range(seed, seed + count):
        print(at, end="\r", flush=True)
        path.write_bytes(almost_right(original, random.Random(at)))
        try:
            oclc.compile(path, target="cpu")
            compiled += 1
        except oclc.CompileError as error:
            refused += 1
            if "bug of oclc" in str(error) or "report" in str(error):
                failed += 1
                print(f"seed {at}: {error}")
        except Exception as error:
            failed += 1
            path.with_name(f"failure_{at}.pt2").write_bytes(path.read_bytes())
            print(f"seed {at}: {type(error).__name__}: {error}")
    path.unlink(missing_ok=True)
    print(f"{compiled} compiled, {refused} refused, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    count, seed = [*map(int, sys.argv[1:3]), 1000, 1][:2] if len(sys.argv) != 2 else (int(sys.argv[1]), 1)
    sys.exit(main(count, seed))
