"""Finds libOpenCL for the runtime, which opens it at the first call that needs a device."""

from __future__ import annotations

import ctypes
import glob
import importlib.util
import os
import sys

_looked = False


def _candidates() -> list[str]:
    """Loaders that packages of Python bring along, where the system has none."""
    found: list[str] = []
    spec = importlib.util.find_spec("pyopencl")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for libraries in (os.path.join(folder, ".libs"), os.path.join(os.path.dirname(folder), "pyopencl.libs")):
            found += sorted(glob.glob(os.path.join(libraries, "libOpenCL*.so*")))
    prefix = os.path.join(sys.prefix, "lib", "libOpenCL.so.1")
    return found + ([prefix] if os.path.exists(prefix) else [])


def find_loader() -> None:
    """Names the loader by OCLC_OPENCL if the user has not and the system has none."""
    global _looked
    if _looked or os.environ.get("OCLC_OPENCL"):
        return
    _looked = True
    try:
        ctypes.CDLL("libOpenCL.so.1")
    except OSError:
        for path in _candidates():
            os.environ["OCLC_OPENCL"] = path
            return
