"""Element types that numpy lacks: bits in unsigned integers, or ml_dtypes' types where that package is installed."""

from __future__ import annotations

from typing import Any

import numpy as np

_ML_NAMES = {
    "bfloat16": "bfloat16",
    "float8e4m3fn": "float8_e4m3fn",
    "float8e4m3fnuz": "float8_e4m3fnuz",
    "float8e5m2": "float8_e5m2",
    "float8e5m2fnuz": "float8_e5m2fnuz",
    "float4e2m1": "float4_e2m1fn",
    "int4": "int4",
    "uint4": "uint4",
    "float8e8m0": "float8_e8m0fnu",
    "int2": "int2",
    "uint2": "uint2",
}

# Plans hold them in bytes as numbers, ml_dtypes as their lowest bits alone.
_PARTS_OF_BYTES = {"int4": "int8", "uint4": "uint8", "int2": "int8", "uint2": "uint8"}

_NUMPY_NAMES = {
    "float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool",
}  # fmt: skip


def numpy_dtype(name: str) -> Any:
    """The numpy type of elements of a plan's type; of those that numpy lacks, the unsigned integer that holds their bits."""
    if name in _NUMPY_NAMES:
        return np.dtype(name)
    if name == "string":
        return np.dtype(object)
    return np.dtype("uint16" if name == "bfloat16" else "int8" if name in ("int4", "int2") else "uint8")


def to_plan(value: Any, name: str) -> Any:
    """`value` as what _core takes: arrays as they are, numbers and lists as arrays of the plan's type."""
    if isinstance(value, np.ndarray):
        if value.dtype.isbuiltin == 1 or value.dtype.name != _ML_NAMES.get(name):
            return value
        return value.astype(_PARTS_OF_BYTES[name]) if name in _PARTS_OF_BYTES else value.view(numpy_dtype(name))
    if hasattr(value, "__dlpack__") or isinstance(value, (memoryview, bytearray)) or name == "string":
        return value
    if isinstance(value, (bool, int, float, list, tuple, np.generic)):
        return np.asarray(value, dtype=numpy_dtype(name))
    return value


def from_plan(array: Any, name: str) -> Any:
    """Bits as ml_dtypes' type, if it is installed."""
    if name not in _ML_NAMES or not isinstance(array, np.ndarray):
        return array
    try:
        import ml_dtypes  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        return array
    dtype = getattr(ml_dtypes, _ML_NAMES[name])
    return array.astype(dtype) if name in _PARTS_OF_BYTES else array.view(dtype)
