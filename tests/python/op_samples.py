"""PyTorch's own samples of its operators (OpInfo), and whether what runs them finds what eager PyTorch does on the CPU: shared by the
scripts of the backend of torch.compile and of the device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import outcomes
import torch
from outcomes import Outcome, far, gradients, in_double, tensors
from torch.testing._internal import common_methods_invocations as invocations
from torch.testing._internal.common_methods_invocations import op_db

# OpInfo seeds around operators that draw, which torch does not trace; here the seed is set before the call.
invocations.wrapper_set_seed = lambda op, *args, **kwargs: op(*args, **kwargs)

# Results that are whatever lies in memory.
UNSET = {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"}
# Operators that may draw, of some samples: torch draws for the plan too, but in double precision it draws others.
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


class Runner:
    """What runs operators beside eager PyTorch."""

    draws_alike = True  # its random numbers are those of torch's generator of the CPU
    differentiates = True

    def place(self, op: Any, sample: Any) -> Any:
        """The sample as `run` takes it; an operator may write the one that it is given."""
        return sample

    def run(self, op: Any, sample: Any) -> list[torch.Tensor]:
        raise NotImplementedError

    def failed(self, error: BaseException, what: str = "") -> tuple[str, str]:
        """(kind, reason) of a run that raised."""
        return outcomes.failed(error, what)

    def passed(self) -> tuple[str, str]:
        """(kind, reason) of a sample whose results are right."""
        return "passed", ""


def inputs_of(sample: Any) -> list[torch.Tensor]:
    return [t for t in tensors((sample.input, *sample.args)) if t.requires_grad and t.is_leaf]


def on_cpu(results: list[Any]) -> list[Any]:
    return [None if r is None else r.cpu() for r in results]


def eager(op: Any, sample: Any, seed: int = outcomes.SEED) -> list[torch.Tensor]:
    torch.manual_seed(seed)
    return tensors(op(sample.input, *sample.args, **sample.kwargs))


def draws(op: Any, sample: Any) -> bool:
    """Whether the results are others from another seed."""
    first = [t.detach().clone() for t in eager(op, sample)]  # where the operator writes its argument the next call writes it again
    other = eager(op, sample, outcomes.SEED + 1)
    return any(not torch.equal(a, b) for a, b in zip(first, other, strict=True))


def unlike(found: list[torch.Tensor], expected: list[torch.Tensor]) -> str:
    """What differs in types and sizes of results that are drawn, or nothing."""
    kinds = [[(t.dtype, tuple(t.shape)) for t in results] for results in (found, expected)]
    return "" if kinds[0] == kinds[1] else f"{kinds[0]} instead of {kinds[1]}"


def check_sample(runner: Runner, op: Any, sample: Any, differentiable: bool) -> tuple[str, str]:
    """(kind, reason) of a sample; kind "" where the sample is of an error."""
    limits = tolerances(op)
    try:
        placed = runner.place(op, sample)
    except Exception as error:
        return runner.failed(error)
    try:
        random = op.name in DRAWN and draws(op, sample)
        drawn = random and not runner.draws_alike
        expected = eager(op, sample)
    except Exception:  # for CUDA alone, or a sample of an error
        return "", ""
    torch.manual_seed(outcomes.SEED)
    try:
        results = runner.run(op, placed)
        found = on_cpu(results)
    except Exception as error:
        return runner.failed(error)
    double, double_arguments = None, None
    if not random:
        try:
            double_arguments = in_double((sample.input, *sample.args))
            double = tensors(op(*double_arguments, **in_double(sample.kwargs)))
        except Exception:
            double_arguments = None
    if drawn:
        different = unlike(found, expected)
    else:
        different = far(*(elements_for_places(op, sample, r) for r in (found, expected)), double, limits)
    if different:
        return "wrong", different
    inputs = inputs_of(sample)
    wanted = [i for i, e in enumerate(expected) if e.requires_grad and e.grad_fn is not None]
    if not (differentiable and inputs and wanted):
        return runner.passed()
    try:
        right = gradients(expected, wanted, inputs)
    except (RuntimeError, NotImplementedError):
        return runner.passed()
    try:
        given = on_cpu(gradients(results, wanted, inputs_of(placed)))
    except Exception as error:
        return runner.failed(error, "gradient: ")
    if drawn:
        return runner.passed()
    exact = None
    if double is not None and double_arguments is not None:
        try:
            exact = gradients(double, wanted, [t for t in tensors(double_arguments) if t.requires_grad])
        except Exception:
            exact = None
    different = far(given, right, exact, limits)
    return ("wrong", f"gradient: {different}") if different else runner.passed()


def check(runner: Runner, op: Any, dtype: torch.dtype, samples: int) -> Outcome:
    """The worst of some of the operator's samples."""
    torch.manual_seed(3)
    differentiable = runner.differentiates and op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")
    try:
        chosen = outcomes.spread(list(op.sample_inputs("cpu", dtype, requires_grad=differentiable)), samples)
    except Exception as error:
        return Outcome(name_of(op), "none", f"no samples: {error}")
    return outcomes.worst(name_of(op), (check_sample(runner, op, sample, differentiable) for sample in chosen))


def cases(runner: Runner, dtype: torch.dtype, samples: int) -> Iterator[tuple[str, Callable[[], Outcome]]]:
    for op in operators(dtype):
        yield name_of(op), lambda op=op: check(runner, op, dtype, samples)  # type: ignore[misc]
