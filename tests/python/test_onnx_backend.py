"""oclc.backend in the manner of onnx.backend.base, and ONNX's own node tests over it."""

from __future__ import annotations

import os
import random
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

import oclc  # noqa: E402
import oclc.backend as backend  # noqa: E402
from conftest import DIGITS  # noqa: E402

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
    """The node tests that the package makes in code."""
    from onnx.backend.test.case.node import collect_testcases

    found = [case for case in collect_testcases(None) if case.model is not None and case.data_sets]
    if os.environ.get("OCLC_TEST_ALL") == "1":
        return found
    return random.Random(5).sample(found, PART)


def same(found: Any, expected: Any, case: Any) -> None:
    if isinstance(expected, (list, tuple)):
        assert len(found) == len(expected)
        for f, e in zip(found, expected, strict=True):
            same(f, e, case)
        return
    expected = np.asarray(expected)
    if expected.dtype.kind in "OUS":
        assert np.asarray(found, object).tolist() == expected.astype(object).tolist()
        return
    assert np.shape(found) == expected.shape
    if np.asarray(found).dtype != expected.dtype:  # bits of types that numpy lacks
        assert np.asarray(found).dtype.itemsize == expected.dtype.itemsize
        np.testing.assert_array_equal(np.asarray(found), expected.view(np.asarray(found).dtype))
        return
    # The reference rounds every intermediate to float16, kernels the stored ones: two units in the last place.
    half = expected.dtype == np.float16
    np.testing.assert_allclose(found, expected, rtol=max(case.rtol, 2e-3 if half else 1e-3), atol=max(case.atol, 1e-6))


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_onnx_node_cases(case: Any) -> None:
    """Passes, or is refused by name."""
    try:
        rep = backend.prepare(case.model, "CPU")
        for inputs, outputs in case.data_sets:
            same(list(rep.run(list(inputs))), list(outputs), case)
    except oclc.CompileError as error:
        pytest.skip(f"refused: {str(error)[:200]}")
