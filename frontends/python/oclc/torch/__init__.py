"""PyTorch: `torch.compile(model, backend="oclc")`.

Loaded by torch when the backend is first asked for; `import oclc` alone does not import torch.
"""

from __future__ import annotations

from .backend import Options, backend, counters

__all__ = ["Options", "backend", "counters"]
