"""PyTorch's own samples of its operators (OpInfo) as exported programs, which keep composite operators whole, beside eager PyTorch.

    python tests/python/exported.py [--dtype float32] [--samples 2] [--part K/N] [--only PATTERN] [--out FILE]
    python tests/python/exported.py --table FILE..

As tests/python/opinfo.py, but each sample is a module that torch.export.export reads and torch.export.save writes as it is.
"""

from __future__ import annotations

import pathlib
import tempfile
from typing import Any

import oclc
import op_samples
import outcomes
import torch
from torch.utils import _pytree as pytree


class Sample(torch.nn.Module):
    """The operator on tensors that are the module's inputs; all else is part of it."""

    def __init__(self, op: Any, sample: Any) -> None:
        super().__init__()
        self.op, self.keywords = op, sample.kwargs
        self.leaves, self.spec = pytree.tree_flatten((sample.input, *sample.args))
        self.places = [i for i, leaf in enumerate(self.leaves) if isinstance(leaf, torch.Tensor)]

    def forward(self, *given: torch.Tensor) -> Any:
        leaves = list(self.leaves)
        for place, tensor in zip(self.places, given, strict=True):
            leaves[place] = tensor
        return outcomes.tensors(self.op(*pytree.tree_unflatten(leaves, self.spec), **self.keywords))

    def example(self) -> tuple[torch.Tensor, ...]:
        return tuple(self.leaves[i].detach() for i in self.places)


class Exported(op_samples.Runner):
    """torch.export, and the file read without torch."""

    differentiates = False

    def run(self, op: Any, sample: Any) -> list[torch.Tensor]:
        module = Sample(op, sample)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "sample.pt2"
            try:
                torch.export.save(torch.export.export(module, module.example()), path)
            except Exception as error:
                raise oclc.CompileError(f"torch does not export it: {error}") from error
            # Complex tensors are pairs of real numbers.
            given = (torch.view_as_real(t.resolve_conj()) if t.is_complex() else t for t in module.example())
            results = oclc.compile(path, device="cpu").session("cpu")(*given)
        found = [torch.from_numpy(r) for r in (results if isinstance(results, (list, tuple)) else [results])]
        complex_results = [t.is_complex() for t in op_samples.eager(op, sample)]
        return [torch.view_as_complex(f) if pair else f for f, pair in zip(found, complex_results, strict=True)]


def main() -> None:
    given = outcomes.parser(str(__doc__)).parse_args()
    cases = op_samples.cases(Exported(), getattr(torch, given.dtype), given.samples)
    outcomes.run(given, "PyTorch's operators as exported programs", cases)


if __name__ == "__main__":
    main()
