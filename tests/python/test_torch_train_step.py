"""TrainStep beside the same optimizer in eager PyTorch."""

from __future__ import annotations

import copy
import pathlib
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import oclc  # noqa: E402
import oclc.torch as oclc_torch  # noqa: E402
from test_torch_compile import Convolutions  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "sgd": lambda p: torch.optim.SGD(p, 0.05),
    "sgd_momentum": lambda p: torch.optim.SGD(p, 0.05, momentum=0.9, nesterov=True, weight_decay=0.01),
    "adam": lambda p: torch.optim.Adam(p, 0.01, weight_decay=0.01),
    "adamw": lambda p: torch.optim.AdamW(p, 0.01, betas=(0.8, 0.99)),
    "adagrad": lambda p: torch.optim.Adagrad(p, 0.01, lr_decay=0.1),
    "rmsprop": lambda p: torch.optim.RMSprop(p, 0.001, momentum=0.5),
    "rmsprop_centered": lambda p: torch.optim.RMSprop(p, 0.001, centered=True),
    "nadam": lambda p: torch.optim.NAdam(p, 0.01, weight_decay=0.01),
    "nadam_decoupled": lambda p: torch.optim.NAdam(p, 0.01, weight_decay=0.01, decoupled_weight_decay=True),
    "adam_amsgrad": lambda p: torch.optim.Adam(p, 0.01, amsgrad=True),
    "adamw_maximize": lambda p: torch.optim.AdamW(p, 0.01, maximize=True),
    "adagrad_from_one": lambda p: torch.optim.Adagrad(p, 0.01, initial_accumulator_value=1.0),
}


def perceptron() -> nn.Module:
    torch.manual_seed(2)
    return nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 4))


