"""The operators that DLPrimitives' backend of PyTorch registers (pytorch_dlprim, 136 names), each by its name on the device: results as on
the CPU, nothing computed there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

Arguments = list[Any]


def numbers(*sizes: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(sizes, generator=torch.Generator().manual_seed(seed))


def chances(*sizes: int, seed: int = 0) -> torch.Tensor:
    return torch.rand(sizes, generator=torch.Generator().manual_seed(seed)) * 0.9 + 0.05


def integers(*sizes: int, seed: int = 0) -> torch.Tensor:
    return torch.randint(0, 8, sizes, generator=torch.Generator().manual_seed(seed))


A, B, C = numbers(3, 4), numbers(3, 4, seed=1), numbers(3, 4, seed=2)
P, Q = chances(3, 4), chances(3, 4, seed=1)
I, J = integers(3, 4), integers(3, 4, seed=1)
IMAGES, ROWS = numbers(2, 3, 6, 8), numbers(5, 4)
LABELS = integers(3) % 4
LOGS, SOFT = A.log_softmax(1), A.softmax(1)
NORMED = (numbers(3), numbers(3, seed=1), numbers(3, seed=2), chances(3))  # weight, bias, mean and variance of three channels
MEAN, ROOT = A.mean(1, keepdim=True), (A.var(1, keepdim=True, correction=0) + 1e-5).rsqrt()
KERNEL = numbers(4, 3, 3, 3)
WINDOW = [[1, 1], [1, 1], [1, 1], False, [0, 0], 1]
ATTENTION = [numbers(2, 5, 8)] * 3 + [8, 2, numbers(24, 8, seed=1), numbers(24, seed=2), numbers(8, 8, seed=3), numbers(8, seed=4)]

EVERY: dict[str, Arguments] = {
    "_adaptive_avg_pool2d": [IMAGES, [3, 4]], "_adaptive_avg_pool2d_backward": [numbers(2, 3, 3, 4), IMAGES], "_cat": [[A, B], 1],
    "_copy_from": [A, B], "_copy_from_and_resize": [A, torch.empty(0)], "_local_scalar_dense": [A[0, 0]],
    "_log_softmax.out": [A, 1, False], "_log_softmax_backward_data.out": [B, LOGS, 1, torch.float32],
    "_native_multi_head_attention": ATTENTION, "_native_multi_head_attention.out": ATTENTION, "_reshape_alias": [A, [2, 6], [6, 1]],
    "_softmax.out": [A, 1, False], "_softmax_backward_data.out": [B, SOFT, 1, torch.float32],
    "_transform_bias_rescale_qkv": [numbers(2, 5, 24), numbers(24), 2],
    "_upsample_nearest_exact2d.out": [IMAGES, [9, 16]],
    "_upsample_nearest_exact2d_backward.grad_input": [numbers(2, 3, 9, 16), [9, 16], [2, 3, 6, 8]],
    "abs": [A], "abs.out": [A], "add.out": [A, B], "addcdiv.out": [A, B, P], "addcmul.out": [A, B, C], "addmm.out": [numbers(3), ROWS, A.t()],
    "amax.out": [A, [1]], "amin.out": [A, [0]], "arange.start_out": [1.0, 6.0, 0.5], "argmax.out": [A, 1], "as_strided": [A, [2, 3], [5, 1], 1],
    "atan.out": [A], "avg_pool2d.out": [IMAGES, [2, 2]], "avg_pool2d_backward.grad_input": [numbers(2, 3, 3, 4), IMAGES, [2, 2], [2, 2], [0, 0], False, True, None],
    "bernoulli_.float": [A, 0.5], "binary_cross_entropy": [P, Q], "binary_cross_entropy_backward": [torch.tensor(1.0), P, Q],
    "binary_cross_entropy_backward.grad_input": [torch.tensor(1.0), P, Q], "bitwise_and.Tensor_out": [I, J], "bitwise_not.out": [I],
    "bitwise_or.Tensor_out": [I, J], "bitwise_xor.Tensor_out": [I, J], "bmm.out": [numbers(2, 3, 4), numbers(2, 4, 5)], "cat.out": [[A, B], 1],
    "ceil.out": [A], "clamp.out": [A, -0.5, 0.5], "clamp_min.out": [A, 0.1],
    "convolution_backward_overrideable": [numbers(2, 4, 6, 8), IMAGES, KERNEL, *WINDOW, [True] * 3],
    "convolution_overrideable": [IMAGES, KERNEL, numbers(4), *WINDOW], "div.out": [A, P], "dot": [A[0], B[0]],
    "empty.memory_format": [[3, 4]], "empty_strided": [[3, 4], [1, 3]], "eq.Scalar_out": [I, 2], "eq.Tensor_out": [I, J], "exp.out": [A],
    "fill_.Scalar": [A, 2.5], "ge.Scalar_out": [A, 0.1], "ge.Tensor_out": [A, B], "gelu.out": [A], "gelu_backward.grad_input": [B, A],
    "gt.Scalar_out": [A, 0.1], "gt.Tensor_out": [A, B], "hardsigmoid.out": [A], "hardsigmoid_backward.grad_input": [B, A], "hardswish_": [A],
    "hardswish_backward": [B, A], "hardtanh": [A], "hardtanh_": [A], "hardtanh_backward": [B, A, -1, 1], "le.Scalar_out": [A, 0.1],
    "le.Tensor_out": [A, B], "leaky_relu.out": [A], "leaky_relu_backward.grad_input": [B, A, 0.01, False], "lerp.Scalar_out": [A, B, 0.3],
    "linear": [ROWS, A, numbers(3)], "log.out": [P], "log_sigmoid_backward": [B, A, torch.exp(-A.abs())],
    "log_sigmoid_backward.grad_input": [B, A, torch.exp(-A.abs())], "log_sigmoid_forward": [A], "log_sigmoid_forward.output": [A],
    "logit": [P], "logit.out": [P], "lt.Scalar_out": [A, 0.1], "lt.Tensor_out": [A, B], "masked_select": [A, A > 0], "max": [A],
    "max_pool2d": [IMAGES, [2, 2]], "maximum.out": [A, B], "mean.out": [A, [1]], "min": [A], "minimum.out": [A, B], "mm.out": [ROWS, A.t()],
    "mse_loss": [A, B], "mse_loss_backward": [torch.tensor(1.0), A, B, 1], "mul.out": [A, B], "mul_.Scalar": [A, 3],
    "native_batch_norm": [IMAGES, *NORMED, True, 0.1, 1e-5],
    "native_batch_norm_backward": [numbers(2, 3, 6, 8, seed=5), IMAGES, *NORMED[:1], *NORMED[2:], IMAGES.mean((0, 2, 3)), IMAGES.var((0, 2, 3)).rsqrt(), True, 1e-5, [True] * 3],
    "native_dropout": [A, 0.5, True], "native_dropout_backward": [A, B > 0, 2.0], "native_layer_norm": [A, [4], numbers(4), numbers(4, seed=1), 1e-5],
    "native_layer_norm_backward": [B, A, [4], MEAN, ROOT, numbers(4), numbers(4, seed=1), [True] * 3], "ne.Scalar_out": [I, 2],
    "ne.Tensor_out": [I, J], "neg.out": [A], "nll_loss_backward.grad_input": [torch.tensor(1.0), LOGS, LABELS, None, 1, -100, torch.tensor(3.0)],
    "nll_loss_forward.output": [LOGS, LABELS, None, 1, -100], "normal_": [A], "pow.Tensor_Scalar_out": [P, 2.5], "prod.int_out": [A, 1],
    "reciprocal.out": [P], "relu": [A], "relu_": [A], "resize_": [A, [6, 2]], "round.out": [A], "set_.source_Storage": [A],
    "set_.source_Storage_storage_offset": [A], "sgn.out": [A], "sigmoid": [A], "sigmoid.out": [A], "sigmoid_": [A],
    "sigmoid_backward.grad_input": [B, P], "silu.out": [A], "silu_backward.grad_input": [B, A], "sqrt.out": [P], "sub.out": [A, B],
    "sum.IntList_out": [A, [1]], "tanh": [A], "tanh.out": [A], "tanh_": [A], "tanh_backward.grad_input": [B, P],
    "threshold_backward.grad_input": [B, A, 0], "uniform_": [A], "upsample_bilinear2d.out": [IMAGES, [9, 16], False],
    "upsample_bilinear2d_backward.grad_input": [numbers(2, 3, 9, 16), [9, 16], [2, 3, 6, 8], False], "upsample_nearest2d.out": [IMAGES, [12, 16]],
    "upsample_nearest2d_backward.grad_input": [numbers(2, 3, 12, 16), [12, 16], [2, 3, 6, 8]], "view": [A, [2, 6]], "zero_": [A],
}  # fmt: skip

# Operators whose kernels torch has for no device but those of others, and the one that they stand for.
STAND_FOR = {"convolution_overrideable": "convolution", "convolution_backward_overrideable": "convolution_backward", "_cat": "cat"}
UNSET = ("empty.memory_format", "empty_strided")
DRAWN: dict[str, Callable[[torch.Tensor], bool]] = {
    "bernoulli_.float": lambda t: bool(((t == 0) | (t == 1)).all()),
    "normal_": lambda t: bool(t.isfinite().all()) and float(t.std()) > 0.1,
    "uniform_": lambda t: bool(((t >= 0) & (t < 1)).all()) and float(t.std()) > 0.01,
    "native_dropout": lambda t: bool(((t == 0) | torch.isclose(t, A * 2)).all()),
}


def operator(name: str) -> Any:
    packet, _, overload = name.partition(".")
    return getattr(getattr(torch.ops.aten, packet), overload or "default")


def placed(value: Any, device: str) -> Any:
    if isinstance(value, list):
        return [placed(v, device) for v in value]
    return value.clone().to(device) if isinstance(value, torch.Tensor) else value


def run(name: str, device: str) -> list[torch.Tensor]:
    """What the operator returns and writes."""
    called = STAND_FOR.get(name, name) if device == "cpu" or name == "_cat" else name
    op = operator(called)
    arguments = placed(EVERY[name], device)
    if name.startswith("set_"):
        arguments = [torch.empty(0, device=device), arguments[0].untyped_storage()] + ([1, [2, 3], [5, 1]] if "offset" in name else [])
    if "convolution_backward" in called and device == "cpu":
        arguments.insert(3, [4])
    if name.startswith("_copy_from") and device == "cpu":
        return arguments[:1]
    size = (3, 4) if name == "binary_cross_entropy_backward.grad_input" else (0,)  # which the CPU does not resize
    outs = {a.name: torch.empty(size, dtype=result_type(name), device=device) for a in op._schema.arguments if a.is_out}
    named = {"device": torch.device(device)} if name.startswith("empty") else {}
    found = op(*arguments, **named, **outs)
    results = list(found) if isinstance(found, (tuple, list)) else [found]
    if name.startswith("native_batch_norm") and "backward" not in name:
        results += arguments[3:5]
    return [torch.as_tensor(r) for r in results]


def result_type(name: str) -> torch.dtype:
    if name.split(".")[0] in ("eq", "ge", "gt", "le", "lt", "ne"):
        return torch.bool
    return torch.int64 if name.startswith(("argmax", "bitwise")) else torch.float32


@pytest.mark.parametrize("name", EVERY)
def test_of_dlprimitives(name: str, nothing_on_the_cpu: None) -> None:
    found = run(name, "ocl")
    assert all(t.device.type == "ocl" for t in found) or name == "_local_scalar_dense"
    layouts = [(t.shape, t.dtype, t.stride()) for t in found]
    found = [t.cpu() for t in found]
    if name in DRAWN:
        assert DRAWN[name](found[0])
        return
    expected = run(name, "cpu")
    assert layouts == [(t.shape, t.dtype, t.stride()) for t in expected]
    if name not in UNSET:
        for f, e in zip(found, expected, strict=True):
            torch.testing.assert_close(f, e, rtol=1e-5, atol=1e-6)


def test_there_are_136() -> None:
    assert len(EVERY) == 136
