"""PyTorch's own samples of its operators (OpInfo) through the backend, forward and gradient, beside eager PyTorch.

    python tests/python/opinfo.py [--dtype float32] [--samples 2] [--part K/N] [--only PATTERN] [--out FILE]
    python tests/python/opinfo.py --table FILE..

The first prints a line for each operator that does not pass, and how many passed, are refused by name, and are wrong. FILE keeps
the outcomes, a line of JSON each: a run that was cut off goes on behind them. The second makes a table of such files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import outcomes
import torch
from oclc.torch import backend as oclc_backend
from outcomes import Outcome, failed, far, gradients, in_double, tensors
from torch.testing._internal import common_methods_invocations as invocations
from torch.testing._internal.common_methods_invocations import op_db

# OpInfo seeds around operators that draw, which torch does not trace; here the seed is set before the call.
invocations.wrapper_set_seed = lambda op, *args, **kwargs: op(*args, **kwargs)

# Results that are whatever lies in memory.
UNSET = {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"}
# Results that are drawn: torch draws for the plan too, but in double precision it draws others.
DRAWN = {
    "bernoulli", "cauchy", "exponential", "geometric", "log_normal", "multinomial", "nn.functional.alpha_dropout",
    "nn.functional.dropout", "nn.functional.dropout2d", "nn.functional.dropout3d", "nn.functional.feature_alpha_dropout",
    "nn.functional.fractional_max_pool2d", "nn.functional.fractional_max_pool3d", "nn.functional.multi_head_attention_forward",
    "nn.functional.rrelu", "nn.functional.scaled_dot_product_attention", "normal", "pca_lowrank", "rand_like", "randint",
    "randint_like", "randn", "randn_like", "svd_lowrank", "uniform",
}  # fmt: skip


def tolerances(op: Any) -> outcomes.Limits:
    """torch's own, and where its operator states wider ones for tests on a CPU, these."""
    found = dict(outcomes.TOLERANCES)
    for row in op.decorators:
        if getattr(row, "device_type", None) not in (None, "cpu"):
            continue
        for decorator in getattr(row, "decorators", (row,)):
            for dtype, given in getattr(decorator, "d", {}).items():
                if dtype in found and hasattr(given, "rtol"):
                    found[dtype] = (max(found[dtype][0], given.rtol), max(found[dtype][1], given.atol))
    return found


def name_of(op: Any) -> str:
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else str(op.name)


def operators(dtype: torch.dtype) -> list[Any]:
    return [op for op in op_db if dtype in op.dtypes and op.name not in UNSET]


# Which of equal elements is named is torch's choice: their places count by what stands there. Position of the dimension among the
# arguments behind the tensor.
TIED = {"topk": 1, "kthvalue": 1, "sort": 0, "argsort": 0}


def elements_for_places(op: Any, sample: Any, results: list[torch.Tensor]) -> list[torch.Tensor]:
    """Of places, what stands there."""
    if op.name not in TIED or sample.kwargs.get("stable") or sample.input.dim() == 0:
        return results
    at = TIED[op.name]
    dim = sample.args[at] if len(sample.args) > at else sample.kwargs.get("dim", -1)
    *values, places = results
    if places.dim() < sample.input.dim():
        places = places.unsqueeze(dim)
    return [*values, torch.gather(sample.input.detach(), dim, places)]


def check_sample(op: Any, sample: Any, differentiable: bool) -> tuple[str, str]:
    """(kind, reason) of a sample; kind "" where the sample is of an error."""
    torch._dynamo.reset()
    limits = tolerances(op)
    arguments = (sample.input, *sample.args)

    def function(*a: Any, _k: dict[str, Any] = sample.kwargs) -> Any:
        return op(*a, **_k)

    torch.manual_seed(outcomes.SEED)
    try:
        expected = tensors(function(*arguments))
    except Exception:  # for CUDA alone, or a sample of an error
        return "", ""
    step = torch.compile(function, backend=oclc_backend, fullgraph=True, options={"device": "cpu"})
    torch.manual_seed(outcomes.SEED)
    try:
        found = tensors(step(*arguments))
    except Exception as error:
        return failed(error)
    double, double_arguments = None, None
    if op.name not in DRAWN:
        try:
            double_arguments = in_double(arguments)
            double = tensors(op(*double_arguments, **in_double(sample.kwargs)))
        except Exception:
            double_arguments = None
    different = far(*(elements_for_places(op, sample, results) for results in (found, expected)), double, limits)
    if different:
        return "wrong", different
    inputs = [t for t in tensors(arguments) if t.requires_grad and t.is_leaf]
    wanted = [i for i, e in enumerate(expected) if e.requires_grad and e.grad_fn is not None]
    if not (differentiable and inputs and wanted):
        return "passed", ""
    try:
        right = gradients(expected, wanted, inputs)
    except (RuntimeError, NotImplementedError):
        return "passed", ""
    try:
        given = gradients(found, wanted, inputs)
    except Exception as error:
        return failed(error, "gradient: ")
    exact = None
    if double is not None and double_arguments is not None:
        try:
            exact = gradients(double, wanted, [t for t in tensors(double_arguments) if t.requires_grad])
        except Exception:
            exact = None
    different = far(given, right, exact, limits)
    return ("wrong", f"gradient: {different}") if different else ("passed", "")


def check(op: Any, dtype: torch.dtype, samples: int) -> Outcome:
    """The worst of some of the operator's samples."""
    torch.manual_seed(3)
    differentiable = op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")
    try:
        chosen = outcomes.spread(list(op.sample_inputs("cpu", dtype, requires_grad=differentiable)), samples)
    except Exception as error:
        return Outcome(name_of(op), "none", f"no samples: {error}")
    return outcomes.worst(name_of(op), (check_sample(op, sample, differentiable) for sample in chosen))


def cases(dtype: torch.dtype, samples: int) -> Iterator[tuple[str, Callable[[], Outcome]]]:
    for op in operators(dtype):
        yield name_of(op), lambda op=op: check(op, dtype, samples)  # type: ignore[misc]


def main() -> None:
    given = outcomes.parser(str(__doc__)).parse_args()
    outcomes.run(given, 'PyTorch\'s operators by `torch.compile(.., backend="oclc", fullgraph=True)`', cases(getattr(torch, given.dtype), given.samples))


if __name__ == "__main__":
    main()
