"""A step of a part of a model as an ONNX graph whose values are nengo's signals."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from .batches import Layout

# The dimension of all steps of a run, and an input that has one where no other does.
STEPS, TICKS = "steps", "ticks"

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
        """A range along the first axis."""
        shape = self.shapes[a]
        if (begin, end) == (0, shape[0]):
            return a
        if a in self._zeros:
            return self.constant(np.zeros((end - begin, *shape[1:])))
        bounds = [self.constant([x], np.int64) for x in (begin, end)]
        return self.node("Slice", [a, *bounds], (end - begin, *shape[1:]))

    def joined(self, parts: list[str]) -> str:
        """Concatenated along the first axis."""
        if len(parts) == 1:
            return parts[0]
        return self.node("Concat", parts, (sum(self.shapes[p][0] for p in parts), *self.shapes[parts[0]][1:]), axis=0)

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
        return self._model(graph)

    def repeated(self, carries: dict[str, str], unused_inputs: set[str]) -> onnx.ModelProto:
        """The graph `STEPS` times, as a Scan. An output in `carries` is the input of the next step that it names there; other inputs
        and outputs have a value for each step. There is one input at least, whose length says how many steps there are."""
        inputs = {i.name: i for i in self.inputs if i.name not in unused_inputs}
        if not set(inputs) - set(carries.values()):
            self.add_input(TICKS, ())
            inputs[TICKS] = self.inputs[-1]
        outputs = {o.name: o for o in self.outputs}
        states = list(carries.values())
        scanned = [name for name in inputs if name not in states]
        stacked = [name for name in outputs if name not in carries]
        # Names of a Scan's body are its own.
        inner = {name: f"{name}.of_step" for name in (*inputs, *outputs)}
        for node in self.nodes:
            node.input[:] = [inner.get(name, name) for name in node.input]
            node.output[:] = [inner.get(name, name) for name in node.output]

        def within(info: Any) -> Any:
            return _renamed(info, inner[info.name])

        body = helper.make_graph(
            self.nodes,
            "step",
            [within(inputs[name]) for name in (*states, *scanned)],
            [within(outputs[name]) for name in (*carries, *stacked)],
            self.initializers,
        )
        scan = helper.make_node(
            "Scan", [*states, *scanned], [*carries, *stacked], name="steps", body=body, num_scan_inputs=len(scanned)
        )
        graph = helper.make_graph(
            [scan],
            "steps",
            [*(inputs[name] for name in states), *(_stacked(inputs[name]) for name in scanned)],
            [*(outputs[name] for name in carries), *(_stacked(outputs[name]) for name in stacked)],
        )
        return self._model(graph)

    def _model(self, graph: Any) -> onnx.ModelProto:
        opsets = [helper.make_opsetid("", 17), *(helper.make_opsetid(domain, 1) for domain in sorted(self._domains))]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def _renamed(info: Any, name: str) -> Any:
    copy = onnx.ValueInfoProto()
    copy.CopyFrom(info)
    copy.name = name
    return copy


def _stacked(info: Any) -> Any:
    """With a value for each step."""
    tensor = info.type.tensor_type
    return helper.make_tensor_value_info(info.name, tensor.elem_type, [STEPS, *(d.dim_value for d in tensor.shape.dim)])


def shape_in_plan(base: Any) -> tuple[int, ...]:
    """Of a signal as plans have it: numbers are vectors of one element."""
    return tuple(base.shape) if base.ndim > 0 else (1,)


class Environment:
    """What the signals are while a step is built. A base is in pieces along its first axis, since operators write parts of it."""

    def __init__(self, graph: Graph, first_value: Any, layout: Layout) -> None:
        self.graph = graph
        self.place = layout.place  # of a signal: its base, and its elements among the base's
        self._make_first_value = first_value  # of a base, in its shape
        self._first_values: dict[Any, str] = {}
        # Rows from, to, and their value; None: what they are before the step.
        self._pieces: dict[Any, list[tuple[int, int, str | None]]] = {}

    def pieces(self, base: Any) -> list[tuple[int, int, str | None]]:
        if base not in self._pieces:
            self._pieces[base] = [(0, shape_in_plan(base)[0], None)]
        return self._pieces[base]

    def _first_value(self, base: Any) -> str:
        if base not in self._first_values:
            self._first_values[base] = self._make_first_value(base)
        return self._first_values[base]

    def _split(self, base: Any, at: int) -> None:
        pieces = self.pieces(base)
        for i, (begin, end, value) in enumerate(pieces):
            if begin < at < end:
                parts = (None, None) if value is None else self._halves(value, at - begin)
                pieces[i : i + 1] = [(begin, at, parts[0]), (at, end, parts[1])]
                return

    def _halves(self, value: str, at: int) -> tuple[str, str]:
        return self.graph.part(value, 0, at), self.graph.part(value, at, self.graph.shapes[value][0])

    def _parts(self, base: Any, begin: int, end: int) -> list[str]:
        parts = []
        for first, last, value in self.pieces(base):
            if first >= end or last <= begin:
                continue
            lo, hi = max(begin, first), min(end, last)
            if value is None:
                parts.append(self.graph.part(self._first_value(base), lo, hi))
            else:
                parts.append(self.graph.part(value, lo - first, hi - first))
        return parts

    def value(self, base: Any) -> str:
        return self.graph.joined(self._parts(base, 0, shape_in_plan(base)[0]))

    def whole(self, base: Any) -> str:
        """As a vector."""
        return self.graph.reshape(self.value(base), (base.size,))

    def read(self, signal: Any) -> str:
        base, where = self.place(signal)
        rows = _rows(base, where)
        if rows is not None:
            parts = [part for row in rows for part in self._parts(base, *row)]
            return self.graph.reshape(self.graph.joined(parts), signal.shape)
        flat = where.reshape(-1)
        if flat.size and _is_range(flat):
            part = self.graph.part(self.whole(base), int(flat[0]), int(flat[0]) + flat.size)
            return self.graph.reshape(part, signal.shape)
        return self.graph.gather(self.whole(base), where)

    def write(self, signal: Any, value: str) -> None:
        g = self.graph
        base, where = self.place(signal)
        if where.size == 0:
            return
        value = g.expand(value, signal.shape)
        shape = shape_in_plan(base)
        rows = _rows(base, where)
        if rows is None:
            self.assign(base, g.scatter(self.whole(base), where.reshape(-1), g.reshape(value, (where.size,)), False))
            return
        count = sum(end - begin for begin, end in rows)
        value = g.reshape(value, (count, *shape[1:]))
        done = 0
        for begin, end in rows:
            self._put(base, begin, end, g.part(value, done, done + end - begin))
            done += end - begin

    def _put(self, base: Any, begin: int, end: int, value: str) -> None:
        self._split(base, begin)
        self._split(base, end)
        kept = [p for p in self._pieces[base] if p[1] <= begin or p[0] >= end]
        self._pieces[base] = sorted([*kept, (begin, end, value)], key=lambda piece: piece[0])

    def assign(self, base: Any, whole: str) -> None:
        """All of a base, from a vector."""
        shape = shape_in_plan(base)
        self._pieces[base] = [(0, shape[0], self.graph.reshape(whole, shape))]

    def increase(self, signal: Any, value: str) -> None:
        self.write(signal, self.graph.add(self.read(signal), value))


def _is_range(flat: np.ndarray) -> bool:
    return np.array_equal(flat, np.arange(flat[0], flat[0] + flat.size))


# Ranges up to which a signal is read and written range by range.
_MOST_RANGES = 16


def _rows(base: Any, where: np.ndarray) -> list[tuple[int, int]] | None:
    """Ranges of the base's rows that these elements are, in order, if they are whole ones and the ranges few."""
    flat = where.reshape(-1)
    if flat.size == 0:
        return None
    row = int(np.prod(shape_in_plan(base)[1:], dtype=np.int64))
    borders = [0, *(np.flatnonzero(np.diff(flat) != 1) + 1).tolist(), flat.size]
    if len(borders) > _MOST_RANGES + 1 or any(border % row for border in borders):
        return None
    starts = [int(flat[begin]) for begin in borders[:-1]]
    if any(start % row for start in starts):
        return None
    return [
        (start // row, (start + end - begin) // row)
        for start, begin, end in zip(starts, borders[:-1], borders[1:], strict=True)
    ]
