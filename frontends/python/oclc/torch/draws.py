"""Operators that draw random numbers, inside a graph: torch draws at each call, before the plan, whose inputs the results are.

So numbers are those of eager PyTorch on the CPU, and `torch.manual_seed` repeats them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from torch.fx import Node

from .. import _core
from ..errors import CompileError
from .sizes import at, maker, number

# Operators that take a tensor for its shape and type alone.
_BY_SHAPE = {
    "aten.bernoulli.p", "aten.cauchy.default", "aten.exponential.default", "aten.geometric.default", "aten.log_normal.default",
    "aten.normal_functional.default", "aten.rand_like.default", "aten.randint_like.default", "aten.randint_like.low_dtype",
    "aten.randn_like.default", "aten.random.default", "aten.random.from", "aten.random.to", "aten.uniform.default",
}  # fmt: skip


@functools.cache
def _compiled() -> frozenset[str]:
    return frozenset(_core.aten_operators())


def is_drawn(node: Node) -> bool:
    op = node.target
    if node.op != "call_function" or not isinstance(op, torch._ops.OpOverload) or str(op) in _compiled():
        return False
    return torch.Tag.nondeterministic_seeded in op.tags and isinstance(node.meta.get("val"), torch.Tensor)


def dropout(x: torch.Tensor, p: float, train: bool | None) -> tuple[torch.Tensor, torch.Tensor]:
    """aten.native_dropout as torch computes it on the CPU."""
    if train is False or p == 0:
        return x, torch.ones_like(x, dtype=torch.bool)
    if p == 1:
        return torch.zeros_like(x), torch.zeros_like(x, dtype=torch.bool)
    mask = torch.ops.aten.bernoulli.p(x, 1 - p)
    return x * mask * (1 / (1 - p)), mask.to(torch.bool)


class Draw:
    """One of them. It takes the arguments of the graph's call."""

    def __init__(self, node: Node, positions: dict[str, int], symbols: dict[str, int]) -> None:
        self._op = cast(Any, node.target)
        self._node = node
        self._positions = positions
        self._symbols = symbols
        names = [a.name for a in self._op._schema.arguments]
        self._args = [self._argument(name, value) for name, value in zip(names, node.args, strict=False)]
        self._kwargs = {name: self._argument(name, value) for name, value in node.kwargs.items()}

    def __call__(self, arguments: Sequence[Any]) -> torch.Tensor:
        args = [at(a, arguments) for a in self._args]
        result: torch.Tensor = self._op(*args, **{name: at(a, arguments) for name, a in self._kwargs.items()})
        return result

    def _argument(self, name: str, value: Any) -> Any:
        """A value as it is, or a function of the graph's arguments."""
        if isinstance(value, (list, tuple)):
            items = [self._argument(name, item) for item in value]
            return (lambda arguments: [at(item, arguments) for item in items]) if any(map(callable, items)) else items
        if not isinstance(value, Node):
            return number(value, self._symbols)
        meta = value.meta.get("val")
        if not isinstance(meta, torch.Tensor):
            return number(meta, self._symbols)
        if name == "self" and str(self._op) in _BY_SHAPE:
            return maker(meta, self._symbols)
        if value.name in self._positions:
            return self._from(self._positions[value.name])
        raise CompileError(
            f"import: {self._node.name} ({self._op}): wanted random numbers whose distribution the graph's inputs give, found one "
            f"that '{value.name}' in the graph computes; option fallback runs it in torch",
            {"stage": "import", "node": self._node.name, "op": str(self._op), "found": value.name},
        )

    @staticmethod
    def _from(position: int) -> Callable[[Sequence[Any]], Any]:
        return lambda arguments: arguments[position]
