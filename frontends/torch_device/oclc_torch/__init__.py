"""PyTorch's device `ocl`: `model.to("ocl")`, on any OpenCL device. Its functions are those of the module torch.ocl.

torch imports this package by itself (entry point torch.backends; TORCH_DEVICE_BACKEND_AUTOLOAD=0 switches that off); `import
oclc_torch` does the same, and says what is wrong where something is.
"""

from __future__ import annotations

import sys
import warnings

_loaded = False


def _minor(version: str) -> str:
    return ".".join(version.split("+")[0].split(".")[:2])


def _load() -> None:
    """Registers the device. ImportError says what does not fit."""
    global _loaded
    if _loaded:
        return
    import torch

    if _loaded:  # by torch's own import, which calls _autoload
        return
    try:
        from ._built_for import TORCH
    except ImportError:
        raise ImportError(
            "oclc_torch: the extension is not built; pip install --no-build-isolation frontends/torch_device"
        ) from None
    if _minor(TORCH) != _minor(torch.__version__):
        raise ImportError(
            f"oclc_torch was built for torch {_minor(TORCH)}, found {torch.__version__}; build it again for this one "
            "(pip install --no-build-isolation --force-reinstall --no-deps oclc-torch), or install torch "
            f"{_minor(TORCH)}"
        )
    import oclc._core  # noqa: F401  brings the runtime that the extension calls
    from oclc import _opencl

    _opencl.find_loader()
    from . import _C

    torch.utils.rename_privateuse1_backend("ocl")
    from . import ocl

    torch._register_device_module("ocl", ocl)
    sys.modules["torch.ocl"] = ocl
    torch.utils.generate_methods_for_privateuse1_backend(
        for_tensor=True, for_module=True, for_packed_sequence=True, for_storage=True
    )
    from .operators import served, tracer

    _C.set_tracer(tracer)
    _C.serve(served())
    _loaded = True


def _other_accelerator() -> bool:
    """Whether this torch computes on GPUs by itself. Autograd knows one accelerator a process, and takes ocl where it is loaded:
    backward passes on CUDA then fail. So there the device waits for `import oclc_torch`."""
    import torch

    return torch.version.cuda is not None and torch.cuda.device_count() > 0


def _autoload() -> None:
    """torch's own import calls this: whatever is wrong here must not break it."""
    if _other_accelerator():
        return
    try:
        _load()
    except Exception as error:
        warnings.warn(f"the device ocl is not there: {error}", stacklevel=2)


# Without torch's autoload, or after torch: here. While torch is being imported its own call of _autoload comes.
if not getattr(getattr(sys.modules.get("torch"), "__spec__", None), "_initializing", False):
    _load()
