"""A step of a part of a model as an ONNX graph whose values are nengo's signals."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

_TYPES = {"float32": TensorProto.FLOAT, "int64": TensorProto.INT64, "bool": TensorProto.BOOL}


class Graph:
    """Nodes over values by name. A constant of zeros is known as such, so that what is added to it costs nothing."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []
        self.shapes: dict[str, tuple[int, ...]] = {}
        self._domains: set[str] = set()
        self._zeros: set[str] = set()
        self._known: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        self._count = 0

    def name(self) -> str:
        self._count += 1
        return f"v{self._count}"

    def constant(self, value: Any, dtype: Any = np.float32) -> str:
        array = np.ascontiguousarray(np.asarray(value, dtype=dtype)).reshape(np.shape(value))
        key = (array.dtype.name, array.shape, array.tobytes() if array.size <= 64 else b"")
        if array.size <= 64 and key in self._known:
            return self._known[key]
        name = self.name()
        self.initializers.append(numpy_helper.from_array(array, name))
        self.shapes[name] = array.shape
        if array.dtype == np.float32 and not array.any():
            self._zeros.add(name)
        if array.size <= 64:
            self._known[key] = name
        return name

    def node(self, op: str, inputs: list[str], shape: tuple[int, ...], **attributes: Any) -> str:
        name = self.name()
        self.nodes.append(helper.make_node(op, inputs, [name], **attributes))
        self.shapes[name] = tuple(shape)
        return name

    def custom(self, op: str, inputs: list[str], shapes: list[tuple[int, ...]], **attributes: Any) -> list[str]:
        """The outputs of an operator "domain.Name" of a file, see `register`."""
        domain, _, kind = op.rpartition(".")
        self._domains.add(domain)
        names = [self.name() for _ in shapes]
        self.nodes.append(helper.make_node(kind, inputs, names, domain=domain, **attributes))
        self.shapes.update(zip(names, map(tuple, shapes), strict=True))
        return names

    def elementwise(self, op: str, *inputs: str) -> str:
        return self.node(op, list(inputs), np.broadcast_shapes(*(self.shapes[i] for i in inputs)))

    def add(self, a: str, b: str) -> str:
        shape = np.broadcast_shapes(self.shapes[a], self.shapes[b])
        if a in self._zeros and self.shapes[b] == shape:
            return b
        if b in self._zeros and self.shapes[a] == shape:
            return a
        return self.elementwise("Add", a, b)

    def mul(self, a: str, b: str) -> str:
        return self.elementwise("Mul", a, b)

    def scaled(self, a: str, factor: float) -> str:
        return a if factor == 1 else self.mul(a, self.constant(factor))

    def reshape(self, a: str, shape: tuple[int, ...]) -> str:
        if self.shapes[a] == tuple(shape):
            return a
        if a in self._zeros:
            return self.constant(np.zeros(shape))
        return self.node("Reshape", [a, self.constant(shape, np.int64)], shape)

    def expand(self, a: str, shape: tuple[int, ...]) -> str:
        if self.shapes[a] == tuple(shape):
            return a
        return self.node("Expand", [a, self.constant(shape, np.int64)], shape)

    def part(self, a: str, begin: int, end: int) -> str:
        """Elements of a vector."""
        if (begin, end) == (0, self.shapes[a][0]):
            return a
        if a in self._zeros:
            return self.constant(np.zeros(end - begin))
        bounds = [self.constant([x], np.int64) for x in (begin, end)]
        return self.node("Slice", [a, *bounds], (end - begin,))

    def joined(self, parts: list[str]) -> str:
        """Vectors, concatenated."""
        if len(parts) == 1:
            return parts[0]
        return self.node("Concat", parts, (sum(self.shapes[p][0] for p in parts),), axis=0)

    def gather(self, a: str, indices: Any) -> str:
        indices = np.asarray(indices, dtype=np.int64)
        return self.node("Gather", [a, self.constant(indices, np.int64)], indices.shape + self.shapes[a][1:], axis=0)

    def scatter(self, a: str, indices: Any, values: str, adds: bool) -> str:
        inputs = [a, self.constant(indices, np.int64), values]
        return self.node("ScatterElements", inputs, self.shapes[a], axis=0, reduction="add" if adds else "none")

    def add_input(self, name: str, shape: tuple[int, ...], dtype: Any = np.float32) -> str:
        self.inputs.append(helper.make_tensor_value_info(name, _TYPES[np.dtype(dtype).name], shape))
        self.shapes[name] = tuple(shape)
        return name

    def add_output(self, name: str, value: str, dtype: Any = np.float32) -> None:
        self.nodes.append(helper.make_node("Identity", [value], [name]))
        self.outputs.append(helper.make_tensor_value_info(name, _TYPES[np.dtype(dtype).name], self.shapes[value]))

    def model(self, unused_inputs: set[str]) -> onnx.ModelProto:
        inputs = [i for i in self.inputs if i.name not in unused_inputs]
        graph = helper.make_graph(self.nodes, "step", inputs, self.outputs, self.initializers)
        opsets = [helper.make_opsetid("", 17), *(helper.make_opsetid(domain, 1) for domain in sorted(self._domains))]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def elements(signal: Any) -> np.ndarray:
    """Numbers of the signal's elements among those of its base, in the signal's shape."""
    base = signal.base
    all_of_base = np.arange(base.size, dtype=np.int64).reshape(base.shape)
    if not signal.is_view:
        return all_of_base
    itemsize = all_of_base.itemsize
    strides = tuple(s * itemsize for s in signal.elemstrides)
    return np.ndarray(signal.shape, dtype=np.int64, buffer=all_of_base, offset=signal.elemoffset * itemsize, strides=strides)


