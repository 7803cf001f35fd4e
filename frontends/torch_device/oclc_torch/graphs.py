"""Graphs that were traced: what their form says, and numbers as their inputs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.fx import GraphModule, Interpreter

# What an operator computes of numbers of 16 bits torch computes in 32, and rounds once. Contractions do so by themselves: their
# operands stay as they are.
SHORT = (torch.float16, torch.bfloat16)
_REDUCTIONS = ("_softmax", "_log_softmax", "_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "avg_pool2d", "avg_pool3d", "_embedding_bag")
_CONTRACTIONS = (
    "mm", "bmm", "addmm", "baddbmm", "addbmm", "mv", "addmv", "dot", "vdot", "linear", "matmul", "convolution", "convolution_backward",
)  # fmt: skip


class Refused(Exception):
    """Why no plan serves a call; nothing: no result has elements."""


def leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from leaves(item)
    else:
        yield value


def output_of(module: GraphModule) -> torch.fx.Node:
    return next(node for node in module.graph.nodes if node.op == "output")


def rounds_between(module: GraphModule) -> bool:
    """Whether numbers of 16 bits are rounded between operators of a graph, or a number of more bits to them, and none is a contraction."""
    computing = 0
    reads = [node for node in module.graph.nodes if node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload)]
    if any(node.target.overloadpacket.__name__ in _REDUCTIONS for node in reads):
        computing += 1  # and rounds its sums
    for node in reads:
        if node.target.overloadpacket.__name__ in _CONTRACTIONS:
            return False
        computing += not node.target.is_view
        computing += any(isinstance(a, float) for a in leaves([*node.args, *node.kwargs.values()]))
    return computing > 1


def implied(expression: Any, environment: Any) -> bool:
    """Whether a guard says no more than that sizes are at least 2."""
    import sympy

    if isinstance(expression, sympy.Ne) and all(isinstance(side, sympy.Symbol) for side in expression.args):
        return True  # equal sizes would be one symbol
    two = {s: sympy.Symbol(f"_{s}", integer=True, nonnegative=True) + 2 for s in expression.free_symbols}
    try:
        return bool(sympy.simplify(expression.xreplace(two)) == True)  # noqa: E712  sympy's truth, not Python's
    except (TypeError, ValueError):
        return False


class WithNumbers(Interpreter):
    """Runs a graph with elements of a vector in the places of its numbers."""

    def __init__(self, module: GraphModule, places: dict[str, dict[Any, int]], vector: torch.Tensor, used: list[int]) -> None:
        super().__init__(module)
        self._places = places
        self._vector = vector
        self._index = {at: i for i, at in enumerate(used)}

    def run_node(self, n: torch.fx.Node) -> Any:
        places = self._places.get(n.name)
        if not places:
            return super().run_node(n)
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        values: list[Any] = list(args)
        named = dict(kwargs)
        tensors = [a for a in args if isinstance(a, torch.Tensor)]
        half = next((t.dtype for t in tensors if t.dtype in (torch.float16, torch.bfloat16)), None)
        if any(not t.dtype.is_floating_point for t in tensors):
            raise Refused("a number meets integers")
        if half is not None:  # a number of 32 bits must not lose its digits before it is used
            values = [a.float() if isinstance(a, torch.Tensor) else a for a in values]
        for key, at in places.items():
            number = torch.ops.aten.select.int(self._vector, 0, self._index[at])
            name = n.target.overloadpacket.__name__ if isinstance(n.target, torch._ops.OpOverload) else ""
            if key == "value" and name in ("addcmul", "addcdiv"):
                part = values[1] * values[2] if name == "addcmul" else values[1] / values[2]
                sum_of_both = values[0] + part * number
                return sum_of_both.to(half) if half is not None else sum_of_both
            if key == "alpha":
                values[1] = torch.ops.aten.mul.Tensor(values[1], number)
                del named["alpha"]
            elif isinstance(key, int):
                values[key] = number
            else:
                named[key] = number
        if not isinstance(n.target, torch._ops.OpOverload):
            raise Refused("a number is no argument of an operator")
        try:
            result = n.target.overloadpacket(*values, **named)
        except (RuntimeError, TypeError) as error:
            raise Refused(f"{n.target} takes the number as no tensor") from error
        return result.to(half) if half is not None and isinstance(result, torch.Tensor) else result
