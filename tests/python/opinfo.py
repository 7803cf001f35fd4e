"""PyTorch's own samples of its operators (OpInfo) through the backend, forward and gradient, beside eager PyTorch.

    python tests/python/opinfo.py [--dtype float32] [--samples 2] [--part K/N] [--only PATTERN] [--out FILE]
    python tests/python/opinfo.py --table FILE..

The first prints a line for each operator that does not pass, and how many passed, are refused by name, and are wrong. FILE keeps
the outcomes, a line of JSON each: a run that was cut off goes on behind them. The second makes a table of such files.
"""

from __future__ import annotations

from typing import Any

import op_samples
import outcomes
import torch
from oclc.torch import backend as oclc_backend
from outcomes import tensors


class Compiled(op_samples.Runner):
    """torch.compile with the backend."""

    def run(self, op: Any, sample: Any) -> list[torch.Tensor]:
        torch._dynamo.reset()

        def function(*a: Any, _k: dict[str, Any] = sample.kwargs) -> Any:
            return op(*a, **_k)

        step = torch.compile(function, backend=oclc_backend, fullgraph=True, options={"device": "cpu"})
        return tensors(step(sample.input, *sample.args))


def main() -> None:
    given = outcomes.parser(str(__doc__)).parse_args()
    cases = op_samples.cases(Compiled(), getattr(torch, given.dtype), given.samples)
    outcomes.run(given, 'PyTorch\'s operators by `torch.compile(.., backend="oclc", fullgraph=True)`', cases)


if __name__ == "__main__":
    main()
