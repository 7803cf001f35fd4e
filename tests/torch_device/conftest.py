"""The device of the tests: OCLC_DEVICE, else PoCL."""

from __future__ import annotations

import os
import pathlib

os.environ.setdefault("OCLC_DEVICE", "cpu")

import oclc_torch  # noqa: F401  torch loads it by itself; where it cannot, this says why
import pytest
import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    os.environ.setdefault("OCLC_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(0)


@pytest.fixture()
def nothing_on_the_cpu():
    """The test fails if an operator falls back."""
    before = dict(torch.ocl.fallbacks())
    yield
    assert torch.ocl.fallbacks() == before
