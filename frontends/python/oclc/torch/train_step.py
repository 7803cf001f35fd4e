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
from .optimizers import row_of, scalars_after, steps_made, steps_of, tensors_of, write_state

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
    row, numbers = row_of(optimizer)
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
        train = Train("output", row.name, numbers=numbers, frozen=frozen, mixed=options.get("mixed"), seed=options.get("seed", 0))
        rest = {key: value for key, value in options.items() if key not in ("mixed", "seed")}
        return compile(path, train=train, **rest)


class TrainStep:
    """step(x, y) enqueues a step of the optimizer on a batch; losses come back as steps finish.

    model: trained in training mode. loss: any function of the model's output and the targets that torch.export traces.
    optimizer: SGD, Adam, AdamW, NAdam, Adagrad or RMSprop of torch.optim with one parameter group; what state it has is where
    training goes on from. example: (inputs, targets), each a tensor or a tuple of them. dynamic: name of the batch, axis 0 of
    all of them; None: the example's sizes. device: as of Plan.session(). mixed: None, "f16", "bf16". The learning rate is read
    from the optimizer before each step, so that schedulers work. sync() writes parameters and buffers back into the model, and
    the state of the optimizer into the optimizer.
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
        self._steps = steps_made(optimizer)
        self._take_state()

    def __call__(self, *batch: torch.Tensor) -> None:
        """Enqueues a step on inputs and targets, in the order of the example."""
        if len(batch) != self._count or len(batch) != len(self._names):
            raise TypeError(f"TrainStep: wanted {self._count} tensors, found {len(batch)}")
        lr = float(self.optimizer.param_groups[0]["lr"])
        if lr != self._lr:
            self._trainer.set(lr=lr)
            self._lr = lr
        self._trainer.step(**dict(zip(self._names, batch, strict=True)))
        self._steps += 1

    def losses(self, wait: bool = True) -> list[float]:
        """Losses of the steps that have finished since the last call; with `wait`, of all that were enqueued."""
        return self._trainer.losses(wait)

    def results(self, wait: bool = False) -> list[Step]:
        return self._trainer.results(wait)

    @torch.no_grad()
    def sync(self) -> None:
        """Waits for the steps and writes parameters and floating-point buffers into the model, and the optimizer's state into
        the optimizer, which goes on from there in torch or in another TrainStep."""
        self._trainer.results(wait=True)
        state = self.session.state
        for name, tensor in (*self.model.named_parameters(), *self.model.named_buffers()):
            if f"model.{name}" in self.plan.variables:
                tensor.copy_(torch.from_numpy(state[f"model.{name}"]))
        write_state(row_of(self.optimizer)[0], self.model, self.optimizer, state, self._steps)

    def _take_state(self) -> None:
        row, numbers = row_of(self.optimizer)
        state = self.session.state
        for name, parameter, key in tensors_of(row, self.model, self.optimizer):
            value = self.optimizer.state.get(parameter, {}).get(key)
            if name in state and isinstance(value, torch.Tensor):
                state[name] = value.detach().float().contiguous()
        for name, number in scalars_after(row, numbers, self._steps).items():
            if name in state:
                state[name] = number

    def save(self, path: str | os.PathLike[str]) -> None:
        """All state to a checkpoint, which load() and oclrun read."""
        self.session.save(path)

    def load(self, path: str | os.PathLike[str]) -> None:
        self.session.load(path)
        self._steps = steps_of(row_of(self.optimizer)[1], self.session.state)


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
