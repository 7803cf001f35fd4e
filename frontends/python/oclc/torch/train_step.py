"""A whole training step as one plan: forward and backward pass and the optimizer, with all state on the device."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from .. import _core
from ..plan import Plan, Train, compile
from ..session import Step

__all__ = ["TrainStep", "plan"]


class _WithLoss(nn.Module):
    """The model and its loss: inputs, then targets; gives the loss."""

    def __init__(self, model: nn.Module, loss: Callable[..., torch.Tensor], inputs: int) -> None:
        super().__init__()
        self.model = model
        self._loss = loss
        self._inputs = inputs

    def forward(self, *arguments: Any) -> torch.Tensor:
        return self._loss(self.model(*arguments[: self._inputs]), *arguments[self._inputs :])


# Of each optimizer of torch: its name here, and the keys of its parameter groups under their names here.
_OPTIMIZERS: dict[type, tuple[str, dict[str, str]]] = {
    torch.optim.SGD: ("sgd", {"lr": "lr", "momentum": "momentum", "dampening": "dampening", "weight_decay": "weight_decay"}),
    torch.optim.Adam: ("adam", {"lr": "lr", "eps": "epsilon", "weight_decay": "weight_decay"}),
    torch.optim.AdamW: ("adamw", {"lr": "lr", "eps": "epsilon", "weight_decay": "weight_decay"}),
    torch.optim.Adagrad: ("adagrad", {"lr": "lr", "lr_decay": "lr_decay", "eps": "epsilon", "weight_decay": "weight_decay"}),
    torch.optim.RMSprop: (
        "rmsprop",
        {"lr": "lr", "alpha": "alpha", "eps": "epsilon", "momentum": "momentum", "weight_decay": "weight_decay"},
    ),
}

# Settings that change what a step computes and that the rows here do not have.
_REFUSED = ("amsgrad", "maximize", "centered", "initial_accumulator_value")


def _optimizer(optimizer: torch.optim.Optimizer) -> tuple[str, dict[str, float]]:
    row = _OPTIMIZERS.get(type(optimizer))
    if row is None:
        known = ", ".join(kind.__name__ for kind in _OPTIMIZERS)
        raise ValueError(
            f"TrainStep: wanted one of the optimizers {known}, found {type(optimizer).__name__}; use torch.compile for the model"
        )
    if len(optimizer.param_groups) != 1:
        raise ValueError(f"TrainStep: wanted one parameter group, found {len(optimizer.param_groups)}")
    group = optimizer.param_groups[0]
    for key in _REFUSED:
        if group.get(key):
            raise ValueError(f"TrainStep: {type(optimizer).__name__} with {key} is not there; use torch.compile for the model")
    # Some make their state, of zeros, before the first step.
    if any(float(state.get("step", 1)) > 0 for state in optimizer.state.values()):
        raise ValueError("TrainStep: wanted an optimizer that has made no step, found one with state")
    name, keys = row
    numbers = {here: float(group[there]) for there, here in keys.items()}
    if "betas" in group:
        numbers["beta1"], numbers["beta2"] = map(float, group["betas"])
    if group.get("nesterov"):
        numbers["nesterov"] = 1.0
    return name, numbers


def _readable(program: Any) -> Any:
    """The program; where it uses composite operators that the compiler does not read whole, with these decomposed."""
    known = set(_core.aten_operators())
    used = {str(node.target).replace("_.", ".") for node in program.graph.nodes if isinstance(node.target, torch._ops.OpOverload)}
    if used <= known:
        return program
    table = torch.export.default_decompositions()
    for op in list(table):
        if str(op) in known:
            del table[op]
    return program.run_decompositions(table)


def _compile(
    model: nn.Module,
    loss: Callable[..., torch.Tensor],
    optimizer: torch.optim.Optimizer,
    inputs: Sequence[torch.Tensor],
    targets: Sequence[torch.Tensor],
    dynamic: str | None,
    options: Mapping[str, Any],
) -> Plan:
    name, numbers = _optimizer(optimizer)
    trained = {id(p) for group in optimizer.param_groups for p in group["params"]}
    frozen = [f"model.{n}" for n, p in model.named_parameters() if id(p) not in trained or not p.requires_grad]
    example = (*inputs, *targets)
    shapes = None
    if dynamic is not None:
        batch = torch.export.Dim(dynamic, min=1, max=1 << 20)
        shapes = {"arguments": tuple({0: batch} for _ in example)}
    was_training = model.training
    program = torch.export.export(_WithLoss(model.train(), loss, len(inputs)), tuple(example), dynamic_shapes=shapes)
    model.train(was_training)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "step.pt2")
        torch.export.save(_readable(program), path)
        train = Train("output", name, numbers=numbers, frozen=frozen, mixed=options.get("mixed"), seed=options.get("seed", 0))
        rest = {key: value for key, value in options.items() if key not in ("mixed", "seed")}
        return compile(path, train=train, **rest)


class TrainStep:
    """step(x, y) enqueues a step of the optimizer on a batch; losses come back as steps finish.

    model: trained in training mode. loss: any function of the model's output and the targets that torch.export traces.
    optimizer: SGD, Adam, AdamW, Adagrad or RMSprop of torch.optim with one parameter group. example: (inputs, targets), each a
    tensor or a tuple of them. dynamic: name of the batch, axis 0 of all of them; None: the example's sizes. device: as of
    Plan.session(). mixed: None, "f16", "bf16". The learning rate is read from the optimizer before each step, so that
    schedulers work. sync() writes parameters and buffers back into the model.
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        loss: Callable[..., torch.Tensor],
        optimizer: torch.optim.Optimizer,
        example: tuple[Any, Any],
        dynamic: str | None = None,
        device: str = "",
        mixed: str | None = None,
        precision: str = "fp32",
        seed: int = 0,
    ) -> None:
        inputs, targets = (part if isinstance(part, tuple) else (part,) for part in example)
        options = {"device": device, "precision": precision, "mixed": mixed, "seed": seed}
        self.model = model
        self.optimizer = optimizer
        self.plan = _compile(model, loss, optimizer, inputs, targets, dynamic, options)
        self.session = self.plan.session(device)
        self._names = [name for name in self.plan.entries["train_step"].inputs if name not in self.plan.variables]
        self._count = len(inputs) + len(targets)
        self._trainer = self.session.trainer()
        self._lr = float(optimizer.param_groups[0]["lr"])

    def __call__(self, *batch: torch.Tensor) -> None:
        """Enqueues a step on inputs and targets, in the order of the example."""
        if len(batch) != self._count or len(batch) != len(self._names):
            raise TypeError(f"TrainStep: wanted {self._count} tensors, found {len(batch)}")
        lr = float(self.optimizer.param_groups[0]["lr"])
        if lr != self._lr:
            self._trainer.set(lr=lr)
            self._lr = lr
        self._trainer.step(**dict(zip(self._names, batch, strict=True)))

    def losses(self, wait: bool = True) -> list[float]:
        """Losses of the steps that have finished since the last call; with `wait`, of all that were enqueued."""
        return self._trainer.losses(wait)

    def results(self, wait: bool = False) -> list[Step]:
        return self._trainer.results(wait)

    @torch.no_grad()
    def sync(self) -> None:
        """Waits for the steps and writes parameters and floating-point buffers into the model."""
        self._trainer.results(wait=True)
        state = self.session.state
        for name, tensor in (*self.model.named_parameters(), *self.model.named_buffers()):
            if f"model.{name}" in self.plan.variables:
                tensor.copy_(torch.from_numpy(state[f"model.{name}"]))

    def save(self, path: str | os.PathLike[str]) -> None:
        """All state to a checkpoint, which load() and oclrun read."""
        self.session.save(path)

    def load(self, path: str | os.PathLike[str]) -> None:
        self.session.load(path)


def plan(
    model: nn.Module,
    *,
    loss: Callable[..., torch.Tensor],
    optimizer: torch.optim.Optimizer,
    example: tuple[Any, Any],
    dynamic: str | None = None,
    **options: Any,
) -> Plan:
    """The plan of TrainStep, for C, C++ and oclrun: `plan(..).save("step.bin")`. options: of oclc.compile()."""
    inputs, targets = (part if isinstance(part, tuple) else (part,) for part in example)
    return _compile(model, loss, optimizer, inputs, targets, dynamic, options)
