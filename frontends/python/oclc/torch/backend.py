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
from torch._decomp import core_aten_decompositions, decomposition_table
from torch._dynamo.backends.common import aot_autograd
from torch.fx import GraphModule

from .. import _core, _opencl
from ..devices import Context
from ..plan import Plan, load, request
from .device_call import DeviceCall, device_of
from .draws import dropout
from .freeze import FrozenCall
from .fx_json import GraphText, has_elements, memory_of
from .partition import run_in_parts
from .plan_call import Counters, PlanCall, counters

__all__ = ["Counters", "Options", "PlanCall", "backend", "counters"]

_FREE = ("device", "precision", "cache_dir", "disable", "freeze", "fallback")


@dataclasses.dataclass(frozen=True)
class Options:
    """What torch.compile(.., backend="oclc", options={..}) takes.

    device: as of Plan.session(). precision: strict, fp32, fast, tf32, bf16. cache_dir: folder of compiled plans, "" for none
    (default: OCLC_CACHE_DIR, else ~/.cache/oclc; below it "torch"). disable: passes to switch off. freeze: without gradients,
    parameters and buffers are constants of the plan, which is compiled anew when torch has written into them. fallback:
    operators that the compiler does not read run in torch, and a warning names them; else they are an error.
    """

    device: str = ""
    precision: str = "fp32"
    cache_dir: str | None = None
    disable: tuple[str, ...] = ()
    freeze: bool = False
    fallback: bool = False

    @staticmethod
    def of(options: dict[str, Any] | None) -> Options:
        given = dict(options or {})
        unknown = sorted(set(given) - set(_FREE))
        if unknown:
            raise ValueError(f"options of backend 'oclc': wanted some of {', '.join(_FREE)}, found {', '.join(unknown)}")
        if "disable" in given:
            given["disable"] = tuple(given["disable"])
        if given.get("freeze") and given.get("fallback"):
            raise ValueError("options of backend 'oclc': wanted freeze or fallback, found both")
        return Options(**given)


@functools.cache
def _context(device: str, process: int) -> Context:
    return Context(device)


@functools.cache
def _decompositions() -> dict[Any, Callable[..., Any]]:
    """All that torch decomposes, but for what the compiler reads whole, and better so, and for what draws random numbers as torch
    does on the CPU."""
    known = set(_core.aten_operators())
    table = {op: rule for op, rule in decomposition_table.items() if f"{op}" not in known}
    table.update(core_aten_decompositions())
    for op in list(table):
        if not isinstance(op, torch._ops.OpOverload):
            continue
        if (f"{op}" in known and not op.is_view) or torch.Tag.nondeterministic_seeded in op.tags:
            del table[op]
    aten = torch.ops.aten
    # The rules of these write into views; those of the others alias constants, which tracing does not allow.
    for op in (aten.complex.default, aten.polar.default, aten.lift.default, aten.lift_fresh.default):
        table.pop(op, None)
    table[aten.native_dropout.default] = dropout
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
        inference_compiler=functools.partial(compiler, frozen=chosen.freeze),
        partition_fn=min_cut_rematerialization_partition,
        decompositions=_decompositions(),
    )(module, inputs)


def _compile_graph(options: Options, module: GraphModule, example: Sequence[Any], frozen: bool = False) -> Any:
    results = _results(module)
    if not any(map(has_elements, results)):
        return make_boxed_func(_in_torch(module) if any(isinstance(r, torch.Tensor) for r in results) else module.forward)
    if options.fallback:
        return make_boxed_func(run_in_parts(module, functools.partial(_placed, options)))
    if frozen:
        if device := device_of(module):
            raise ValueError(f"options of backend 'oclc': freeze wants tensors of the CPU, found {device}")
        return make_boxed_func(FrozenCall(module, functools.partial(planned, options)))
    return make_boxed_func(_placed(options, module))


def _in_torch(module: GraphModule) -> Callable[..., Any]:
    """For a graph whose results have no elements."""

    def run(*arguments: Any) -> Any:
        counters.eager += 1
        return module.forward(*arguments)

    return run


def _results(module: GraphModule) -> list[Any]:
    nodes = next(node for node in module.graph.nodes if node.op == "output").args[0]
    return [node.meta.get("val") if isinstance(node, torch.fx.Node) else node for node in nodes]


def _placed(options: Options, module: GraphModule) -> PlanCall | DeviceCall:
    """The graph as a plan, on the device `ocl` if its tensors lie there."""
    device = device_of(module)
    if device is None:
        return planned(options, module)
    if options.device not in ("", str(device.index)):
        raise ValueError(f"options of backend 'oclc': wanted no device for tensors on {device}, found {options.device!r}")
    graph = GraphText(module)
    plan = _plan(graph.text, dataclasses.replace(options, device=str(device.index)), {})
    return DeviceCall(plan, graph, module, device)


def planned(options: Options, module: GraphModule, constants: dict[str, torch.Tensor] | None = None) -> PlanCall:
    """The graph as a plan. `constants`: placeholders that keep these values."""
    graph = GraphText(module)
    plan = _plan(graph.text, options, constants or {})
    return PlanCall(plan, graph, module, _context(options.device, os.getpid()))


def _plan(text: bytes, options: Options, constants: dict[str, torch.Tensor]) -> Plan:
    path = _cache_path(text, options, constants)
    if path and os.path.exists(path):
        counters.cached += 1
        return load(path)
    _opencl.find_loader()
    counters.compiled += 1
    handle, _ = _core.compile(
        request(
            bytes=text, graph=True, device=options.device, disable=list(options.disable), precision=options.precision,
            constants=[(name, *memory_of(tensor)) for name, tensor in constants.items()],
        ),
        None,
        lambda message: warnings.warn(message, stacklevel=4),
    )  # fmt: skip
    plan = Plan(handle)
    if path:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        plan.save(path)
    return plan


def _cache_path(text: bytes, options: Options, constants: dict[str, torch.Tensor]) -> str:
    """Named after everything that the plan depends on: the graph, its constants, the options, the device and the compiler's
    build."""
    if options.cache_dir == "" or os.environ.get("OCLC_CACHE") == "0":
        return ""
    root = options.cache_dir or os.environ.get("OCLC_CACHE_DIR") or os.path.expanduser("~/.cache/oclc")
    build = os.stat(_core.__file__)
    device = _context(options.device, os.getpid()).device
    key = hashlib.sha256(text)
    for part in (options.precision, options.disable, device.name, device.driver, device.quirks, build.st_mtime_ns, build.st_size):
        key.update(repr(part).encode())
    for name, tensor in constants.items():
        key.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        key.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return os.path.join(root, "torch", key.hexdigest() + ".bin")


