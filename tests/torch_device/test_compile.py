"""torch.compile(backend="oclc") on tensors of the device: they stay there."""

from __future__ import annotations

import pytest
import torch
from oclc.torch import counters
from torch import nn
from torch.nn import functional as F


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def test_a_function_compiles(nothing_on_the_cpu):
    a, b = torch.randn(4, 6), torch.randn(6)

    def function(x, y):
        return F.softmax(x * y + 1, -1), (x - y).t()

    before = counters.calls
    found = torch.compile(function, backend="oclc")(a.to("ocl"), b.to("ocl"))
    assert counters.calls == before + 1
    for x, y in zip(found, function(a, b), strict=True):
        assert x.device.type == "ocl" and x.stride() == y.stride()
        torch.testing.assert_close(x.cpu(), y)


def test_a_training_step_is_two_plans(nothing_on_the_cpu):
    def step(device: str, compiled: bool) -> list[torch.Tensor]:
        torch.manual_seed(1)
        model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 5)).to(device)
        run = torch.compile(model, backend="oclc") if compiled else model
        x, y = torch.randn(3, 1, 6, 6).to(device), torch.randint(5, (3,)).to(device)
        for _ in range(2):
            F.cross_entropy(run(x), y).backward()
        return [p.grad.cpu() for p in model.parameters()] + [b.cpu() for b in model.buffers()]

    before = counters.calls
    found = step("ocl", True)
    assert counters.calls == before + 4
    for x, y in zip(found, step("cpu", False), strict=True):
        torch.testing.assert_close(x, y, rtol=1e-4, atol=1e-5)


def test_sizes_stay_open(nothing_on_the_cpu):
    function = torch.compile(lambda x: (x * 2).sum(0), backend="oclc", dynamic=True)
    compiled = counters.compiled + counters.cached
    for n in (3, 5, 9):
        x = torch.randn(n, 4)
        torch.testing.assert_close(function(x.to("ocl")).cpu(), (x * 2).sum(0))
    assert counters.compiled + counters.cached == compiled + 1


def test_freeze_is_refused():
    function = torch.compile(lambda x: x + 1, backend="oclc", options={"freeze": True})
    with torch.no_grad(), pytest.raises(Exception, match="freeze wants tensors of the CPU, found ocl"):
        function(torch.ones(3, device="ocl"))


def test_what_the_compiler_does_not_read_runs_in_torch():
    def function(x):
        return torch.linalg.inv(x * 2) + 1

    x = torch.randn(3, 3) + 4 * torch.eye(3)
    compiled = torch.compile(function, backend="oclc", options={"fallback": True})
    with pytest.warns(UserWarning):
        found = compiled(x.to("ocl"))
    assert found.device.type == "ocl"
    torch.testing.assert_close(found.cpu(), function(x), rtol=1e-4, atol=1e-5)
