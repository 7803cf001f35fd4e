"""FX graphs of ATen operators as the JSON of `.pt2` files, which the compiler's front end reads."""

from __future__ import annotations

import json
import math
import operator
from typing import Any

import sympy  # type: ignore[import-untyped, unused-ignore]
import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.fx import GraphModule, Node

from ..errors import CompileError
from .draws import is_drawn
from .memory import Memory, read_by_strides

# torch/_export/serde/schema.py
_DTYPES = {
    torch.uint8: 1, torch.int8: 2, torch.int16: 3, torch.int32: 4, torch.int64: 5, torch.float16: 6, torch.float32: 7,
    torch.float64: 8, torch.complex32: 9, torch.complex64: 10, torch.complex128: 11, torch.bool: 12, torch.bfloat16: 13,
    torch.uint16: 28, torch.float8_e4m3fn: 29, torch.float8_e5m2: 30, torch.uint32: 34, torch.uint64: 35,
}  # fmt: skip


def is_readable(tensor: torch.Tensor) -> bool:
    """Whether the compiler has tensors of this kind."""
    odd = tensor.layout != torch.strided or tensor.is_quantized or tensor.is_complex()
    return not odd and tensor.dtype in _DTYPES


def in_memory(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor with its elements as its memory has them, and complex numbers as pairs of real ones."""
    if tensor.is_complex():
        return torch.view_as_real(tensor.resolve_conj())
    return tensor.resolve_neg() if tensor.is_neg() else tensor


def has_elements(value: Any) -> bool:
    """Whether it is a tensor that is not known to be empty."""
    return isinstance(value, torch.Tensor) and not any(isinstance(size, int) and size == 0 for size in value.shape)


def memory_of(tensor: torch.Tensor) -> tuple[int, list[int], int]:
    """Element type as torch numbers it, sizes, and address of a contiguous tensor."""
    return _DTYPES[tensor.dtype], list(tensor.shape), tensor.data_ptr()


class GraphText:
    """The JSON of a graph, and what its plan takes and gives in order.

    inputs: placeholders that are tensors, as positions among all placeholders. constants: tensors of the graph module that are
    further inputs. outputs: of each output of the graph None (no tensor, or an empty one), or the position among the plan's
    outputs.
    symbols: by name of the symbol the position of the placeholder that holds its value. draws: nodes that torch runs before the
    plan, whose results are inputs too. memories: by name of the plan's input, the memory of placeholders that the graph reads by
    strides.
    """

    def __init__(self, module: GraphModule) -> None:
        self.inputs: list[int] = []
        self.constants: list[torch.Tensor] = []
        self.symbols: dict[str, int] = {}
        self.draws: list[Node] = []
        self.memories: dict[str, Memory] = {}
        self.outputs: list[int | None] = []
        self.values: list[Any] = []  # of each output: its fake tensor, SymInt, number or None
        self._tensors: dict[str, Any] = {}
        self._numbers: dict[str, Any] = {}
        self._names: dict[Node, str] = {}
        self._graph_inputs: list[Any] = []
        self._nodes: list[Any] = []
        self._graph_outputs: list[Any] = []
        self._module = module
        self._by_strides = read_by_strides(module)
        placeholder = 0
        for node in module.graph.nodes:
            if node.op == "placeholder":
                self._placeholder(node, placeholder)
                placeholder += 1
            elif node.op == "get_attr":
                self._attribute(node)
            elif node.op == "call_function":
                self._draw(node) if is_drawn(node) else self._call(node)
            elif node.op == "output":
                self._output(node)
        self.text = self._text()

    def _text(self) -> bytes:
        specs = [{"user_input": {"arg": one}} for one in self._graph_inputs]
        return json.dumps(
            {
                "graph_module": {
                    "graph": {
                        "inputs": self._graph_inputs,
                        "outputs": self._graph_outputs,
                        "nodes": self._nodes,
                        "tensor_values": self._tensors,
                        "sym_int_values": self._numbers,
                    },
                    "signature": {
                        "input_specs": specs,
                        "output_specs": [{"user_output": {"arg": one}} for one in self._graph_outputs],
                    },
                },
                "schema_version": {"major": 8, "minor": 20},
                "range_constraints": {},
            }
        ).encode()

    def _placeholder(self, node: Node, position: int) -> None:
        value = node.meta.get("val")
        self._names[node] = node.name
        if isinstance(value, torch.Tensor):
            self._note(node.name, value)
            self.inputs.append(position)
            elements = self._by_strides.get(node)
            if elements is not None:
                self._memory(node, value, Memory(position, elements, int(value.storage_offset())))
            else:
                self._graph_inputs.append({"as_tensor": {"name": node.name}})
        elif isinstance(value, (torch.SymInt, int)) and not isinstance(value, bool):
            self._numbers[node.name] = _size(value)
            if isinstance(value, torch.SymInt) and isinstance(value.node.expr, sympy.Symbol):
                self.symbols[str(value.node.expr)] = position

    def _memory(self, node: Node, value: torch.Tensor, memory: Memory) -> None:
        """The placeholder as a view of the memory that it lies in, which is the input."""
        name = f"{node.name}_memory"
        self.memories[name] = memory
        in_rows = {"sizes": [_size(memory.elements)], "strides": [_size(1)], "storage_offset": _size(0)}
        self._tensors[name] = {**self._tensors[node.name], **in_rows}
        self._graph_inputs.append({"as_tensor": {"name": name}})
        at: dict[str, Any] = {"size": list(value.shape), "stride": list(value.stride()), "storage_offset": memory.offset}
        arguments = [{"name": key, "arg": self._argument(number), "kind": 1} for key, number in at.items()]
        self._nodes.append(
            {
                "target": "torch.ops.aten.as_strided.default",
                "inputs": [{"name": "self", "arg": {"as_tensor": {"name": name}}, "kind": 1}, *arguments],
                "outputs": [{"as_tensor": {"name": node.name}}],
                "metadata": {},
                "name": node.name,
            }
        )

    def _attribute(self, node: Node) -> None:
        value: Any = self._module
        for part in str(node.target).split("."):
            value = getattr(value, part)
        self._names[node] = node.name
        if isinstance(value, torch.Tensor):
            self._note(node.name, value)
            with unset_fake_temporarily():  # torch compiles while its tensors are fake
                self.constants.append(value.detach().contiguous())
            self._graph_inputs.append({"as_tensor": {"name": node.name}})

    def _draw(self, node: Node) -> None:
        self._names[node] = node.name
        self._note(node.name, node.meta["val"])
        self.draws.append(node)
        self._graph_inputs.append({"as_tensor": {"name": node.name}})

    def _call(self, node: Node) -> None:
        value = node.meta.get("val")
        if node.target is operator.getitem:
            source, index = node.args
            if isinstance(source, Node) and isinstance(index, int):
                self._names[node] = f"{self._names[source]}__{index}"
                return
        self._names[node] = node.name
        if torch.Tag.data_dependent_output in getattr(node.target, "tags", ()):
            raise CompileError(
                f"import: {node.name} ({node.target}): wanted sizes and numbers that do not depend on values, found one that a tensor "
                "gives; pass it as a number, or leave this part out of what is compiled",
                {"stage": "import", "node": node.name, "op": str(node.target)},
            )
        if isinstance(value, (torch.SymInt, int)) and not isinstance(value, bool):
            self._numbers[node.name] = _size(value)
            return
        if not isinstance(value, (torch.Tensor, tuple, list)):
            return  # of a number or a truth value, which expressions have already, or an assertion
        outputs: list[Any] = []
        if isinstance(value, torch.Tensor):
            self._note(node.name, value)
            outputs.append({"as_tensor": {"name": node.name}})
        else:
            used = {user.args[1] for user in node.users if user.target is operator.getitem}
            for index, item in enumerate(value):
                name = f"{node.name}__{index}" if index in used else ""
                if name and isinstance(item, torch.Tensor):
                    self._note(name, item)
                outputs.append({"as_tensor": {"name": name}})
        self._nodes.append(
            {
                "target": _target(node.target),
                "inputs": self._arguments(node),
                "outputs": outputs,
                "metadata": {"nn_module_stack": _module_stack(node)},
                "name": node.name,
            }
        )

    def _arguments(self, node: Node) -> list[Any]:
        named: list[tuple[str, Any]] = []
        schema = getattr(node.target, "_schema", None)
        names = [argument.name for argument in schema.arguments] if schema else []
        for position, value in enumerate(node.args):
            named.append((names[position] if position < len(names) else f"arg{position}", value))
        named += list(node.kwargs.items())
        return [{"name": name, "arg": self._argument(value), "kind": 1} for name, value in named]

    def _argument(self, value: Any) -> Any:
        if value is None:
            return {"as_none": True}
        if isinstance(value, Node):
            meta = value.meta.get("val")
            if isinstance(meta, torch.Tensor):
                return {"as_tensor": {"name": self._names[value]}}
            return self._argument(meta)
        if isinstance(value, bool):
            return {"as_bool": value}
        if isinstance(value, (int, torch.SymInt)):
            return {"as_int": value} if isinstance(value, int) else {"as_sym_int": _size(value)}
        if isinstance(value, float):
            return {"as_float": _real(value)}
        if isinstance(value, complex):
            return {"as_complex": {"real": _real(value.real), "imag": _real(value.imag)}}
        if isinstance(value, str):
            return {"as_string": value}
        if isinstance(value, torch.dtype):
            return {"as_scalar_type": _DTYPES.get(value, 0)}
        if isinstance(value, (list, tuple)):
            items = [self._argument(item) for item in value]
            return {"as_optional_tensors": items}
        return {"as_other": str(value)}

    def _output(self, node: Node) -> None:
        values: Any = node.args[0]
        for value in [values] if isinstance(values, Node) else values:
            meta = value.meta.get("val") if isinstance(value, Node) else value
            self.values.append(meta)
            if has_elements(meta):
                self.outputs.append(len(self._graph_outputs))
                self._graph_outputs.append({"as_tensor": {"name": self._names[value]}})
            else:
                self.outputs.append(None)

    def _note(self, name: str, value: torch.Tensor) -> None:
        odd = value.layout != torch.strided or value.is_quantized
        self._tensors[name] = {
            "dtype": 0 if odd else _DTYPES.get(value.dtype, 0),
            "sizes": [_size(d) for d in value.shape],
            "strides": [] if odd else [_size(d) for d in value.stride()],
            "storage_offset": {"as_int": 0} if odd else _size(value.storage_offset()),
        }


def _real(value: float) -> Any:
    return value if math.isfinite(value) else str(json.dumps(value))


def _size(value: Any) -> Any:
    if isinstance(value, int):
        return {"as_int": value}
    return {"as_expr": {"expr_str": sympy.srepr(value.node.expr)}}


def _target(target: Any) -> str:
    if isinstance(target, torch._ops.OpOverload):
        return f"torch.ops.{target}"
    return f"{getattr(target, '__module__', '')}.{getattr(target, '__name__', target)}"


def _module_stack(node: Node) -> str:
    stack = node.meta.get("nn_module_stack") or {}
    rows = []
    for key, (path, kind) in stack.items():
        plain = str(path).replace("L['self'].", "").replace("L['self']", "").replace("._modules", "")
        rows.append(f"{key},{plain.replace(',', ' ')},{kind}")
    return ";".join(rows)
