"""PyTorch's own samples of its operators (OpInfo) through the backend: equal to eager's, or refused by name and declared.

By default a seeded part of the operators runs; OCLC_TEST_ALL=1 runs all, in four element types.
"""

from __future__ import annotations

import os
import random
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")

import op_samples  # noqa: E402
import opinfo  # noqa: E402
import outcomes  # noqa: E402

PARTS = {torch.float32: 20, torch.float16: 3, torch.int64: 4, torch.bool: 3}  # operators of an ordinary run


def chosen() -> list[Any]:
    cases = []
    for dtype, count in PARTS.items():
        ops = op_samples.operators(dtype)
        if os.environ.get("OCLC_TEST_ALL") != "1":
            ops = random.Random(7).sample(ops, count)
        cases += [pytest.param(op, dtype, id=f"{op_samples.name_of(op)}-{str(dtype).removeprefix('torch.')}") for op in ops]
    return cases


@pytest.mark.parametrize(("op", "dtype"), chosen())
def test_an_operator_equals_eager_or_is_declared_to_be_refused(op: Any, dtype: torch.dtype) -> None:
    outcome = op_samples.check(opinfo.Compiled(), op, dtype, samples=1)
    if outcome.kind == "none":
        pytest.skip(outcome.reason)
    assert outcomes.as_declared(outcome, str(dtype).removeprefix("torch.")) == ""


def test_what_is_not_finite_has_its_place() -> None:
    infinity, nan = float("inf"), float("nan")
    exact = torch.tensor([-infinity, nan, 1.0], dtype=torch.float64)
    eager = torch.tensor([-infinity, nan, 1.002], dtype=torch.float16)
    for found, good in (
        ([-infinity, nan, 0.999], True),
        ([-infinity, nan, 1.1], False),
        ([infinity, nan, 1.0], False),
        ([-infinity, 0.0, 1.0], False),
        ([-infinity, nan, infinity], False),
    ):
        assert outcomes.as_good(torch.tensor(found, dtype=torch.float16), eager, exact, 0.0) == good
