"""Ordinary training loops on the device."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional as F


def small_net() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3), nn.ReLU(),
        nn.Flatten(), nn.Linear(16 * 2 * 2, 10),
    )  # fmt: skip


def losses(device: str, optimizer, steps: int = 6, **options) -> list[float]:
    torch.manual_seed(1)
    model = small_net().to(device)
    step = optimizer(model.parameters(), **options)
    x, y = torch.randn(8, 1, 8, 8).to(device), torch.randint(0, 10, (8,)).to(device)
    found = []
    for _ in range(steps):
        step.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        step.step()
        found.append(loss.detach())
    return [float(v) for v in found]


@pytest.mark.parametrize(
    ("optimizer", "options"),
    [
        (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9}),
        (torch.optim.AdamW, {"lr": 1e-2}),
        (torch.optim.AdamW, {"lr": 1e-2, "fused": True}),
    ],
)
def test_losses_are_the_cpus(optimizer, options, nothing_on_the_cpu):
    found = losses("ocl", optimizer, **options)
    expected = losses("cpu", optimizer, **{k: v for k, v in options.items() if k != "fused"})
    assert found == pytest.approx(expected, rel=1e-4, abs=1e-5)
    assert found[-1] < found[0]


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("betas", [(0.9, 0.999), (0.0, 0.99)])
def test_an_adam_step_is_as_exact_as_the_cpus(betas, fused, nothing_on_the_cpu):
    def after_two_steps(device: str, dtype: torch.dtype) -> torch.Tensor:
        weight = torch.zeros(100, device=device, dtype=dtype, requires_grad=True)
        step = torch.optim.AdamW([weight], 1e-3, betas=betas, fused=fused)
        for gradient in torch.randn(2, 100, generator=torch.Generator().manual_seed(1)):
            weight.grad = gradient.to(device, dtype)
            step.step()
        return weight.detach().cpu().double()

    exact = after_two_steps("cpu", torch.float64)
    assert (after_two_steps("ocl", torch.float32) - exact).abs().max() < 4e-7 * exact.abs().max()


def test_a_checkpoint_goes_to_the_cpu_and_back(tmp_path):
    model = small_net().to("ocl").eval()
    torch.save(model.state_dict(), tmp_path / "model.pt")
    other = small_net().eval()
    other.load_state_dict(torch.load(tmp_path / "model.pt", map_location="cpu"))
    x = torch.randn(2, 1, 8, 8)
    torch.testing.assert_close(model(x.to("ocl")).cpu(), other(x), rtol=1e-4, atol=1e-5)


def test_autocast_computes_in_16_bits():
    x = torch.randn(4, 8, device="ocl")
    layer = nn.Linear(8, 3).to("ocl")
    with torch.autocast("ocl", dtype=torch.bfloat16):
        assert layer(x).dtype == torch.bfloat16
        assert F.softmax(layer(x), -1).dtype == torch.float32


class Tied(nn.Module):
    """As language models are: the rows of the embedding are the weights of the head."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.head = nn.Embedding(5, 4), nn.Linear(4, 5, bias=False)
        self.head.weight = self.words.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.words(x))


def test_modules_share_a_parameter_on_the_device_too(nothing_on_the_cpu):
    model = Tied()
    parameter, expected = model.words.weight, copy.deepcopy(model)
    x, y = torch.tensor([0, 3, 3]), torch.tensor([1, 2, 4])
    F.cross_entropy(model(x), y).backward()
    model.to("ocl")
    assert model.head.weight is model.words.weight is parameter
    assert parameter.device.type == parameter.grad.device.type == "ocl"
    for m, device in ((model, "ocl"), (expected, "cpu")):
        m.zero_grad()
        F.cross_entropy(m(x.to(device)), y.to(device)).backward()
    torch.testing.assert_close(parameter.grad.cpu(), expected.head.weight.grad)
    model.cpu()
    assert model.head.weight is model.words.weight is parameter and parameter.device.type == "cpu"


def test_an_optimizer_follows_the_parameters_to_the_device(nothing_on_the_cpu):
    layer = nn.Linear(3, 2)
    step = torch.optim.SGD(layer.parameters(), 0.1)
    before = layer.weight.detach().clone()
    layer.to("ocl")(torch.ones(1, 3, device="ocl")).sum().backward()
    step.step()
    torch.testing.assert_close(layer.weight.detach().cpu(), before - 0.1)
