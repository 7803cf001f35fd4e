"""Inputs that a graph reads by strides (as_strided): views of memory that holds more than their own elements."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Sequence
from typing import Any

import torch
from torch.fx import GraphModule, Node

_aten = torch.ops.aten
_BY_STRIDES = (_aten.as_strided.default, _aten.as_strided_copy.default, _aten.as_strided_scatter.default)


@dataclasses.dataclass(frozen=True)
class Memory:
    """The first elements of what the argument at this position lies in, itself `offset` elements behind the begin."""

    position: int
    elements: int
    offset: int

    def of(self, arguments: Sequence[Any]) -> torch.Tensor:
        tensor: torch.Tensor = arguments[self.position]
        if tensor.storage_offset() != self.offset:
            raise RuntimeError(
                f"backend 'oclc': wanted argument {self.position}, which as_strided reads, at element {self.offset} of its storage as "
                f"when it was compiled, found it at {tensor.storage_offset()}; call .clone() on it, or torch._dynamo.reset()"
            )
        return tensor.detach().as_strided((self.elements,), (1,), 0)


def read_by_strides(module: GraphModule) -> dict[Node, int]:
    """Placeholders that as_strided reads otherwise than as a whole of contiguous elements, and how many elements of their memory
    the graph may read. Where sizes are symbols the compiler judges."""
    found: dict[Node, int] = {}
    for node in module.graph.nodes:
        if node.op != "call_function" or node.target not in _BY_STRIDES:
            continue
        source = _root(node.args[0])
        value = source.meta.get("val")
        if source.op != "placeholder" or not isinstance(value, torch.Tensor) or value.layout != torch.strided:
            continue
        last = [_last_of(value.shape, value.stride(), value.storage_offset()), _last_place(node)]
        if all(isinstance(place, int) for place in last):
            found[source] = max(found.get(source, 0), *(place + 1 for place in last))
    return {node: count for node, count in found.items() if not _is_whole(node.meta["val"], count)}


def _root(node: Node) -> Node:
    """What the tensor is a view of."""
    while node.op == "call_function" and node.args and isinstance(node.args[0], Node):
        is_view = isinstance(node.target, torch._ops.OpOverload) and node.target.is_view
        if not is_view and node.target is not operator.getitem:
            break
        node = node.args[0]
    return node


def _last_place(node: Node) -> Any:
    schema = [argument.name for argument in node.target._schema.arguments]  # type: ignore[union-attr]
    given = {**dict(zip(schema, node.args, strict=False)), **node.kwargs}
    offset = given.get("storage_offset")
    if offset is None:
        offset = given["self"].meta["val"].storage_offset()
    return _last_of(given["size"], given["stride"], offset)


def _last_of(sizes: Any, strides: Any, offset: Any) -> Any:
    """The last place that is read, or None if a number is not known."""
    if not all(isinstance(number, int) for number in (*sizes, *strides, offset)):
        return None
    return offset + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))


def _is_whole(value: torch.Tensor, count: int) -> bool:
    return value.is_contiguous() and value.storage_offset() == 0 and count <= value.numel()
