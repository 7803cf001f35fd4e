"""PyTorch's own samples of its modules and optimizers through the backend: equal to eager's, or refused by name and declared.

By default a seeded part of them runs; OCLC_TEST_ALL=1 runs all.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")

import moduleinfo  # noqa: E402
import optiminfo  # noqa: E402
import outcomes  # noqa: E402


def chosen(cases: Any, count: int) -> list[Any]:
    given = list(cases)
    if os.environ.get("OCLC_TEST_ALL") != "1":
        given = random.Random(5).sample(given, count)
    return [pytest.param(check, id=name) for name, check in given]


@pytest.mark.parametrize("check", [*chosen(moduleinfo.cases(torch.float32, 1), 6), *chosen(optiminfo.cases(100), 4)])
def test_a_module_or_an_optimizer_equals_eager_or_is_declared_to_be_refused(check: Callable[[], outcomes.Outcome]) -> None:
    outcome = check()
    if outcome.kind == "none":
        pytest.skip(outcome.reason)
    assert outcomes.as_declared(outcome, "float32") == ""
