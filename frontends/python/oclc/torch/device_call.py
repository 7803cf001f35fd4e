"""A plan in place of a graph of AOTAutograd whose tensors lie on the device `ocl` (package oclc-torch): they stay there."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import torch
from torch.fx import GraphModule

from ..errors import CompileError
from ..plan import Plan
from .draws import Draw
from .fx_json import GraphText
from .memory import Memory
from .plan_call import counters
from .sizes import maker

__all__ = ["DeviceCall", "device_of"]


def device_of(module: GraphModule) -> torch.device | None:
    """The device `ocl` on which the graph's tensors lie; None: they lie elsewhere. CompileError where they are on several."""
    found: set[torch.device] = set()
    for node in module.graph.nodes:
        value = node.meta.get("val")
        for tensor in value if isinstance(value, (tuple, list)) else [value]:
            if isinstance(tensor, torch.Tensor):
                found.add(tensor.device)
    ours = [device for device in found if device.type == "ocl"]
    # Tensors of the CPU without axes may meet those of the device.
    if len(ours) > 1:
        names = ", ".join(sorted(str(device) for device in ours))
        raise CompileError(f"import: wanted the tensors of a graph on one device, found {names}", {"stage": "import"})
    return ours[0] if ours else None


class DeviceCall:
    """Takes the placeholders of the graph, gives its outputs; enqueues, and does not wait."""

    def __init__(self, plan: Plan, graph: GraphText, module: GraphModule, device: torch.device) -> None:
        extension = importlib.import_module("oclc_torch._C")
        self._module = module
        self._outputs = graph.outputs
        entry = next(iter(plan.entries.values()))
        self._launches = entry.launches
        placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
        constants = [node.name for node in module.graph.nodes if node.op == "get_attr"]
        position = {node.name: i for i, node in enumerate(placeholders)}
        self._draws = {node.name: Draw(node, position, graph.symbols) for node in graph.draws}
        self._sources: list[int | Memory | Draw | torch.Tensor] = []
        for name in entry.inputs:
            source = position.get(name, self._draws.get(name, graph.memories.get(name)))
            self._sources.append(graph.constants[constants.index(name)].to(device) if source is None else source)
        shapes = {d for tensor in entry.inputs.values() for d in tensor.shape}
        self._dims = [(name, at) for name, at in graph.symbols.items() if name in plan.symbols and name not in shapes]
        self._makers = [maker(value, graph.symbols) for value in graph.values]
        self._device = device
        self._plan = extension.GraphPlan(device.index, bytes(plan), list(entry.inputs), list(entry.outputs))

    def __call__(self, *arguments: Any) -> list[Any]:
        counters.calls += 1
        drawn = {id(draw): draw(arguments) for draw in self._draws.values()}
        inputs = [self._input(source, drawn, arguments) for source in self._sources]
        results = [make(arguments) for make in self._makers]
        outputs = [r for r, index in zip(results, self._outputs, strict=True) if index is not None]
        if any(t.numel() == 0 for t in outputs) or any(t.numel() == 0 for t in inputs):
            counters.eager += 1
            return list(self._module(*arguments))
        counters.launches += self._launches
        self._plan.run(inputs, outputs, [(name, int(arguments[at])) for name, at in self._dims])
        return results

    def _input(self, source: Any, drawn: dict[int, torch.Tensor], arguments: Sequence[Any]) -> torch.Tensor:
        tensor: torch.Tensor
        if isinstance(source, Memory):
            tensor = source.of(arguments)
        elif isinstance(source, Draw):
            tensor = drawn[id(source)]
        else:
            tensor = arguments[source] if isinstance(source, int) else source
        if tensor.device != self._device:
            if tensor.device.type != "cpu" or tensor.dim() > 0:
                raise RuntimeError(f"backend 'oclc': wanted tensors on {self._device}, found one on {tensor.device}")
            tensor = tensor.to(self._device)
        if not tensor.is_contiguous():
            counters.copies += 1
            tensor = tensor.contiguous()
        return tensor
