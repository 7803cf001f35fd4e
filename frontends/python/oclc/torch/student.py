"""PyTorch's conv2d, linear and matmul by OpenCL kernels: operators of their own with gradients, layers that use them, and a table
that compares layer by layer."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn import functional as F

from .backend import Options, _decompositions, planned
from .plan_call import PlanCall

__all__ = ["Compared", "Conv2d", "Linear", "compare", "conv2d", "linear", "matmul", "replace"]

_calls: dict[tuple[Any, ...], PlanCall] = {}


def _key(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return (tuple(value.shape), value.dtype)
    return tuple(value) if isinstance(value, list) else value


def _by_plan(function: Callable[..., Any], *arguments: Any) -> Any:
    """The function's results by a plan, one for each set of shapes, types and numbers. Tensors are arguments, None allowed."""
    key = (function, os.getpid(), *map(_key, arguments))
    tensors = [a.detach() for a in arguments if isinstance(a, torch.Tensor)]
    if key not in _calls:

        def on_tensors(*given: torch.Tensor) -> Any:
            rest = iter(given)
            results = function(*[next(rest) if isinstance(a, torch.Tensor) else a for a in arguments])
            return [results] if isinstance(results, torch.Tensor) else list(results)

        module = make_fx(on_tensors, decomposition_table=_decompositions(), tracing_mode="fake")(*tensors)
        _calls[key] = planned(Options(), module)
    results = _calls[key](*tensors)
    return results[0] if len(results) == 1 else tuple(results)


