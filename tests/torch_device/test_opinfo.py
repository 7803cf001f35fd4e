"""PyTorch's own samples of its operators (OpInfo) on the device: right, and on it but for the operators that opinfo_cpu.txt names.

By default a seeded part of the operators runs; OCLC_TEST_ALL=1 runs all, in four element types.
"""

from __future__ import annotations

import os
import pathlib
import random
from typing import Any

import opinfo
import op_samples
import outcomes
import pytest
import torch

PARTS = {torch.float32: 12, torch.float16: 3, torch.int64: 4, torch.bool: 3}  # operators of an ordinary run
ON_CPU = pathlib.Path(__file__).parent / "opinfo_cpu.txt"


def chosen() -> list[Any]:
    cases = []
    for dtype, count in PARTS.items():
        ops = op_samples.operators(dtype)
        if os.environ.get("OCLC_TEST_ALL") != "1":
            ops = random.Random(11).sample(ops, count)
        cases += [pytest.param(op, dtype, id=f"{op_samples.name_of(op)}-{str(dtype).removeprefix('torch.')}") for op in ops]
    return cases


@pytest.mark.parametrize(("op", "dtype"), chosen())
def test_an_operator_is_right_and_on_the_device_or_declared(op: Any, dtype: torch.dtype) -> None:
    outcome = op_samples.check(opinfo.Device(), op, dtype, samples=1)
    if outcome.kind == "none":
        pytest.skip(outcome.reason)
    cause = (outcomes.declared(outcome.op, str(dtype).removeprefix("torch."), ON_CPU) or ("", ""))[0]
    if outcome.kind in ("fell", "refused") and cause:
        assert cause in outcome.reason
    else:
        assert (outcome.kind, outcome.reason) == ("passed", "")


# Eager rounds what its kernels for 16 bits keep between two products or sums; the device rounds once, and lies nearer to double precision.
ROUNDED_ONCE = ["nn.functional.scaled_dot_product_attention", "masked.log_softmax"]


@pytest.mark.parametrize("name", ROUNDED_ONCE)
def test_where_eager_rounds_more_often_double_precision_decides(name: str) -> None:
    op = next(op for op in op_samples.operators(torch.float16) if op_samples.name_of(op) == name)
    outcome = op_samples.check(opinfo.Device(), op, torch.float16, samples=25)
    assert (outcome.kind, outcome.reason) == ("passed", "")
