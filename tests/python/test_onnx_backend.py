"""oclc.backend in the manner of onnx.backend.base, and ONNX's own node tests over it."""

from __future__ import annotations

import fnmatch
import os
import pathlib
import random
import unittest
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

import oclc.backend as backend  # noqa: E402
from conftest import DIGITS  # noqa: E402
from onnx.backend.test import BackendTest  # noqa: E402

PART = 60  # cases of an ordinary run


def test_prepare_and_run_give_the_models_outputs(images: np.ndarray, logits: np.ndarray) -> None:
    model = onnx.load(DIGITS / "model.onnx")
    rep = backend.prepare(model, "CPU")
    for n in (3, 5):
        np.testing.assert_allclose(rep.run([images[:n]])[0], logits[:n], rtol=2e-5, atol=2e-5)
    np.testing.assert_allclose(backend.run_model(model, {"image": images[:2]})[0], logits[:2], rtol=2e-5, atol=2e-5)


def test_a_node_runs_alone() -> None:
    a, b = np.random.default_rng(1).random((2, 3, 4), np.float32)
    found = backend.run_node(onnx.helper.make_node("Add", ["a", "b"], ["c"]), [a, b])
    np.testing.assert_array_equal(found[0], a + b)


def test_devices_are_told_apart() -> None:
    assert backend.supports_device("CPU") and backend.supports_device("OPENCL")
    assert not backend.supports_device("CUDA") and not backend.supports_device("OPENCL:no such device")
    with pytest.raises(ValueError, match="wanted CPU, OPENCL"):
        backend.OclcBackendRep(onnx.load(DIGITS / "model.onnx"), "TPU")


def cases() -> list[Any]:
    """The cases of ONNX's own runner that need no download, on CPU."""
    items = [
        (name, item.func)
        for category, found in BackendTest(backend.OclcBackend, __name__)._test_items.items()
        for name, item in found.items()
        if name.endswith("_cpu") and category != "RealModel"
    ]
    if os.environ.get("OCLC_TEST_ALL") == "1":
        return items
    return random.Random(5).sample(items, PART)


def declared(name: str) -> str | None:
    """Why the case is known to fail; None: it is not."""
    for line in (pathlib.Path(__file__).parent / "onnx_failures.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            pattern, cause = line.split(maxsplit=1)
            if fnmatch.fnmatchcase(name, pattern):
                return cause
    return None


@pytest.mark.parametrize("case", cases(), ids=lambda case: case[0])
def test_cases_of_onnx_pass_in_its_own_runner(case: Any) -> None:
    """By the runner's own comparison; a case that is declared to fail does, with the cause that is declared."""
    name, run = case
    cause = declared(name.removesuffix("_cpu"))
    if cause is None:
        run(unittest.TestCase())
        return
    with pytest.raises(Exception) as caught:
        run(unittest.TestCase())
    assert cause in " ".join(str(caught.value).split())