def batch(n: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(n)
    return torch.randn(n, 6, generator=generator), torch.randint(4, (n,), generator=generator)


def eager_losses(model: nn.Module, optimizer: torch.optim.Optimizer, loss: Any, batches: list[Any]) -> list[float]:
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        value = loss(model(x), y)
        value.backward()
        optimizer.step()
        losses.append(value.item())
    return losses


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_losses_and_parameters_equal_eager(name: str) -> None:
    model = perceptron()
    other = copy.deepcopy(model)
    batches = [batch(8)] * 4
    step = oclc_torch.TrainStep(
        model, loss=F.cross_entropy, optimizer=OPTIMIZERS[name](model.parameters()), example=batches[0], device="cpu"
    )
    for x, y in batches:
        step(x, y)
    expected = eager_losses(other, OPTIMIZERS[name](other.parameters()), F.cross_entropy, batches)
    assert step.losses() == pytest.approx(expected, rel=1e-4, abs=1e-5)
    step.sync()
    for p, q in zip(model.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(p, q, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", ["sgd_momentum", "adam_amsgrad", "nadam", "adagrad", "rmsprop"])
def test_the_optimizers_state_comes_back_and_goes_in(name: str) -> None:
    """Two steps by a plan, two by torch from the state that came back, two by another plan from torch's: as six by torch."""
    model = perceptron()
    other = copy.deepcopy(model)
    x, y = batch(8)
    ours, theirs = OPTIMIZERS[name](model.parameters()), OPTIMIZERS[name](other.parameters())
    losses: list[float] = []
    for part in range(3):
        if part == 1:
            losses += eager_losses(model, ours, F.cross_entropy, [(x, y)] * 2)
            continue
        step = oclc_torch.TrainStep(model, loss=F.cross_entropy, optimizer=ours, example=(x, y), device="cpu")
        step(x, y)
        step(x, y)
        losses += step.losses()
        step.sync()
    assert losses == pytest.approx(eager_losses(other, theirs, F.cross_entropy, [(x, y)] * 6), rel=1e-4, abs=1e-5)
    for p, q in zip(model.parameters(), other.parameters(), strict=True):
        assert ours.state[p].keys() == theirs.state[q].keys()
        for key, value in theirs.state[q].items():
            torch.testing.assert_close(ours.state[p][key], value, rtol=1e-3, atol=1e-5, msg=lambda m, k=key: f"{k}: {m}")


def test_running_statistics_come_back() -> None:
    torch.manual_seed(1)
    model = Convolutions()
    other = copy.deepcopy(model).train()
    x, y = torch.randn(4, 3, 16, 16), torch.randint(5, (4,))
    step = oclc_torch.TrainStep(
        model, loss=F.cross_entropy, optimizer=torch.optim.SGD(model.parameters(), 0.05), example=(x, y), device="cpu"
    )
    for _ in range(3):
        step(x, y)
    eager_losses(other, torch.optim.SGD(other.parameters(), 0.05), F.cross_entropy, [(x, y)] * 3)
    step.sync()
    for name in ("body.1.running_mean", "body.1.running_var"):
        torch.testing.assert_close(model.get_buffer(name), other.get_buffer(name), rtol=1e-3, atol=1e-4)


def test_any_function_may_be_the_loss_and_the_batch_may_change() -> None:
    def loss(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return (output.softmax(-1).gather(1, target[:, None]) - 1).square().mean() + output.square().mean() * 0.01

    model = perceptron()
    other = copy.deepcopy(model)
    batches = [batch(8), batch(3), batch(17)]
    step = oclc_torch.TrainStep(
        model, loss=loss, optimizer=torch.optim.SGD(model.parameters(), 0.1), example=batches[0], dynamic="N", device="cpu"
    )
    for x, y in batches:
        step(x, y)
    expected = eager_losses(other, torch.optim.SGD(other.parameters(), 0.1), loss, batches)
    assert step.losses() == pytest.approx(expected, rel=1e-4, abs=1e-5)


def test_schedulers_change_the_learning_rate() -> None:
    model = perceptron()
    other = copy.deepcopy(model)
    optimizers = [torch.optim.SGD(m.parameters(), 0.5) for m in (model, other)]
    schedulers = [torch.optim.lr_scheduler.StepLR(o, 1, 0.1) for o in optimizers]
    x, y = batch(8)
    step = oclc_torch.TrainStep(model, loss=F.cross_entropy, optimizer=optimizers[0], example=(x, y), device="cpu")
    expected = []
    for _ in range(3):
        step(x, y)
        schedulers[0].step()
        expected += eager_losses(other, optimizers[1], F.cross_entropy, [(x, y)])
        schedulers[1].step()
    assert step.losses() == pytest.approx(expected, rel=1e-4, abs=1e-5)


def test_a_checkpoint_goes_on_and_the_plan_is_a_file(tmp_path: pathlib.Path) -> None:
    x, y = batch(8)

    def make() -> oclc_torch.TrainStep:
        model = perceptron()
        return oclc_torch.TrainStep(
            model, loss=F.cross_entropy, optimizer=torch.optim.Adam(model.parameters(), 0.01), example=(x, y), device="cpu"
        )

    first = make()
    for _ in range(4):
        first(x, y)
        if len(first.losses()) and not (tmp_path / "c.state").exists():
            first.save(tmp_path / "c.state")
    second = make()
    second.load(tmp_path / "c.state")
    second(x, y)
    first.plan.save(tmp_path / "step.bin")
    assert "train_step" in oclc.load(tmp_path / "step.bin").entries
    assert len(second.losses()) == 1


def test_other_optimizers_and_settings_are_refused_by_name() -> None:
    model = perceptron()
    x, y = batch(8)

    def attempt(optimizer: torch.optim.Optimizer) -> None:
        oclc_torch.TrainStep(model, loss=F.cross_entropy, optimizer=optimizer, example=(x, y), device="cpu")

    with pytest.raises(ValueError, match="found LBFGS"):
        attempt(torch.optim.LBFGS(model.parameters()))
    with pytest.raises(ValueError, match="found Adadelta"):
        attempt(torch.optim.Adadelta(model.parameters()))
    with pytest.raises(ValueError, match="one parameter group, found 2"):
        attempt(torch.optim.SGD([{"params": [p]} for p in list(model.parameters())[:2]], 0.1))


def test_a_loss_that_is_no_number_is_refused() -> None:
    model = perceptron()
    with pytest.raises(oclc.CompileError, match="one floating-point number, the loss"):
        oclc_torch.TrainStep(
            model,
            loss=lambda output, target: output,
            optimizer=torch.optim.SGD(model.parameters(), 0.1),
            example=batch(8),
            device="cpu",
        )
