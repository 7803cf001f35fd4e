"""PyTorch's own samples of its operators (OpInfo) on the device, forward and gradient, beside eager PyTorch on the CPU.

    python tests/torch_device/opinfo.py [--dtype float32] [--samples 2] [--part K/N] [--only PATTERN] [--out FILE]
    python tests/torch_device/opinfo.py --table FILE..

As tests/python/opinfo.py. An operator of which a part runs on the CPU has fallen to it; numbers that the device draws are compared in
their types and sizes alone.
"""

from __future__ import annotations

import os
import pathlib
import sys
from typing import Any

os.environ.setdefault("OCLC_DEVICE", "cpu")
sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "python"))

import oclc_torch  # noqa: E402, F401
import op_samples  # noqa: E402
import outcomes  # noqa: E402
import torch  # noqa: E402
from outcomes import tensors  # noqa: E402
from torch.utils import _pytree as pytree  # noqa: E402


# torch takes places where to split from the CPU's memory alone, whatever the device.
ON_CPU = {"tensor_split"}


def moved(tensor: torch.Tensor) -> torch.Tensor:
    """As the tensor lies in its storage, all of which goes along."""
    own = tensor.detach()
    if own.layout != torch.strided or own.is_conj() or own.is_neg():
        return own.to("ocl").requires_grad_(tensor.requires_grad)
    whole = torch.empty(0, dtype=own.dtype).set_(own.untyped_storage()).to("ocl")
    return whole.as_strided(own.shape, own.stride(), own.storage_offset()).requires_grad_(tensor.requires_grad)


def on_device(value: Any) -> Any:
    """The same with tensors of the device, and with it where the CPU is named."""

    def move(leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor):
            return moved(leaf)
        if isinstance(leaf, torch.device) or leaf == "cpu":
            return torch.device("ocl")
        return leaf

    return pytree.tree_map(move, value)


class Device(op_samples.Runner):
    draws_alike = False

    def place(self, op: Any, sample: Any) -> Any:
        self.before = torch.ocl.fallbacks()
        kind = type(sample)
        args = sample.args if op.name in ON_CPU else on_device(sample.args)
        return kind(on_device(sample.input), args=args, kwargs=on_device(sample.kwargs), name=sample.name)

    def run(self, op: Any, sample: Any) -> list[torch.Tensor]:
        return tensors(op(sample.input, *sample.args, **sample.kwargs))

    def failed(self, error: BaseException, what: str = "") -> tuple[str, str]:
        if isinstance(error, NotImplementedError):
            return "refused", f"{what}{error}"
        return super().failed(error, what)

    def passed(self) -> tuple[str, str]:
        fell = [
            f"{name}: {reason}"
            for name, (count, reason) in torch.ocl.fallbacks().items()
            if count > self.before.get(name, (0, ""))[0]
        ]
        return ("fell", "; ".join(fell)) if fell else ("passed", "")


def main() -> None:
    given = outcomes.parser(str(__doc__)).parse_args()
    cases = op_samples.cases(Device(), getattr(torch, given.dtype), given.samples)
    outcomes.run(given, "PyTorch's operators on the device `ocl`", cases)


if __name__ == "__main__":
    main()
