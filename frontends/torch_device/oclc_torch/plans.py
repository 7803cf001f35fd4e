"""Plans of graphs, cached on disk beside those of torch.compile's backend."""

from __future__ import annotations

import functools
import hashlib
import os
import tempfile
import warnings

from oclc import _core
from oclc.plan import Plan, request

from . import _C

__all__ = ["plan_of"]


def plan_of(text: bytes, device: int) -> Plan:
    """The plan of a graph in the form of .pt2 files, for a device."""
    path = _path(text, device)
    if path:
        try:
            with open(path, "rb") as file:
                return Plan(_core.Plan.of_bytes(file.read()))
        except FileNotFoundError:
            pass
    options = request(bytes=text, graph=True, device=str(device))
    handle, _ = _core.compile(options, None, lambda message: warnings.warn(message, stacklevel=4))
    plan = Plan(handle)
    if path:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=os.path.dirname(path), delete=False) as file:
            file.write(bytes(plan))
        os.replace(file.name, path)  # at every moment no file or the whole one
    return plan


@functools.cache
def _place(device: int) -> bytes:
    """What plans depend on besides their graph: the device and the compiler's build."""
    facts = _C.device_facts(device)
    build = os.stat(_core.__file__)
    return repr([facts["name"], facts["driver"], build.st_mtime_ns, build.st_size]).encode()


def _path(text: bytes, device: int) -> str:
    if os.environ.get("OCLC_CACHE") == "0":
        return ""
    root = os.environ.get("OCLC_CACHE_DIR") or os.path.expanduser("~/.cache/oclc")
    return os.path.join(root, "torch", hashlib.sha256(_place(device) + text).hexdigest() + ".bin")
