"""Sizes and numbers of a graph as functions of its arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch


def maker(value: Any, symbols: dict[str, int]) -> Callable[[Sequence[Any]], Any]:
    """What makes an output of a call from its arguments: an empty tensor of the sizes and strides that torch expects, or the
    number that an expression is. symbols: by name the position of the argument that holds its value."""
    if isinstance(value, torch.Tensor):
        sizes = [number(d, symbols) for d in value.shape]
        strides = [number(d, symbols) for d in value.stride()]
        dtype = value.dtype
        device = value.device if value.device.type == "ocl" else None
        if all(isinstance(d, int) for d in (*sizes, *strides)):
            return lambda arguments: torch.empty_strided(sizes, strides, dtype=dtype, device=device)
        return lambda arguments: torch.empty_strided(
            [at(d, arguments) for d in sizes], [at(d, arguments) for d in strides], dtype=dtype, device=device
        )
    made = number(value, symbols)
    return lambda arguments: at(made, arguments)


def number(value: Any, symbols: dict[str, int]) -> Any:
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


def at(value: Any, arguments: Sequence[Any]) -> Any:
    return value(arguments) if callable(value) else value
