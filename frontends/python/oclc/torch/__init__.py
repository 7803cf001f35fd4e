"""PyTorch: `torch.compile(model, backend="oclc")`, and TrainStep, a whole training step as one plan;
conv2d, linear and matmul by OpenCL, and layers replaced by them.

Loaded by torch when the backend is first asked for; `import oclc` alone does not import torch.
"""

from __future__ import annotations

from .backend import Options, backend, counters
from .student import Compared, Conv2d, Linear, compare, conv2d, linear, matmul, replace
from .train_step import TrainStep, plan

__all__ = [
    "Compared", "Conv2d", "Linear", "Options", "TrainStep", "backend", "compare", "conv2d", "counters", "linear", "matmul",
    "plan", "replace",
]  # fmt: skip
