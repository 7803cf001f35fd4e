"""The option freeze: parameters and buffers become constants of the plan, as in a plan of a model's file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.fx import GraphModule

from .fx_json import in_memory
from .plan_call import PlanCall

Stamp = tuple[int, int]


def is_constant(value: Any) -> bool:
    """Whether the argument is a parameter or a buffer of the compiled module."""
    return isinstance(value, nn.Parameter) or getattr(value, "_dynamo_static_input_type", None) is not None


class FrozenCall:
    """A plan that holds the parameters of its first call. Each call compares where they lie and how often torch has written into
    them; after a change the plan is compiled anew. What changes from call to call is an input from then on. Writes that torch
    does not count, those through `.data`, stay unseen."""

    def __init__(self, module: GraphModule, make: Callable[[GraphModule, dict[str, torch.Tensor]], PlanCall]) -> None:
        self._module = module
        self._make = make
        self._names = [node.name for node in module.graph.nodes if node.op == "placeholder"]
        self._stamps: dict[int, Stamp] = {}
        self._changed: set[int] = set()  # at the last call
        self._changing: set[int] = set()  # at two calls in a row
        self._call: PlanCall | None = None

    def __call__(self, *arguments: Any) -> list[Any]:
        changed = {i for i, stamp in self._stamps.items() if _stamp(arguments[i]) != stamp}
        if self._call is None or changed:
            self._changing |= changed & self._changed
            self._call = self._compile(arguments)
        self._changed = changed
        return self._call(*arguments)

    def _compile(self, arguments: tuple[Any, ...]) -> PlanCall:
        frozen = [i for i, value in enumerate(arguments) if is_constant(value) and i not in self._changing]
        self._stamps = {i: _stamp(arguments[i]) for i in frozen}
        return self._make(self._module, {self._names[i]: in_memory(arguments[i].detach()).contiguous() for i in frozen})


def _stamp(value: torch.Tensor) -> Stamp:
    return value.data_ptr(), 0 if value.is_inference() else value._version
