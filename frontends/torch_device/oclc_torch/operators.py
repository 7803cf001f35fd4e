"""Which operators the compiler serves, and a plan for a call of one."""

from __future__ import annotations

import torch

from .foreach import EXPANDED

__all__ = ["served", "tracer"]

# Operators that torch makes of others, and that the compiler reads whole.
_WHOLE = (
    "convolution", "convolution_backward", "native_layer_norm", "native_group_norm", "embedding", "_softmax", "_log_softmax",
    "native_dropout_backward", "silu_backward", "logit_backward", "native_group_norm_backward", "native_layer_norm_backward",
    "cummax", "cummin", "logcumsumexp",
)  # fmt: skip


def served() -> list[str]:
    """Operators whose kernel for all devices is made of kernels that this device would have to have, and those above."""
    found = []
    for name in torch._C._dispatch_get_all_op_names():
        if not name.startswith("aten::"):
            continue
        base = name[len("aten::") :]
        if torch._C._dispatch_has_kernel_for_dispatch_key(name, "PrivateUse1"):
            continue
        whole = base.split(".")[0] in _WHOLE and "dimname" not in base or base in EXPANDED
        if whole or torch._C._dispatch_has_kernel_for_dispatch_key(name, "CompositeExplicitAutogradNonFunctional"):
            found.append(base)
    return found


def tracer(name: str, overload: str, arguments: list[object], general: str, device: int) -> dict[str, object] | str:
    """Called by the extension: what serves the call, or why nothing does."""
    packet = getattr(torch.ops.aten, name.split("::")[1], None) if name.startswith("aten::") else None
    if packet is None:
        return "it is no operator of torch itself"
    op = getattr(packet, overload or "default")
    if torch.Tag.nondeterministic_seeded in op.tags:
        return "it draws random numbers in a way that the device has no kernel for"
    from .trace import trace  # what it needs of torch takes seconds to import

    return trace(op, arguments, general, device)