class Environment:
    """What the signals are while a step is built. A base is a vector in pieces, since operators write parts of it."""

    def __init__(self, graph: Graph, first_value: Any) -> None:
        self.graph = graph
        self._first_value = first_value  # of a base, as a vector
        self._pieces: dict[Any, list[tuple[int, int, str]]] = {}

    def pieces(self, base: Any) -> list[tuple[int, int, str]]:
        if base not in self._pieces:
            self._pieces[base] = [(0, base.size, self._first_value(base))]
        return self._pieces[base]

    def known(self, base: Any) -> bool:
        return base in self._pieces

    def _split(self, base: Any, at: int) -> None:
        pieces = self.pieces(base)
        for i, (begin, end, value) in enumerate(pieces):
            if begin < at < end:
                g = self.graph
                pieces[i : i + 1] = [
                    (begin, at, g.part(value, 0, at - begin)),
                    (at, end, g.part(value, at - begin, end - begin)),
                ]
                return

    def _range(self, base: Any, begin: int, end: int) -> str:
        g = self.graph
        parts = []
        for first, last, value in self.pieces(base):
            if first < end and last > begin:
                parts.append(g.part(value, max(begin, first) - first, min(end, last) - first))
        return g.joined(parts)

    def whole(self, base: Any) -> str:
        return self._range(base, 0, base.size)

    def read(self, signal: Any) -> str:
        where = elements(signal)
        flat = where.reshape(-1)
        if flat.size and np.array_equal(flat, np.arange(flat[0], flat[0] + flat.size)):
            return self.graph.reshape(self._range(signal.base, int(flat[0]), int(flat[0]) + flat.size), signal.shape)
        return self.graph.gather(self.whole(signal.base), where)

    def write(self, signal: Any, value: str) -> None:
        g, base = self.graph, signal.base
        value = g.expand(value, signal.shape)
        flat = elements(signal).reshape(-1)
        value = g.reshape(value, (flat.size,))
        if flat.size == 0:
            return
        begin, end = int(flat[0]), int(flat[0]) + flat.size
        if not np.array_equal(flat, np.arange(begin, end)):
            self._pieces[base] = [(0, base.size, g.scatter(self.whole(base), flat, value, False))]
            return
        if (begin, end) == (0, base.size):
            self._pieces[base] = [(begin, end, value)]
            return
        self._split(base, begin)
        self._split(base, end)
        kept = [p for p in self.pieces(base) if p[1] <= begin or p[0] >= end]
        self._pieces[base] = sorted([*kept, (begin, end, value)])

    def increase(self, signal: Any, value: str) -> None:
        self.write(signal, self.graph.add(self.read(signal), value))
