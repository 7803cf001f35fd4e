"""Operators over lists of tensors as one graph of operators over tensors, so that one plan serves the list."""

from __future__ import annotations

import math
from typing import Any

import torch

_NAMES = (
    "abs", "add", "addcdiv", "addcmul", "ceil", "clamp_max", "clamp_min", "cos", "div", "erf", "exp", "expm1", "floor", "frac",
    "lerp", "log", "log10", "log1p", "log2", "maximum", "minimum", "mul", "neg", "pow", "reciprocal", "round", "rsqrt", "sigmoid",
    "sign", "sin", "sqrt", "sub", "tan", "tanh", "trunc",
)  # fmt: skip
_SKIPPED = ("addcdiv.Tensor", "addcmul.Tensor")  # scalars of a call as one tensor


def _overloads() -> set[str]:
    found = {"_foreach_zero_", "_foreach_copy_", "_foreach_norm.Scalar"}
    for name in _NAMES:
        for form in (name, name + "_"):
            packet = getattr(torch.ops.aten, "_foreach_" + form, None)
            for overload in packet.overloads() if packet else ():
                if f"{name}.{overload}" not in _SKIPPED and "out" not in overload:
                    found.add(f"_foreach_{form}" + ("" if overload == "default" else f".{overload}"))
    return found


EXPANDED = _overloads() | {"_fused_adam_", "_fused_adamw_", "_fused_sgd_"}


def expand(op: Any, arguments: list[Any]) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """The operator's work: values of the tensors that it writes, and other results."""
    name = op._schema.name.split("::")[1]
    if name in ("_fused_adam_", "_fused_adamw_"):
        return _adam(op, arguments, name == "_fused_adamw_"), []
    if name == "_fused_sgd_":
        return _sgd(op, arguments), []
    in_place = name.endswith("_")
    element = name[len("_foreach_") :].rstrip("_")
    results = []
    for i, first in enumerate(arguments[0]):
        rest = [a[i] if isinstance(a, list) else a for a in arguments[1:]]
        results.append(_element(element, op, first, rest))
    return (results, []) if in_place else ([], results)


def _element(name: str, op: Any, first: torch.Tensor, rest: list[Any]) -> torch.Tensor:
    aten: Any = torch.ops.aten
    if name == "zero":
        return torch.zeros_like(first)
    if name == "copy":
        return rest[0].to(first.dtype).expand(first.shape).clone()
    if name == "norm":
        return aten.linalg_vector_norm(first, rest[0], dtype=rest[1] if len(rest) > 1 else None)
    if name in ("addcdiv", "addcmul"):
        part = rest[0] / rest[1] if name == "addcdiv" else rest[0] * rest[1]
        return first + part * rest[2]
    if name in ("add", "sub") and len(rest) == 2:
        return getattr(aten, name)(first, rest[0], alpha=rest[1])
    if name in ("maximum", "clamp_min") and not isinstance(rest[0], torch.Tensor):
        return aten.clamp_min(first, rest[0])
    if name in ("minimum", "clamp_max") and not isinstance(rest[0], torch.Tensor):
        return aten.clamp_max(first, rest[0])
    if name in ("clamp_min", "clamp_max"):
        return getattr(aten, "maximum" if name == "clamp_min" else "minimum")(first, rest[0])
    if name == "pow" and isinstance(first, (int, float)):
        return aten.pow(first, rest[0])
    return getattr(aten, name)(first, *rest)


def _named(op: Any, arguments: list[Any]) -> dict[str, Any]:
    return {a.name: value for a, value in zip(op._schema.arguments, arguments, strict=True)}


def _scaled(a: dict[str, Any], i: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The gradient as its list keeps it, and as the step takes it."""
    g = a["grads"][i]
    if a.get("grad_scale") is not None:
        g = g / a["grad_scale"]
    return g, -g if a["maximize"] else g


def _unless_inf(a: dict[str, Any], new: torch.Tensor, old: torch.Tensor) -> torch.Tensor:
    found = a.get("found_inf")
    return new.to(old.dtype) if found is None else torch.where(found == 1, old, new.to(old.dtype))


def _one_minus_power(base: float, exponent: torch.Tensor) -> torch.Tensor:
    """1 - base^exponent, whose digits a difference from 1 would lose: it is small in the first steps."""
    return -torch.expm1(exponent * (math.log(base) if base > 0 else -math.inf))


def _adam(op: Any, arguments: list[Any], decoupled: bool) -> list[torch.Tensor]:
    a = _named(op, arguments)
    count, amsgrad = len(a["self"]), bool(a["amsgrad"])
    lists: list[list[torch.Tensor]] = [[] for _ in range(5)]
    b1, b2 = a["beta1"], a["beta2"]
    for i in range(count):
        p, m, v, step = a["self"][i], a["exp_avgs"][i], a["exp_avg_sqs"][i], a["state_steps"][i]
        kept, g = _scaled(a, i)
        q = p
        if decoupled:
            q = p - p * a["weight_decay"] * a["lr"]
        else:
            g = g + p * a["weight_decay"]
        m2 = m + (g - m) * (1 - b1)
        v2 = v * b2 + g * g * (1 - b2)
        largest = torch.maximum(a["max_exp_avg_sqs"][i], v2) if amsgrad else v2
        one, two = _one_minus_power(b1, step), _one_minus_power(b2, step)
        q = q - (m2 / one) * a["lr"] / (torch.sqrt(largest) / torch.sqrt(two) + a["eps"])
        lists[0].append(_unless_inf(a, q, p))
        lists[1].append(kept.to(a["grads"][i].dtype))
        lists[2].append(_unless_inf(a, m2, m))
        lists[3].append(_unless_inf(a, v2, v))
        if amsgrad:
            lists[4].append(_unless_inf(a, largest, a["max_exp_avg_sqs"][i]))
    return [t for group in lists for t in group]


def _sgd(op: Any, arguments: list[Any]) -> list[torch.Tensor]:
    a = _named(op, arguments)
    params, grads, buffers = [], [], []
    for i, p in enumerate(a["self"]):
        kept, g = _scaled(a, i)
        g = g + p * a["weight_decay"]
        if a["momentum_buffer_list"]:
            old = a["momentum_buffer_list"][i]
            b = g if a["is_first_step"] else old * a["momentum"] + g * (1 - a["dampening"])
            buffers.append(_unless_inf(a, b, old))
            g = g + b * a["momentum"] if a["nesterov"] else b
        params.append(_unless_inf(a, p - g * a["lr"], p))
        grads.append(kept.to(a["grads"][i].dtype))
    return [*params, *grads, *buffers]
