"""The option fallback: operators that the compiler does not read run in torch, between the plans of the others."""

from __future__ import annotations

import operator
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn
from torch.fx import GraphModule, Node
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase
from torch.utils import _pytree as pytree

from .. import _core
from ..errors import CompileError
from .fx_json import is_readable
from .plan_call import counters


class _Readable(OperatorSupportBase):  # type: ignore[misc, unused-ignore]
    def __init__(self) -> None:
        self._known = set(_core.aten_operators())

    def is_node_supported(self, submodules: Mapping[str, nn.Module], node: Node) -> bool:
        if node.op != "call_function":
            return False
        if node.target is operator.getitem and isinstance(node.args[0], Node):
            return self.is_node_supported(submodules, node.args[0])
        values = [n.meta.get("val") for n in (node, *node.all_input_nodes)]
        tensors = [leaf for leaf in pytree.tree_leaves(values) if isinstance(leaf, torch.Tensor)]
        if not tensors:
            return True  # about sizes
        return str(node.target) in self._known and all(map(is_readable, tensors))


class _Part(nn.Module):
    def __init__(self, call: Callable[..., list[Any]], gives_one: bool) -> None:
        super().__init__()
        self._call = call
        self._gives_one = gives_one

    def forward(self, *arguments: Any) -> Any:
        results = self._call(*arguments)
        return results[0] if self._gives_one else tuple(results)


def run_in_parts(module: GraphModule, make: Callable[[GraphModule], Callable[..., list[Any]]]) -> Callable[..., Any]:
    """The graph with plans in place of the connected parts that compile. A warning names what runs in torch, and why where a part
    was refused as a whole."""
    whole = CapabilityBasedPartitioner(module, _Readable(), allows_single_node_partition=True).partition_and_fuse()
    in_torch: Counter[str] = Counter()
    why: list[str] = []
    for node in whole.graph.nodes:
        if node.op == "call_module":
            part = getattr(whole, node.target)
            result = next(n for n in part.graph.nodes if n.op == "output").args[0]
            try:
                setattr(whole, node.target, _Part(make(part), isinstance(result, Node)))
            except CompileError as error:
                why.append(str(error))
                in_torch.update(_operators(part))
    in_torch.update(_operators(whole))
    if in_torch:
        counters.fallbacks += in_torch.total()
        names = ", ".join(f"{name} ({count})" if count > 1 else name for name, count in sorted(in_torch.items()))
        warnings.warn(f"backend 'oclc': in torch run {names}" + "".join(f"; {text}" for text in why), stacklevel=2)
    return whole.forward  # type: ignore[no-any-return, unused-ignore]


def _operators(module: GraphModule) -> list[str]:
    return [
        str(node.target)
        for node in module.graph.nodes
        if node.op == "call_function" and isinstance(node.target, torch._ops.OperatorBase)
    ]
