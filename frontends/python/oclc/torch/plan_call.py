"""A plan in place of a graph of AOTAutograd."""

from __future__ import annotations

import dataclasses
import threading
from typing import Any

import torch
from torch.fx import GraphModule

from ..devices import Context
from ..plan import Plan
from .draws import Draw
from .fx_json import GraphText, in_memory
from .memory import Memory
from .sizes import maker


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
        self._draws = {node.name: Draw(node, position, graph.symbols) for node in graph.draws}
        # Of each input of the plan: a position among the arguments, the memory of one, a draw, or a constant.
        self._sources: list[int | Memory | Draw | torch.Tensor] = []
        for name in used:
            source = position.get(name, self._draws.get(name, graph.memories.get(name)))
            self._sources.append(graph.constants[constants.index(name)] if source is None else source)
        # Symbols that no input's shape gives by itself, and the values that they have.
        shapes = {d for tensor in entry.inputs.values() for d in tensor.shape}
        self._dims = [(name, at) for name, at in graph.symbols.items() if name in plan.symbols and name not in shapes]
        self._bound: dict[str, int] = {}
        self._lock = threading.Lock()  # a session runs one call at a time
        self._makers = [maker(value, graph.symbols) for value in graph.values]

    def __call__(self, *arguments: Any) -> list[Any]:
        counters.calls += 1
        inputs: list[Any] = []
        for source in self._sources:
            tensor = arguments[source] if isinstance(source, int) else source
            if isinstance(tensor, Memory):
                tensor = tensor.of(arguments)
            if isinstance(tensor, torch.Tensor):
                if tensor.is_complex() or tensor.is_neg():
                    tensor = in_memory(tensor)
                if tensor.device.type != "cpu":
                    raise RuntimeError(f"backend 'oclc' takes tensors of the CPU, found one on {tensor.device}; move it by .cpu()")
                if not tensor.is_contiguous():
                    counters.copies += 1
                    tensor = tensor.contiguous()
            inputs.append(tensor)
        results = [make(arguments) for make in self._makers]
        outputs = [r for r, index in zip(results, self._graph.outputs, strict=True) if index is not None]
        if any(t.numel() == 0 for t in outputs) or any(isinstance(t, torch.Tensor) and t.numel() == 0 for t in inputs):
            counters.eager += 1
            return list(self._module(*arguments))
        tensors = self._drawn(inputs, arguments) if self._draws else inputs
        written = [t if t.is_contiguous() else torch.empty(t.shape, dtype=t.dtype) for t in outputs]
        with self._lock:
            for name, position in self._dims:
                value = int(arguments[position])
                if self._bound.get(name) != value:
                    self._session._handle.bind_dim(name, value)
                    self._bound[name] = value
            counters.launches += self._launches
            self._run(0, [tuple(t.shape) for t in tensors], [t.data_ptr() for t in tensors], [t.data_ptr() for t in written])
        for wanted, found in zip(outputs, written, strict=True):
            if wanted is not found:
                _copy(wanted, found)
        return results

    def _drawn(self, inputs: list[Any], arguments: tuple[Any, ...]) -> list[torch.Tensor]:
        """The inputs with the numbers that torch draws, all of them in the graph's order."""
        made = {id(draw): in_memory(draw(arguments)).contiguous() for draw in self._draws.values()}
        return [made.get(id(t), t) for t in inputs]


def _copy(wanted: torch.Tensor, found: torch.Tensor) -> None:
    """Elements that share memory, those of an expanded tensor, are written once."""
    for axis, (size, stride) in enumerate(zip(wanted.shape, wanted.stride(), strict=True)):
        if stride == 0 and size > 1:
            wanted, found = wanted.narrow(axis, 0, 1), found.narrow(axis, 0, 1)
    wanted.copy_(found)
