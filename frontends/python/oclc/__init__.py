"""oclc compiles neural networks to OpenCL, and runs and trains them.

    plan = oclc.compile("model.onnx")           # or oclc.load("plan.bin")
    session = plan.session("gpu")
    y = session(x)                              # numpy arrays, torch tensors, anything with __dlpack__

Compiling needs no device and no OpenCL; the first call that needs one opens libOpenCL.
"""

from __future__ import annotations

from . import _core
from .devices import Context, Device, devices
from .errors import CompileError, Error, ForkError
from .plan import Entry, Plan, ReportRow, Tensor, Train, compile, load
from .session import Launch, Running, Session, State, Step, Trainer

__version__: str = _core.version()

__all__ = [
    "CompileError", "Context", "Device", "Entry", "Error", "ForkError", "Launch", "Plan", "ReportRow", "Running", "Session",
    "State", "Step", "Tensor", "Train", "Trainer", "compile", "devices", "load",
]  # fmt: skip
