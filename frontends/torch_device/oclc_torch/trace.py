"""A plan for a call of an operator: traced through torch's decompositions, compiled by the backend of oclc.torch."""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch
from oclc.errors import CompileError
from oclc.torch.backend import _decompositions
from oclc.torch.fx_json import GraphText, has_elements
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import make_fx

from .decompositions import OWN
from .foreach import EXPANDED, expand
from .graphs import SHORT, Refused, WithNumbers, implied, leaves, output_of, rounds_between
from .plans import plan_of

__all__ = ["trace"]

_DTYPES = {
    0: torch.uint8, 1: torch.int8, 2: torch.int16, 3: torch.int32, 4: torch.int64, 5: torch.float16, 6: torch.float32,
    7: torch.float64, 8: torch.complex32, 9: torch.complex64, 10: torch.complex128, 11: torch.bool, 15: torch.bfloat16,
    27: torch.uint16, 28: torch.uint32, 29: torch.uint64,
}  # fmt: skip

Axes = list[tuple[int, bool]]
_MOST_TRIED = 8
_tracing = threading.RLock()  # torch traces one call at a time


def trace(op: Any, arguments: list[Any], general: str, device: int) -> dict[str, Any] | str:
    """What the extension needs to run the call by a plan, or why there is none, "" where there is nothing to compute.
    general: "" (a plan for this very call), "numbers" (for any floating-point arguments), "sizes" (and for any sizes)."""
    try:
        with _tracing, torch.no_grad():
            return _Trace(op, arguments, device).plan(general)
    except (CompileError, Refused) as reason:
        return str(reason)
    except Exception as error:  # of torch, which then says the same where the operator runs on the CPU, or of a decomposition
        return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no reason given'}"


@functools.cache
def _table() -> dict[Any, Callable[..., Any]]:
    return {**_decompositions(), **OWN}


def _replaced(value: Any, replace: Callable[[Any], Any]) -> Any:
    if isinstance(value, (list, tuple)):
        return [_replaced(item, replace) for item in value]
    return replace(value)


def _axes(t: torch.Tensor) -> Axes | None:
    """The axes of a tensor in the order in which they lie in memory, with those that are expanded; None: in rows, or not dense."""
    if t.is_contiguous():
        return None
    order = sorted(range(t.dim()), key=lambda d: -t.stride(d))
    step = 1
    for d in reversed(order):
        if t.shape[d] == 1 or t.stride(d) == 0:
            continue
        if t.stride(d) != step:
            return None
        step *= t.shape[d]
    return [(d, t.stride(d) == 0 and t.shape[d] != 1) for d in order]


