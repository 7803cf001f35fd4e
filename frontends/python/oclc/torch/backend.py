"""The backend "oclc" of torch.compile: graphs of AOTAutograd become plans."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from functorch.compile import make_boxed_func, min_cut_rematerialization_partition
from torch._decomp import core_aten_decompositions
from torch._dynamo.backends.common import aot_autograd
from torch.fx import GraphModule

from .. import _core, _opencl
from ..devices import Context
from ..plan import Plan, load, request
from .fx_json import GraphText

_FREE = ("device", "precision", "cache_dir", "disable")


@dataclasses.dataclass(frozen=True)
class Options:
    """What torch.compile(.., backend="oclc", options={..}) takes.

    device: as of Plan.session(). precision: strict, fp32, fast, tf32, bf16. cache_dir: folder of compiled plans, "" for none
    (default: OCLC_CACHE_DIR, else ~/.cache/oclc; below it "torch"). disable: passes to switch off.
    """

    device: str = ""
    precision: str = "fp32"
    cache_dir: str | None = None
    disable: tuple[str, ...] = ()

    @staticmethod
    def of(options: dict[str, Any] | None) -> Options:
        given = dict(options or {})
        unknown = sorted(set(given) - set(_FREE))
        if unknown:
            raise ValueError(f"options of backend 'oclc': wanted some of {', '.join(_FREE)}, found {', '.join(unknown)}")
        if "disable" in given:
            given["disable"] = tuple(given["disable"])
        return Options(**given)


@dataclasses.dataclass
class Counters:
    """What the backend has done in this process."""

    compiled: int = 0  # graphs that were compiled
    cached: int = 0  # plans taken from the cache on disk
    calls: int = 0
    eager: int = 0  # calls with a size of 0, which ran in torch
    copies: int = 0  # strided inputs that were copied


counters = Counters()


@functools.cache
def _context(device: str, process: int) -> Context:
    return Context(device)


@functools.cache
def _decompositions() -> dict[Any, Callable[..., Any]]:
    """Core ATen but for what the compiler reads whole, and better so."""
    table = dict(core_aten_decompositions())
    known = set(_core.aten_operators())
    for op in list(table):
        if isinstance(op, torch._ops.OpOverload) and f"{op}" in known and not op.is_view:
            del table[op]
    return table


def backend(module: GraphModule, inputs: Sequence[Any], *, options: dict[str, Any] | None = None, mode: str | None = None) -> Any:
    """torch.compile's entry: `torch.compile(model, backend="oclc", options={"device": "gpu"})`. Forward and backward pass each
    become a plan. Raises CompileError, which lists every operator that is missing with the modules that use it."""
    if mode not in (None, "default"):
        warnings.warn(f"backend 'oclc' has no mode {mode!r}; see its options", stacklevel=2)
    chosen = Options.of(options)
    compiler = functools.partial(_compile_graph, chosen)
    return aot_autograd(
        fw_compiler=compiler,
        bw_compiler=compiler,
        inference_compiler=compiler,
        partition_fn=min_cut_rematerialization_partition,
        decompositions=_decompositions(),
    )(module, inputs)


def _compile_graph(options: Options, module: GraphModule, example: Sequence[Any]) -> Any:
    graph = GraphText(module)
    if not any(position is not None for position in graph.outputs):
        return make_boxed_func(module.forward)
    return make_boxed_func(PlanCall(_plan(graph.text, options), graph, module, options))


def _plan(text: bytes, options: Options) -> Plan:
    path = _cache_path(text, options)
    if path and os.path.exists(path):
        counters.cached += 1
        return load(path)
    _opencl.find_loader()
    counters.compiled += 1
    handle, _ = _core.compile(
        request(
            bytes=text, graph=True, device=options.device, disable=list(options.disable), precision=options.precision
        ),
        None,
        lambda message: warnings.warn(message, stacklevel=4),
    )
    plan = Plan(handle)
    if path:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        plan.save(path)
    return plan


def _cache_path(text: bytes, options: Options) -> str:
    """Named after everything that the plan depends on: the graph, the options, the device and the compiler's build."""
    if options.cache_dir == "" or os.environ.get("OCLC_CACHE") == "0":
        return ""
    root = options.cache_dir or os.environ.get("OCLC_CACHE_DIR") or os.path.expanduser("~/.cache/oclc")
    build = os.stat(_core.__file__)
    device = _context(options.device, os.getpid()).device
    key = hashlib.sha256(text)
    for part in (options.precision, options.disable, device.name, device.driver, device.quirks, build.st_mtime_ns, build.st_size):
        key.update(repr(part).encode())
    return os.path.join(root, "torch", key.hexdigest() + ".bin")


class PlanCall:
    """A plan in place of a graph of AOTAutograd: takes its placeholders, gives its outputs."""

    def __init__(self, plan: Plan, graph: GraphText, module: GraphModule, options: Options) -> None:
        self.plan = plan
        self._graph = graph
        self._module = module
        self._session = plan.session(_context(options.device, os.getpid()))
        self._run = self._session._handle.run_addresses
        self._constants = graph.constants
        entry = next(iter(plan.entries.values()))
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
        written = [t if t.is_contiguous() else torch.empty(t.shape, dtype=t.dtype) for t in outputs]
        self._run(0, [tuple(t.shape) for t in tensors], [t.data_ptr() for t in tensors], [t.data_ptr() for t in written])
        for wanted, found in zip(outputs, written, strict=True):
            if wanted is not found:
                wanted.copy_(found)
        return results


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
