"""What the tests share: the digits network and its images."""

from __future__ import annotations

import os
import pathlib

import numpy as np
import oclc
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples" / "digits"


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    os.environ.setdefault("OCLC_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def fresh_torch() -> None:
    """torch knows no graph of an earlier test, and draws the same numbers in each."""
    torch = pytest.importorskip("torch")
    torch._dynamo.reset()
    torch.manual_seed(1)


@pytest.fixture(scope="session")
def digits() -> oclc.Plan:
    return oclc.compile(DIGITS / "model.onnx", device="cpu", report=True)


@pytest.fixture(scope="session")
def images() -> np.ndarray:
    return np.load(DIGITS / "test_images.npy")


@pytest.fixture(scope="session")
def logits() -> np.ndarray:
    return np.load(DIGITS / "digits_logits.npy")


@pytest.fixture()
def session(digits: oclc.Plan) -> oclc.Session:
    return digits.session("cpu")
