"""Optimizers of torch.optim as rows of the compiler's, and their state on both sides."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import nn

_ADAM = {"lr": "lr", "eps": "epsilon", "weight_decay": "weight_decay", "amsgrad": "amsgrad", "maximize": "maximize"}
_ADAM_STATE = {"mean": "exp_avg", "square": "exp_avg_sq", "largest": "max_exp_avg_sq"}


@dataclasses.dataclass(frozen=True)
class Row:
    """An optimizer: its name here; keys of its parameter groups, and of its state for each parameter, by what they are called
    here; whether that state counts steps."""

    name: str
    numbers: dict[str, str]
    state: dict[str, str]
    counts: bool = True


ROWS: dict[type, Row] = {
    torch.optim.SGD: Row(
        "sgd",
        {"lr": "lr", "momentum": "momentum", "dampening": "dampening", "weight_decay": "weight_decay", "nesterov": "nesterov",
         "maximize": "maximize"},
        {"momentum": "momentum_buffer"},
        counts=False,
    ),
    torch.optim.Adam: Row("adam", _ADAM, _ADAM_STATE),
    torch.optim.AdamW: Row("adamw", _ADAM, _ADAM_STATE),
    torch.optim.NAdam: Row(
        "nadam",
        {"lr": "lr", "eps": "epsilon", "weight_decay": "weight_decay", "momentum_decay": "momentum_decay",
         "decoupled_weight_decay": "decoupled", "maximize": "maximize"},
        {"mean": "exp_avg", "square": "exp_avg_sq"},
    ),
    torch.optim.Adagrad: Row(
        "adagrad",
        {"lr": "lr", "lr_decay": "lr_decay", "eps": "epsilon", "weight_decay": "weight_decay", "maximize": "maximize"},
        {"sum": "sum"},
    ),
    torch.optim.RMSprop: Row(
        "rmsprop",
        {"lr": "lr", "alpha": "alpha", "eps": "epsilon", "momentum": "momentum", "weight_decay": "weight_decay",
         "centered": "centered", "maximize": "maximize"},
        {"square": "square_avg", "momentum": "momentum_buffer", "mean": "grad_avg"},
    ),
}  # fmt: skip


def row_of(optimizer: torch.optim.Optimizer) -> tuple[Row, dict[str, float]]:
    """The optimizer's row and its numbers. ValueError for what the rows do not have."""
    row = ROWS.get(type(optimizer))
    # Adam with its decay apart from the gradients is AdamW.
    if row and type(optimizer) is torch.optim.Adam and optimizer.param_groups[0].get("decoupled_weight_decay"):
        row = ROWS[torch.optim.AdamW]
    if row is None:
        known = ", ".join(kind.__name__ for kind in ROWS)
        raise ValueError(
            f"TrainStep: wanted one of the optimizers {known}, found {type(optimizer).__name__}; use torch.compile for the model"
        )
    if len(optimizer.param_groups) != 1:
        raise ValueError(f"TrainStep: wanted one parameter group, found {len(optimizer.param_groups)}")
    group = optimizer.param_groups[0]
    numbers = {here: float(group[there]) for there, here in row.numbers.items() if there in group}
    if "betas" in group:
        numbers["beta1"], numbers["beta2"] = map(float, group["betas"])
    return row, numbers


def steps_made(optimizer: torch.optim.Optimizer) -> int:
    """How many steps the optimizer's state says it has made; 1 where it has state and counts none."""
    return max((int(float(state.get("step", 1))) for state in optimizer.state.values() if state), default=0)


def steps_of(numbers: Mapping[str, float], values: Mapping[str, Any]) -> int:
    """How many steps the state here says were made; 0 where it tells nothing, as of SGD."""
    if "optimizer.step" in values:
        return int(values["optimizer.step"])
    power = float(values["optimizer.beta2_power"]) if "optimizer.beta2_power" in values else 1.0
    return round(math.log(power) / math.log(numbers["beta2"])) if 0 < power < 1 else 0


def scalars_after(row: Row, numbers: Mapping[str, float], steps: int) -> dict[str, float]:
    """The state here that torch computes anew from the number of steps."""
    beta1, beta2 = numbers.get("beta1", 0.0), numbers.get("beta2", 0.0)
    product = 1.0
    for step in range(1, steps + 1 if row.name == "nadam" else 1):
        product *= beta1 * (1 - 0.5 * 0.96 ** (step * numbers["momentum_decay"]))
    return {
        "optimizer.beta1_power": beta1**steps,
        "optimizer.beta2_power": beta2**steps,
        "optimizer.momentum_product": product,
        "optimizer.step": float(steps),
    }


def tensors_of(row: Row, model: nn.Module, optimizer: torch.optim.Optimizer) -> Iterator[tuple[str, nn.Parameter, str]]:
    """Of each trained parameter and each tensor of its state: the name here, the parameter, the key there."""
    trained = {id(p) for group in optimizer.param_groups for p in group["params"]}
    for name, parameter in model.named_parameters():
        if id(parameter) in trained:
            for here, there in row.state.items():
                yield f"model.{name}/{here}", parameter, there


def write_state(row: Row, model: nn.Module, optimizer: torch.optim.Optimizer, values: Mapping[str, Any], steps: int) -> None:
    """The state here into optimizer.state, as the optimizer makes it itself."""
    for name, parameter, key in tensors_of(row, model, optimizer):
        if name not in values:
            continue
        state = optimizer.state[parameter]
        value = torch.from_numpy(values[name]).to(parameter.dtype)
        if isinstance(state.get(key), torch.Tensor):
            state[key].copy_(value)
        else:
            state[key] = value.reshape(parameter.shape).clone()
        if row.counts:
            state["step"] = torch.tensor(float(steps))
        if row.name == "nadam":
            state["mu_product"] = torch.tensor(float(values["optimizer.momentum_product"]))