def _conv2d(x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    return torch.ops.aten.convolution.default(x, weight, bias, stride, padding, dilation, False, [0, 0], groups)


def _conv2d_backward(g: Any, x: Any, weight: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    arguments = (stride, padding, dilation, False, [0, 0], groups, [True, True, True])
    return torch.ops.aten.convolution_backward.default(g, x, weight, [weight.shape[0]], *arguments)


def _linear(x: Any, weight: Any, bias: Any) -> Any:
    return F.linear(x, weight, bias)


def _linear_backward(g: Any, x: Any, weight: Any) -> Any:
    rows, inputs = g.reshape(-1, g.shape[-1]), x.reshape(-1, x.shape[-1])
    return torch.mm(rows, weight).reshape(x.shape), torch.mm(rows.t(), inputs), rows.sum(0)


def _matmul(a: Any, b: Any) -> Any:
    return torch.matmul(a, b)


def _matmul_backward(g: Any, a: Any, b: Any) -> Any:
    return torch.matmul(g, b.transpose(-1, -2)).sum_to_size(a.shape), torch.matmul(a.transpose(-1, -2), g).sum_to_size(b.shape)


@torch.library.custom_op("oclc::conv2d", mutates_args=())
def _conv2d_op(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, stride: Sequence[int], padding: Sequence[int],
    dilation: Sequence[int], groups: int,
) -> torch.Tensor:  # fmt: skip
    return _by_plan(_conv2d, x, weight, bias, list(stride), list(padding), list(dilation), groups)  # type: ignore[no-any-return]


@_conv2d_op.register_fake
def _(x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    return torch.empty_like(_conv2d(x, weight, bias, stride, padding, dilation, groups), memory_format=torch.contiguous_format)


def _keep_conv2d(ctx: Any, inputs: Any, output: Any) -> None:
    x, weight, bias, *ctx.numbers = inputs
    ctx.has_bias = bias is not None
    ctx.save_for_backward(x, weight)


def _conv2d_gradients(ctx: Any, g: Any) -> Any:
    x, weight = ctx.saved_tensors
    stride, padding, dilation, groups = ctx.numbers
    dx, dw, db = _by_plan(_conv2d_backward, g.contiguous(), x, weight, list(stride), list(padding), list(dilation), groups)
    return dx, dw, db if ctx.has_bias else None, None, None, None, None


_conv2d_op.register_autograd(_conv2d_gradients, setup_context=_keep_conv2d)


@torch.library.custom_op("oclc::linear", mutates_args=())
def _linear_op(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    return _by_plan(_linear, x, weight, bias)  # type: ignore[no-any-return]


@_linear_op.register_fake
def _(x: Any, weight: Any, bias: Any) -> Any:
    return x.new_empty((*x.shape[:-1], weight.shape[0]))


def _keep_linear(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.has_bias = inputs[2] is not None
    ctx.save_for_backward(*inputs[:2])


def _linear_gradients(ctx: Any, g: Any) -> Any:
    dx, dw, db = _by_plan(_linear_backward, g.contiguous(), *ctx.saved_tensors)
    return dx, dw, db if ctx.has_bias else None


_linear_op.register_autograd(_linear_gradients, setup_context=_keep_linear)


@torch.library.custom_op("oclc::matmul", mutates_args=())
def _matmul_op(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return _by_plan(_matmul, a, b)  # type: ignore[no-any-return]


@_matmul_op.register_fake
def _(a: Any, b: Any) -> Any:
    return torch.empty_like(torch.matmul(a, b), memory_format=torch.contiguous_format)


def _keep_matmul(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(*inputs)


def _matmul_gradients(ctx: Any, g: Any) -> Any:
    return _by_plan(_matmul_backward, g.contiguous(), *ctx.saved_tensors)


_matmul_op.register_autograd(_matmul_gradients, setup_context=_keep_matmul)


def _pair(value: int | Sequence[int]) -> list[int]:
    return [value, value] if isinstance(value, int) else list(value)


def conv2d(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> torch.Tensor:
    """x[N, C, H, W] with weight[O, C / groups, R, S], as torch.nn.functional.conv2d."""
    return _conv2d_op(x, weight, bias, _pair(stride), _pair(padding), _pair(dilation), groups)  # type: ignore[no-any-return]


def linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """x[.., I] times weight[O, I] transposed, plus bias[O]."""
    return _linear_op(x, weight, bias)  # type: ignore[no-any-return]


def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a[.., M, K] times b[.., K, N]; both have two axes or more."""
    if a.dim() < 2 or b.dim() < 2:
        raise ValueError(f"matmul: wanted matrices, found {a.dim()} and {b.dim()} axes")
    return _matmul_op(a, b)  # type: ignore[no-any-return]


class Conv2d(nn.Conv2d):
    """nn.Conv2d by the operator above."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        padding: Any = self.padding
        return conv2d(input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)


class Linear(nn.Linear):
    """nn.Linear by the operator above."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return linear(input, self.weight, self.bias)


_REPLACEMENTS: dict[type[nn.Module], type[nn.Module]] = {nn.Conv2d: Conv2d, nn.Linear: Linear}


def replace(model: nn.Module, kinds: Sequence[type[nn.Module]] = (nn.Conv2d, nn.Linear)) -> int:
    """Makes the model's layers of these kinds compute by OpenCL, in place, with their parameters as they are. Gives their
    number. ValueError for a kind that has no such form; convolutions that pad by words or by other values stay as they are."""
    unknown = [kind.__name__ for kind in kinds if kind not in _REPLACEMENTS]
    if unknown:
        raise ValueError(f"replace: wanted Conv2d or Linear, found {', '.join(unknown)}")
    count = 0
    for module in model.modules():
        kind = type(module)
        if kind not in kinds:
            continue
        if isinstance(module, nn.Conv2d) and (isinstance(module.padding, str) or module.padding_mode != "zeros"):
            continue
        module.__class__ = _REPLACEMENTS[kind]
        count += 1
    return count


@dataclasses.dataclass(frozen=True)
class Compared:
    """A layer by both ways: the largest difference of the results, seconds, and the file of kernels that ran."""

    layer: str
    kind: str
    difference: float
    torch_seconds: float
    oclc_seconds: float
    source: str


def _fastest(function: Callable[[], Any], repeats: int) -> float:
    best = float("inf")
    for _ in range(repeats):
        begin = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - begin)
    return best


@torch.no_grad()
def compare(
    model: nn.Module, *inputs: Any, repeats: int = 5, sources: str | os.PathLike[str] | None = None, show: bool = True
) -> list[Compared]:
    """Runs the model once and, on what each replaced layer is given, that layer by oclc and by torch. Prints a table. `sources`:
    a folder that receives each layer's kernels as a .cl file."""
    seen: list[tuple[str, nn.Module, torch.Tensor]] = []
    hooks = []
    for name, module in model.named_modules():
        if isinstance(module, (Conv2d, Linear)):

            def note(m: nn.Module, given: Any, n: str = name) -> None:
                seen.append((n, m, given[0].detach().clone()))

            hooks.append(module.register_forward_pre_hook(note))
    try:
        model(*inputs)
    finally:
        for hook in hooks:
            hook.remove()
    rows = [_compared(name, module, x, repeats, sources) for name, module, x in seen]
    if show:
        print(f"{'layer':32} {'kind':8} {'largest difference':>18} {'torch us':>10} {'oclc us':>10}  file")
        for r in rows:
            times = f"{r.torch_seconds * 1e6:10.0f} {r.oclc_seconds * 1e6:10.0f}"
            print(f"{r.layer:32} {r.kind:8} {r.difference:18.3e} {times}  {r.source}")
    return rows


def _compared(name: str, module: Any, x: torch.Tensor, repeats: int, sources: str | os.PathLike[str] | None) -> Compared:
    base = nn.Conv2d if isinstance(module, Conv2d) else nn.Linear
    found, expected = module(x), base.forward(module, x)
    numbers = (module.stride, module.padding, module.dilation) if base is nn.Conv2d else ()
    function = _conv2d if base is nn.Conv2d else _linear
    arguments = [x, module.weight, module.bias, *[list(n) for n in numbers], *([module.groups] if numbers else [])]
    plan = _calls[(function, os.getpid(), *map(_key, arguments))].plan
    source = f"{name or 'model'}.cl"
    if sources is not None:
        folder = pathlib.Path(sources)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / source).write_text("\n".join(plan.sources().values()))
        source = str(folder / source)
    return Compared(
        name, base.__name__, float((found - expected).abs().max()), _fastest(lambda: base.forward(module, x), repeats),
        _fastest(lambda: module(x), repeats), source,
    )  # fmt: skip
