"""torch.ocl: devices, memory, random numbers and counters of the device `ocl`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from typing import Any

import torch

from . import _C

_process = os.getpid()
_used_before_fork = False


def _index(device: Any = None) -> int:
    if device is None:
        return int(_C.current_device())
    if isinstance(device, int):
        return device if device >= 0 else int(_C.current_device())
    found = torch.device(device)
    if found.type != "ocl":
        raise ValueError(f"torch.ocl: wanted a device of type ocl, found {found}")
    return int(_C.current_device()) if found.index is None else found.index


def is_available() -> bool:
    return device_count() > 0


def device_count() -> int:
    return int(_C.device_count())


def current_device() -> int:
    return int(_C.current_device())


def set_device(device: Any) -> None:
    _C.set_device(_index(device))


def _exchange_device(index: int) -> int:
    return int(_C.exchange_device(index))


def _maybe_exchange_device(index: int) -> int:
    return int(_C.exchange_device(index))


@contextlib.contextmanager
def device(device: Any) -> Iterator[None]:
    """The device is the current one inside the block."""
    old = _C.exchange_device(_index(device))
    try:
        yield
    finally:
        _C.set_device(old)


def init() -> None:
    _C.open(_C.current_device())


def is_initialized() -> bool:
    return any(_C.is_open(i) for i in range(device_count()))


def _is_in_bad_fork() -> bool:
    return os.getpid() != _process and is_initialized()


def _lazy_init() -> None:
    if _is_in_bad_fork():
        raise RuntimeError(
            "device ocl: Cannot re-initialize ocl in forked subprocess. To use ocl with multiprocessing, you must use the 'spawn' "
            "start method"
        )
    init()


def synchronize(device: Any = None) -> None:
    """Waits for all that was enqueued on the device."""
    _C.synchronize(_index(device))


class _Properties:
    def __init__(self, facts: dict[str, Any]) -> None:
        self.__dict__.update(facts)

    def __repr__(self) -> str:
        return "DeviceProperties(" + ", ".join(f"{name}={value!r}" for name, value in self.__dict__.items()) + ")"


def get_device_properties(device: Any = None) -> Any:
    return _Properties(_C.device_facts(_index(device)))


def get_device_name(device: Any = None) -> str:
    return str(_C.device_facts(_index(device))["name"])


def get_device_capability(device: Any = None) -> dict[str, Any]:
    facts = _C.device_facts(_index(device))
    types = {torch.float32, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.bool, torch.bfloat16}
    types |= {torch.float16} if facts["fp16"] else set()
    types |= {torch.float64} if facts["fp64"] else set()
    return {"supported_dtypes": types}


# Streams and events are torch's own, with this device.
class Stream(torch.Stream):
    def __new__(cls, device: Any = None, priority: int = 0) -> Any:
        return torch.Stream(torch.device("ocl", _index(device)), priority=priority)


class Event(torch.Event):
    def __new__(cls, enable_timing: bool = False) -> Any:
        return torch.Event(torch.device("ocl", current_device()), enable_timing=enable_timing)


def current_stream(device: Any = None) -> Any:
    return torch.accelerator.current_stream(torch.device("ocl", _index(device)))


# ---- memory


def memory_stats(device: Any = None) -> dict[str, Any]:
    """Bytes and blocks in use, reserved and kept; `fragmentation`: the part of what is reserved that no tensor uses."""
    return dict(_C.memory_stats(_index(device)))


def memory_allocated(device: Any = None) -> int:
    return int(memory_stats(device)["allocated_bytes.all.current"])


def max_memory_allocated(device: Any = None) -> int:
    return int(memory_stats(device)["allocated_bytes.all.peak"])


def memory_reserved(device: Any = None) -> int:
    return int(memory_stats(device)["reserved_bytes.all.current"])


def max_memory_reserved(device: Any = None) -> int:
    return int(memory_stats(device)["reserved_bytes.all.peak"])


def reset_peak_memory_stats(device: Any = None) -> None:
    _C.reset_peak(_index(device))


def empty_cache() -> None:
    """Gives memory that no tensor uses back to the driver."""
    for index in range(device_count()):
        _C.empty_cache(index)


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """The allocator reserves at most this part of the device's memory."""
    if not 0 < fraction <= 1:
        raise ValueError(f"torch.ocl: wanted a fraction in (0, 1], found {fraction}")
    index = _index(device)
    _C.set_memory_limit(index, int(fraction * _C.device_facts(index)["total_memory"]))


# ---- random numbers


def default_generator(device: Any = None) -> torch.Generator:
    generator: torch.Generator = _C.default_generator(_index(device))
    return generator


def manual_seed(seed: int) -> None:
    default_generator().manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    for index in range(device_count()):
        default_generator(index).manual_seed(int(seed))


def seed() -> None:
    default_generator().seed()


def seed_all() -> None:
    for index in range(device_count()):
        default_generator(index).seed()


def initial_seed() -> int:
    return default_generator().initial_seed()


def get_rng_state(device: Any = None) -> torch.Tensor:
    return default_generator(device).get_state()


def set_rng_state(state: torch.Tensor, device: Any = None) -> None:
    default_generator(device).set_state(state)


def get_rng_state_all() -> list[torch.Tensor]:
    return [get_rng_state(index) for index in range(device_count())]


def set_rng_state_all(states: Iterable[torch.Tensor]) -> None:
    for index, state in enumerate(states):
        set_rng_state(state, index)


# ---- what ran where


def fallbacks() -> dict[str, tuple[int, str]]:
    """Of each operator that ran on the CPU how often and why; TORCH_OCL_FALLBACK=error makes it an error."""
    return dict(_C.fallbacks())


def counters() -> dict[str, int]:
    """calls: operators that ran by plans; traced: plans made or read; in_place, copied: how results came to their tensors;
    launches: kernels of plans."""
    return dict(_C.counters())


def get_amp_supported_dtype() -> list[torch.dtype]:
    return [torch.float16, torch.bfloat16]


def is_autocast_enabled() -> bool:
    return torch.is_autocast_enabled("ocl")
