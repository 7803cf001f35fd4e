"""Devices of OpenCL, and contexts on them."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

from . import _core, _opencl

__all__ = ["Device", "Context", "devices"]


@dataclasses.dataclass(frozen=True)
class Device:
    """A device as the runtime sees it. Sizes in bytes; `index` and "P:D" select it, as does a part of its name."""

    index: int
    platform: int
    device: int
    kind: str  # "cpu", "gpu", "other"
    name: str
    vendor: str
    driver: str
    version: str
    platform_name: str
    cpu_features: str
    quirks: str
    compute_units: int
    clock_mhz: int
    global_bytes: int
    local_bytes: int
    max_alloc_bytes: int
    fp16: bool
    fp64: bool
    unified_memory: bool
    available: bool
    device_id: int  # the cl_device_id


def devices() -> list[Device]:
    """All devices of all platforms. Error if there is no OpenCL loader; an empty list if it finds no device."""
    _opencl.find_loader()
    return [Device(**facts) for facts in _core.devices()]


class Context:
    """A device with a queue, which any number of sessions share.

    device: index, "P:D", "cpu", "gpu" or a part of a name; "": OCLC_DEVICE, else the first GPU, else the first device.
    cl_context, cl_queue: instead of `device`, the caller's own (both): addresses, or pyopencl's objects, which have `int_ptr`.
      The queue is in-order.
    profiling: the queue takes times, see Session.profile().
    cache_dir: folder of the cache of built programs (default: OCLC_CACHE_DIR, else ~/.cache/oclc).
    """

    def __init__(
        self,
        device: str = "",
        *,
        cl_context: Any = 0,
        cl_queue: Any = 0,
        profiling: bool = False,
        cache_dir: str | os.PathLike[str] | None = None,
    ) -> None:
        _opencl.find_loader()
        folder = None if cache_dir is None else os.fspath(cache_dir)
        self._selection = device
        self._owned = (cl_context, cl_queue)  # they outlive the context
        self._handle = _core.Context(device, _address(cl_context), _address(cl_queue), profiling, folder)

    @property
    def device(self) -> Device:
        return Device(**self._handle.device())

    @property
    def cl_context(self) -> int:
        """Address of the cl_context; pyopencl: `cl.Context.from_int_ptr(c.cl_context, retain=True)`."""
        return self._handle.cl_context

    @property
    def cl_queue(self) -> int:
        """Address of the cl_command_queue; pyopencl: `cl.CommandQueue.from_int_ptr(c.cl_queue, retain=True)`."""
        return self._handle.cl_queue

    def __repr__(self) -> str:
        return f"<oclc.Context on {self.device.name!r}>"


def _address(value: Any) -> int:
    return int(getattr(value, "int_ptr", value))


def as_context(device: Any) -> Context:
    """A context of whatever says where to run: None or a selection, a Context, a pair (pyopencl context, queue)."""
    if isinstance(device, Context):
        return device
    if device is None or isinstance(device, str):
        return Context(device or "")
    if isinstance(device, int):
        return Context(str(device))
    if isinstance(device, tuple) and len(device) == 2:
        return Context(cl_context=device[0], cl_queue=device[1])
    raise TypeError(
        "device: wanted None, a selection such as 'cpu', 'gpu', '1:0', an oclc.Context or a pair (cl_context, cl_queue), "
        f"found {type(device).__name__}"
    )
