"""A plan in place of a graph of AOTAutograd."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import GraphModule

from ..devices import Context
from ..plan import Plan
from .fx_json import GraphText


@dataclasses.dataclass
class Counters:
    """What the backend has done in this process."""

    compiled: int = 0  # graphs that were compiled
    cached: int = 0  # plans taken from the cache on disk
    calls: int = 0  # of plans
    launches: int = 0  # kernels that these calls launched; those inside a loop count once
    eager: int = 0  # calls with a size of 0, which ran in torch
    copies: int = 0  # strided inputs that were copied
    fallbacks: int = 0  # operators of compiled graphs that run in torch, see the option fallback


counters = Counters()


class PlanCall:
    """A plan in place of a graph of AOTAutograd: takes its placeholders, gives its outputs."""

    def __init__(self, plan: Plan, graph: GraphText, module: GraphModule, context: Context) -> None:
        self.plan = plan
        self._graph = graph
        self._module = module
        self._session = plan.session(context)
        self._run = self._session._handle.run_addresses
        entry = next(iter(plan.entries.values()))
        self._launches = entry.launches
        used = list(entry.inputs)
        placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
        constants = [node.name for node in module.graph.nodes if node.op == "get_attr"]
        position = {node.name: i for i, node in enumerate(placeholders)}
        # Of each input of the plan: a position among the arguments, or a constant.
        self._sources: list[int | torch.Tensor] = [
            position[name] if name in position else graph.constants[constants.index(name)] for name in used
        ]
        # Symbols that no input's shape gives by itself, and the values that they have.
        shapes = {d for tensor in entry.inputs.values() for d in tensor.shape}
        self._dims = [(name, at) for name, at in graph.symbols.items() if name in plan.symbols and name not in shapes]
        self._bound: dict[str, int] = {}
        self._makers = [_maker(value, graph.symbols) for value in graph.values]

    def __call__(self, *arguments: Any) -> list[Any]:
        counters.calls += 1
        tensors: list[torch.Tensor] = []
        for source in self._sources:
            tensor = arguments[source] if isinstance(source, int) else source
            if tensor.device.type != "cpu":
                raise RuntimeError(f"backend 'oclc' takes tensors of the CPU, found one on {tensor.device}; move it by .cpu()")
            if not tensor.is_contiguous():
                counters.copies += 1
                tensor = tensor.contiguous()
            tensors.append(tensor)
        results = [make(arguments) for make in self._makers]
        outputs = [r for r, index in zip(results, self._graph.outputs, strict=True) if index is not None]
        if any(t.numel() == 0 for t in tensors) or any(t.numel() == 0 for t in outputs):
            counters.eager += 1
            return list(self._module(*arguments))
        for name, position in self._dims:
            value = int(arguments[position])
            if self._bound.get(name) != value:
                self._session._handle.bind_dim(name, value)
                self._bound[name] = value
        counters.launches += self._launches
        written = [t if t.is_contiguous() else torch.empty(t.shape, dtype=t.dtype) for t in outputs]
        self._run(0, [tuple(t.shape) for t in tensors], [t.data_ptr() for t in tensors], [t.data_ptr() for t in written])
        for wanted, found in zip(outputs, written, strict=True):
            if wanted is not found:
                _copy(wanted, found)
        return results


def _copy(wanted: torch.Tensor, found: torch.Tensor) -> None:
    """Elements that share memory, those of an expanded tensor, are written once."""
    for axis, (size, stride) in enumerate(zip(wanted.shape, wanted.stride(), strict=True)):
        if stride == 0 and size > 1:
            wanted, found = wanted.narrow(axis, 0, 1), found.narrow(axis, 0, 1)
    wanted.copy_(found)


def _maker(value: Any, symbols: dict[str, int]) -> Callable[[Sequence[Any]], Any]:
    """What makes an output of a call from its arguments: an empty tensor of the sizes and strides that torch expects, or the
    number that an expression is."""
    if isinstance(value, torch.Tensor):
        sizes = [_number(d, symbols) for d in value.shape]
        strides = [_number(d, symbols) for d in value.stride()]
        dtype = value.dtype
        if all(isinstance(d, int) for d in (*sizes, *strides)):
            return lambda arguments: torch.empty_strided(sizes, strides, dtype=dtype)
        return lambda arguments: torch.empty_strided(
            [_at(d, arguments) for d in sizes], [_at(d, arguments) for d in strides], dtype=dtype
        )
    number = _number(value, symbols)
    return lambda arguments: _at(number, arguments)


def _number(value: Any, symbols: dict[str, int]) -> Any:
    """A number as it is, or a function of the arguments."""
    if not isinstance(value, torch.SymInt):
        return value
    import sympy  # type: ignore[import-untyped, unused-ignore]

    expression = value.node.expr
    names = sorted(str(s) for s in expression.free_symbols)
    missing = [name for name in names if name not in symbols]
    if missing:
        raise RuntimeError(f"backend 'oclc': the size {expression} depends on {', '.join(missing)}, which no argument holds")
    positions = [symbols[name] for name in names]
    if isinstance(expression, sympy.Symbol):
        return lambda arguments: arguments[positions[0]]
    free = {str(s): s for s in expression.free_symbols}
    return lambda arguments: int(
        expression.xreplace({free[name]: sympy.Integer(int(arguments[at])) for name, at in zip(names, positions, strict=True)})
    )


def _at(value: Any, arguments: Sequence[Any]) -> Any:
    return value(arguments) if callable(value) else value