class _Trace:
    def __init__(self, op: Any, arguments: list[Any], device: int) -> None:
        self.op = op
        self.device = device
        self.schema = op._schema
        self.name = self.schema.name.split("::")[1]
        qualified = self.name + (f".{self.schema.overload_name}" if self.schema.overload_name else "")
        self.expanded = qualified in EXPANDED
        self.arguments = [self._argument(a, v) for a, v in zip(self.schema.arguments, arguments, strict=True)]
        self.tensors = [v for v in leaves(self.arguments) if isinstance(v, torch.Tensor)]
        self.numbers = [v for v in leaves(self.arguments) if isinstance(v, float)]
        self.layouts = [_axes(t) for t in self.tensors]
        self.number_for_tensor = any(
            isinstance(v, (int, float)) and str(a.real_type) in ("Tensor", "Optional[Tensor]")
            for a, v in zip(self.schema.arguments, self.arguments, strict=True)
        )
        # Positions among the tensors of those that the operator writes, and whether it reads them too.
        self.written: list[int] = []
        at = 0
        for a, v in zip(self.schema.arguments, self.arguments, strict=True):
            count = sum(isinstance(leaf, torch.Tensor) for leaf in leaves(v))
            if a.alias_info is not None and a.alias_info.is_write:
                self.written += range(at, at + count)
            at += count

    @staticmethod
    def _argument(argument: Any, value: Any) -> Any:
        kind = str(argument.real_type)
        if isinstance(value, torch.device):
            return torch.device("cpu")
        if isinstance(value, int) and not isinstance(value, bool):
            if "ScalarType" in kind:
                return _DTYPES[value]
            if "Layout" in kind:
                return None
            if "MemoryFormat" in kind:
                return {0: torch.contiguous_format, 1: torch.preserve_format}.get(value)
        if kind.endswith("Device") or "Optional[Device]" in kind:
            return torch.device("cpu")
        return value

    # ---- the graph

    def _examples(self) -> list[torch.Tensor]:
        """Tensors of the CPU as the plan's inputs are: their memory is never touched."""
        examples = []
        for t, axes in zip(self.tensors, self.layouts, strict=True):
            shape = list(t.shape) if axes is None else [1 if expanded else t.shape[d] for d, expanded in axes]
            examples.append(torch.empty(shape, dtype=t.dtype, device="cpu"))
        return examples

    def _as_given(self, bases: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """The call's tensors of the plan's inputs."""
        given = []
        for t, axes, base in zip(self.tensors, self.layouts, bases, strict=True):
            if axes is not None:
                inverse = sorted(range(len(axes)), key=lambda i: axes[i][0])
                base = base.permute(inverse)
                if any(expanded for _, expanded in axes):
                    sizes = [-1] * len(axes)
                    for d, is_expanded in axes:
                        if is_expanded:
                            sizes[d] = t.shape[d]
                    base = base.expand(sizes)
            given.append(base)
        return given

    def _function(self, numbers: Sequence[float], rounded: list[torch.dtype | None] | None = None) -> Callable[..., list[torch.Tensor]]:
        """The call as a function of the plan's inputs. rounded: the types of its results where it computes in 32 bits."""

        def run(*bases: torch.Tensor) -> list[torch.Tensor]:
            given = self._as_given(bases)
            if rounded is not None:
                given = [t.float() if t.dtype in SHORT else t for t in given]
            if not self.expanded:
                given = [t.clone() if i in self.written else t for i, t in enumerate(given)]
            tensors, values = iter(given), iter(numbers)

            def put(v: Any) -> Any:
                return next(tensors) if isinstance(v, torch.Tensor) else next(values) if isinstance(v, float) else v

            arguments = _replaced(self.arguments, put)
            if self.expanded:
                after, results = expand(self.op, arguments)
                return [*after, *results]
            # Where a number stands for a tensor torch chooses the overload that takes it.
            op = self.op.overloadpacket if self.number_for_tensor else self.op
            positional = [v for a, v in zip(self.schema.arguments, arguments, strict=True) if not a.kwarg_only]
            named = {a.name: v for a, v in zip(self.schema.arguments, arguments, strict=True) if a.kwarg_only}
            results = op(*positional, **named)
            written = [given[i] for i in self.written]
            aliased = all(r.alias_info is not None for r in self.schema.returns)
            found = written + ([] if aliased else list(leaves(results)))
            if rounded is None:
                return found
            return [f if f is None or f.dtype == r or r is None else f.to(r) for f, r in zip(found, rounded, strict=True)]

        if self.written and not self.expanded:
            return torch.func.functionalize(run, remove="mutations_and_views")  # type: ignore[no-any-return]
        return run

    def _graph(self, numbers: Sequence[float], mode: str) -> GraphModule:
        module = make_fx(self._function(numbers), decomposition_table=_table(), tracing_mode=mode)(*self._examples())
        if not self.expanded and any(t.dtype in SHORT for t in self.tensors) and rounds_between(module):
            values = [node.meta["val"] if isinstance(node, torch.fx.Node) else None for node in leaves(output_of(module).args)]
            rounded = [getattr(v, "dtype", None) for v in values]
            try:
                run = self._function(numbers, rounded)
                module = make_fx(run, decomposition_table=_table(), tracing_mode=mode)(*self._examples())
            except (RuntimeError, TypeError, ValueError):  # the operator is one for 16 bits alone
                pass
        module.graph.eliminate_dead_code()
        module.recompile()
        return module

    # ---- floating-point arguments as an input

    def _with_free_numbers(self, mode: str) -> tuple[GraphModule, list[int], list[int]]:
        """The graph with as many numbers as can be its input, which they are, and which are constants. One that the graph does
        not use is no input; but what it does not use here it may use for other values: it counts as a constant."""
        everything = list(range(len(self.numbers)))
        try:
            module, used = self._with_numbers(mode, everything)
            return module, used, [i for i in everything if i not in used]
        except Refused:
            if len(everything) == 1 or len(everything) > _MOST_TRIED:
                raise
        free = []
        for i in everything:
            try:
                self._with_numbers(mode, [i])
                free.append(i)
            except Refused:
                continue
        if not free:
            raise Refused("the graph depends on its numbers")
        module, used = self._with_numbers(mode, free)
        return module, used, [i for i in everything if i not in used]

    def _with_numbers(self, mode: str, free: list[int]) -> tuple[GraphModule, list[int]]:
        """The graph with these numbers as its last input, a vector, and which of them it uses. Refused where the graph's form
        may depend on them: two traces with other numbers must differ in the numbers alone."""
        first, second = ([self._near(i, v, k) if i in free else v for i, v in enumerate(self.numbers)] for k in (1, 2))
        one, two = self._graph(first, mode), self._graph(second, mode)
        positions = {first[i]: i for i in free}
        nodes = list(zip(one.graph.nodes, two.graph.nodes, strict=False))
        if len(one.graph.nodes) != len(two.graph.nodes):
            raise Refused("the graph depends on a number")
        places: dict[str, dict[Any, int]] = {}
        used: list[int] = []
        for a, b in nodes:
            if a.op != b.op or (a.op == "call_function" and a.target is not b.target):
                raise Refused("the graph depends on a number")
            ours, theirs = ([*x.args, *x.kwargs.values()] for x in (a, b))
            for key, x, y in zip([*range(len(a.args)), *a.kwargs], ours, theirs, strict=True):
                for p, q in zip(leaves(x), leaves(y), strict=True):
                    if not isinstance(p, float) or p == q:
                        continue
                    at = positions.get(p)
                    if at is None or second[at] != q or isinstance(x, (list, tuple)):
                        raise Refused("the graph computes with a number")
                    places.setdefault(a.name, {})[key] = at
                    if at not in used:
                        used.append(at)
        if not used:
            raise Refused("the graph does not use the numbers")
        wide = any(t.dtype == torch.float64 for t in self.tensors)
        vector = torch.empty([len(used)], dtype=torch.float64 if wide else torch.float32)

        def run(*inputs: torch.Tensor) -> Any:
            return WithNumbers(one, places, inputs[-1], used).run(*inputs[:-1])

        module = make_fx(run, decomposition_table=_table(), tracing_mode=mode)(*self._examples(), vector)
        module.graph.eliminate_dead_code()
        module.recompile()
        return module, used

    @staticmethod
    def _near(i: int, value: float, k: int) -> float:
        """A number beside the given one, another for each place."""
        if not math.isfinite(value):
            return value
        step = (i * 2 + k) * 2.0**-40
        return value * (1 + step) if value != 0.0 else step * 2.0**-20

    # ---- the plan

    def plan(self, general: str) -> dict[str, Any]:
        mode = "symbolic" if general == "sizes" else "fake"
        numbers: list[int] = []
        fixed: list[int] = []
        if general and self.numbers:
            module, numbers, fixed = self._with_free_numbers(mode)
        else:
            module = self._graph(self.numbers, mode)
        if mode == "symbolic":
            self._check_guards(module)
        described = self._described(module, numbers, general == "sizes")
        described["fixed_numbers"] = [(i, self.numbers[i]) for i in fixed]
        return described

    def _check_guards(self, module: GraphModule) -> None:
        """A plan for all sizes must not rest on more than what the key says: which sizes are equal, and which are 1."""
        environment = next(
            (
                d.node.shape_env
                for node in module.graph.nodes
                for t in [node.meta.get("val")]
                if isinstance(t, torch.Tensor)
                for d in t.shape
                if isinstance(d, torch.SymInt)
            ),
            None,
        )
        if environment is None:
            raise Refused("no size is free")
        for guard in environment.guards:
            if len(guard.expr.free_symbols) > 0 and guard.expr not in (True,) and not implied(guard.expr, environment):
                raise Refused(f"the graph holds for sizes with {guard.expr} alone")

    def _described(self, module: GraphModule, numbers: list[int], symbolic: bool) -> dict[str, Any]:
        placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
        output = next(node for node in module.graph.nodes if node.op == "output")
        unchanged = self._unchanged(placeholders, output)
        output.args = ([None if k in unchanged else node for k, node in enumerate(output.args[0])],)
        module.graph.eliminate_dead_code()
        position = {node.name: i for i, node in enumerate(placeholders)}
        wide = placeholders[-1].meta["val"].dtype == torch.float64 if numbers else False
        for node in placeholders:  # what is written and not read is no input, and may have no memory yet
            if not node.users:
                module.graph.erase_node(node)
        graph = GraphText(module)
        if graph.draws:
            raise Refused("it draws random numbers between other operators")
        others = [v for v, index in zip(graph.values, graph.outputs, strict=True) if index is None and v is not None]
        if others and len(others) == len(graph.values) and all(isinstance(v, torch.Tensor) and not has_elements(v) for v in others):
            raise Refused
        if any(not isinstance(v, torch.Tensor) or has_elements(v) for v in others):
            raise Refused(f"a result is no tensor but {[type(v).__name__ for v in others]}")
        plan = plan_of(graph.text, self.device)
        entry = next(iter(plan.entries.values()))
        constants = [node.name for node in module.graph.nodes if node.op == "get_attr"]
        inputs = []
        for name in entry.inputs:
            if name not in position:
                constant = graph.constants[constants.index(name)].to(torch.device("ocl", self.device))
                inputs.append({"name": name, "constant": constant})
            elif position[name] == len(self.tensors):
                inputs.append({"name": name, "numbers": numbers, "wide": wide})
            else:
                at = position[name]
                inputs.append({"name": name, "tensor": at, "axes": self.layouts[at]})
        names = list(entry.outputs)
        outputs = []
        for value, index in zip(graph.values, graph.outputs, strict=True):
            if index is not None:
                if value.dtype.is_complex:
                    raise Refused("a result is complex")
                outputs.append(self._output(names[index], value, symbolic))
        if any(o.open for o in entry.outputs.values()):
            raise Refused("the size of a result depends on values")
        results = []
        for k, (value, index) in enumerate(zip(graph.values, graph.outputs, strict=True)):
            if index is None and value is not None and k not in unchanged:  # without elements: no output of the plan
                index = len(outputs)
                outputs.append(self._output("", value, symbolic))
                if not outputs[-1]["fixed"]:
                    raise Refused("the size of a result without elements is open")
            results.append(-2 if k in unchanged else -1 if index is None else index)
        return {"bytes": bytes(plan), "inputs": inputs, "outputs": outputs, "results": results}

    def _unchanged(self, placeholders: list[Any], output: Any) -> set[int]:
        """Which written tensors the graph gives back as they came."""
        found = set()
        for k, (at, node) in enumerate(zip(self.written, output.args[0], strict=False)):
            cloned = isinstance(node, torch.fx.Node) and node.target is torch.ops.aten.clone.default
            if (node.args[0] if cloned else node) is placeholders[at] and self.layouts[at] is None:
                found.add(k)
        return found

    @staticmethod
    def _output(name: str, value: torch.Tensor, symbolic: bool) -> dict[str, Any]:
        fixed = all(isinstance(d, int) for d in value.shape)
        if symbolic and not fixed:
            return {"name": name, "dtype": value.dtype, "sizes": [0] * value.dim(), "strides": [], "fixed": False}
        # Where elements of the traced result share memory (of an expanded tensor, torch below 2.12) its strides hold no result.
        rows = value.is_contiguous() or torch._debug_has_internal_overlap(value) == 1
        return {
            "name": name, "dtype": value.dtype, "sizes": [int(d) for d in value.shape],
            "strides": [] if rows else [int(d) for d in value.stride()], "fixed": True,
        }  # fmt: skip
