"""ONNX's Python interface of backends (`onnx.backend.base`): prepare, run_model, run_node, supports_device.

    import oclc.backend as backend
    backend.prepare(model, "CPU").run([x])         # "CPU": the first CPU device; "OPENCL" any, "OPENCL:sel" one of them

Needs the package onnx.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx.backend.base import Backend, BackendRep

from .devices import devices
from .errors import CompileError, Error
from .plan import Plan, compile
from .session import Session

__all__ = ["OclcBackend", "OclcBackendRep", "is_compatible", "prepare", "run_model", "run_node", "supports_device"]


def _selection(device: str) -> str:
    kind, _, which = device.partition(":")
    if kind == "CPU":
        return "cpu"
    if kind == "OPENCL":
        return which
    raise ValueError(f"device: wanted CPU, OPENCL or OPENCL:selection, found {device!r}")


def _is_few(value: Any, kinds: str) -> bool:
    """Whether it is a scalar or a short vector of these of numpy's kinds."""
    array = np.asarray(value)
    return array.dtype.kind in kinds and array.dtype.isbuiltin == 1 and array.ndim <= 1 and 0 < array.size <= 16


class OclcBackendRep(BackendRep):  # type: ignore[misc, unused-ignore]
    """A model on a device, with a plan for each set of shapes and of lengths of sequences. Where the model does not compile
    without, inputs of a few integers, on which sizes may depend, become a part of the plan too; and where it does not then, those
    of a few numbers and truth values (ratios, regions, conditions)."""

    def __init__(self, model: onnx.ModelProto, device: str, **options: Any) -> None:
        self._model = model
        self._device = _selection(device)
        self._options = options
        self._sessions: dict[tuple[Any, ...], Session | CompileError] = {}
        initializers = {tensor.name for tensor in model.graph.initializer}
        self._inputs = [value for value in model.graph.input if value.name not in initializers]

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """The outputs in the model's order; inputs in the model's order, or by name."""
        values = [inputs[i.name] for i in self._inputs] if isinstance(inputs, dict) else list(inputs)
        named, lengths = self._elements(values)
        session = self._session(named, lengths)
        entry = session.plan.entries["predict"]
        outputs = session.run({name: named[name] for name in entry.inputs}, entry="predict")
        return tuple(self._result(value, outputs) for value in self._model.graph.output)

    def _elements(self, values: Sequence[Any]) -> tuple[dict[str, Any], dict[str, int | None]]:
        """Tensors by name, those of sequences as x.0, x.1; how long each sequence is."""
        named: dict[str, Any] = {}
        lengths: dict[str, int | None] = {}
        for info, value in zip(self._inputs, values, strict=False):
            if isinstance(value, (list, tuple)) and not info.type.HasField("tensor_type"):
                lengths[info.name] = len(value)
                named.update({f"{info.name}.{i}": item for i, item in enumerate(value)})
            elif value is None:
                lengths[info.name] = None
            else:
                named[info.name] = value
        return named, lengths

    def _session(self, named: dict[str, Any], lengths: dict[str, int | None]) -> Session:
        shapes = {name: tuple(np.shape(value)) for name, value in named.items()}
        key: tuple[Any, ...] = (tuple(lengths.items()), tuple(shapes.items()))
        options = {"device": self._device, "shapes": shapes, "lengths": lengths, **self._options}
        first: tuple[Any, ...] | None = None
        for kinds in ("", "iu", "iufb"):
            values = {name: tuple(np.ravel(value).tolist()) for name, value in named.items() if _is_few(value, kinds)}
            of_values = (*key, tuple(values.items()))
            first = first or of_values
            if of_values not in self._sessions:
                self._sessions[of_values] = self._compiled(values, options)
            session = self._sessions[of_values]
            if isinstance(session, Session):
                return session
        refused = self._sessions[first or key]
        assert isinstance(refused, CompileError)
        raise refused

    def _compiled(self, values: dict[str, Any], options: dict[str, Any]) -> Session | CompileError:
        try:
            plan: Plan = compile(self._model, values=values, **options)
        except CompileError as error:
            return error
        return plan.session(self._device)

    def _result(self, info: Any, outputs: dict[str, Any]) -> Any:
        kind = info.type.optional_type.elem_type if info.type.HasField("optional_type") else info.type
        if kind.HasField("sequence_type"):
            parts = [name for name in outputs if name.rpartition(".")[0] == info.name]
            return [outputs[name] for name in sorted(parts, key=lambda n: int(n.rpartition(".")[2]))]
        return outputs.get(info.name)


class OclcBackend(Backend):  # type: ignore[misc, unused-ignore]
    """oclc as a backend of ONNX."""

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Whether the model compiles; nothing is run."""
        try:
            compile(model, target=None if devices() else "cpu")
        except (CompileError, Error):
            return False
        return True

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> OclcBackendRep:
        super().prepare(model, device, **kwargs)
        return OclcBackendRep(model, device, **kwargs)

    @classmethod
    def run_model(cls, model: onnx.ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple[Any, ...]:
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(
        cls, node: onnx.NodeProto, inputs: Any, device: str = "CPU", outputs_info: Any = None, **kwargs: Any
    ) -> tuple[Any, ...]:
        """One node as a model; types and shapes of inputs are those of the arrays."""
        values = dict(zip([name for name in node.input if name], inputs, strict=True))
        known = [
            onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(np.asarray(value).dtype), np.shape(value))
            for name, value in values.items()
        ]
        found = [onnx.ValueInfoProto(name=name) for name in node.output if name]
        graph = onnx.helper.make_graph([node], "node", known, found)
        versions = {"opset_imports": [onnx.helper.make_opsetid(node.domain, kwargs.pop("opset_version"))]} if "opset_version" in kwargs else {}
        model = onnx.shape_inference.infer_shapes(onnx.helper.make_model(graph, **versions))
        return cls.run_model(model, values, device, **kwargs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        try:
            selection = _selection(device)
            found = devices()
        except (ValueError, Error):
            return False
        return any(selection in ("", d.kind, str(d.index)) or selection.lower() in d.name.lower() for d in found)


is_compatible = OclcBackend.is_compatible
prepare = OclcBackend.prepare
run_model = OclcBackend.run_model
run_node = OclcBackend.run_node
supports_device = OclcBackend.supports_device
