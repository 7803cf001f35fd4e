"""PyTorch's own samples of its operators (OpInfo) through the backend, forward and gradient, beside eager PyTorch.

    python tests/python/opinfo.py [--dtype float32] [--samples 2] [--part K/N] [--only PATTERN]

prints a line for each operator that is not equal, and how many passed, are refused by name, and are wrong.
"""

from __future__ import annotations

import argparse
import dataclasses
import fnmatch
import pathlib
import re
import time
import warnings
from collections import Counter
from typing import Any

import oclc
import torch
from oclc.torch import backend as oclc_backend
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree

# What no plan can equal: results that are drawn, or whatever lies in memory.
RANDOM = {
    "bernoulli", "cauchy", "empty", "empty_like", "empty_permuted", "empty_strided", "exponential", "geometric", "log_normal",
    "multinomial", "new_empty", "new_empty_strided", "nn.functional.alpha_dropout", "nn.functional.dropout",
    "nn.functional.dropout2d", "nn.functional.dropout3d", "nn.functional.feature_alpha_dropout",
    "nn.functional.fractional_max_pool2d", "nn.functional.fractional_max_pool3d", "nn.functional.multi_head_attention_forward",
    "nn.functional.rrelu", "normal", "pca_lowrank", "rand_like", "randint", "randint_like", "randn", "randn_like",
    "svd_lowrank", "uniform",
}  # fmt: skip

# How far a result may lie from eager's; torch's own, but for sums in another order and functions of a few units more.
TOLERANCES = {torch.float32: (1e-4, 1e-5), torch.float16: (1e-3, 1e-5), torch.bfloat16: (1.6e-2, 1e-5)}


@dataclasses.dataclass
class Outcome:
    """Of one operator. kind: passed, refused, wrong, or none where there is no sample."""

    op: str
    kind: str
    reason: str = ""


def name_of(op: Any) -> str:
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else str(op.name)


def operators(dtype: torch.dtype) -> list[Any]:
    return [op for op in op_db if dtype in op.dtypes and op.name not in RANDOM]


def refusal(error: BaseException) -> str:
    """Why the compiler, or torch's tracing before it, refuses; empty for any other error."""
    seen: BaseException | None = error
    torch_says = ""
    while seen is not None:
        if isinstance(seen, oclc.CompileError):
            return str(seen)
        if isinstance(seen, (torch._dynamo.exc.Unsupported, torch._dynamo.exc.UserError)):
            torch_says = torch_says or f"torch does not trace it: {seen}"
        seen = getattr(seen, "inner_exception", None) or seen.__cause__ or seen.__context__
    text = str(error)
    if "CompileError" in text or "DynamicOutputShapeException" in text or "DataDependentOutputException" in text:
        return text
    return torch_says


def tensors(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def in_double(value: Any) -> Any:
    """The same with real numbers in double precision, apart from the graph of gradients."""

    def convert(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return leaf
        own = leaf.detach().double() if leaf.is_floating_point() else leaf.detach()
        return own.requires_grad_(leaf.requires_grad)

    return pytree.tree_map(convert, value)


def far(found: list[Any], expected: list[Any], exact: list[Any] | None) -> str:
    """What differs, or nothing. `exact`: the same in double precision; a result that lies no further from it than twice as far as
    eager's is as good as eager's."""
    if len(found) != len(expected):
        return f"{len(found)} results instead of {len(expected)}"
    for i, (f, e) in enumerate(zip(found, expected, strict=True)):
        if f is None or e is None:
            if (f is None) != (e is None) and not (f if e is None else e).abs().max() == 0:
                return f"result {i}: a gradient of one alone"
            continue
        if f.dtype != e.dtype or f.shape != e.shape:
            return f"result {i}: {f.dtype} {tuple(f.shape)} instead of {e.dtype} {tuple(e.shape)}"
        relative, absolute = TOLERANCES.get(e.dtype, (0.0, 0.0))
        try:
            torch.testing.assert_close(f, e, rtol=relative, atol=absolute, equal_nan=True)
        except AssertionError as error:
            reference = exact[i] if exact is not None and i < len(exact) else None
            if reference is not None and reference.shape == e.shape and e.is_floating_point():
                ours, theirs = (f.double() - reference).abs(), (e.double() - reference).abs()
                if ours.isfinite().all() and ours.max() <= 2 * theirs.max() + absolute:
                    continue
            return f"result {i}: " + " ".join(str(error).split())[:240]
    return ""


def gradients(results: list[torch.Tensor], wanted: list[int], inputs: list[torch.Tensor]) -> list[Any]:
    return list(torch.autograd.grad([results[i].sum() for i in wanted], inputs, allow_unused=True))


def check_sample(op: Any, sample: Any, differentiable: bool) -> tuple[str, str]:
    """(kind, reason) of a sample; kind "" where the sample is of an error."""
    torch._dynamo.reset()
    arguments = (sample.input, *sample.args)

    def function(*a: Any, _k: dict[str, Any] = sample.kwargs) -> Any:
        return op(*a, **_k)

    try:
        expected = tensors(function(*arguments))
    except (RuntimeError, NotImplementedError, ValueError):
        return "", ""
    step = torch.compile(function, backend=oclc_backend, fullgraph=True, options={"device": "cpu"})
    try:
        found = tensors(step(*arguments))
    except Exception as error:
        reason = refusal(error)
        return ("refused", reason) if reason else ("wrong", f"{type(error).__name__}: {error}")
    double = None
    try:
        double_arguments = in_double(arguments)
        double = tensors(op(*double_arguments, **in_double(sample.kwargs)))
    except Exception:
        double_arguments = None
    different = far(found, expected, double)
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
        reason = refusal(error)
        return ("refused", reason) if reason else ("wrong", f"gradient: {type(error).__name__}: {error}")
    exact = None
    if double is not None and double_arguments is not None:
        try:
            exact = gradients(double, wanted, [t for t in tensors(double_arguments) if t.requires_grad])
        except Exception:
            exact = None
    different = far(given, right, exact)
    return ("wrong", f"gradient: {different}") if different else ("passed", "")


def check(op: Any, dtype: torch.dtype, samples: int) -> Outcome:
    """The worst of the operator's first samples."""
    torch.manual_seed(3)
    differentiable = op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")
    try:
        chosen = list(op.sample_inputs("cpu", dtype, requires_grad=differentiable))[:samples]
    except Exception as error:
        return Outcome(name_of(op), "none", f"no samples: {error}")
    kinds: dict[str, str] = {}
    for sample in chosen:
        kind, reason = check_sample(op, sample, differentiable)
        kinds.setdefault(kind, " ".join(reason.split()))
    for kind in ("wrong", "refused", "passed"):
        if kind in kinds:
            return Outcome(name_of(op), kind, kinds[kind])
    return Outcome(name_of(op), "none", "no sample that eager runs")


def declared(name: str) -> str | None:
    """What the refusal of the operator says, where it is known to be refused."""
    for line in (pathlib.Path(__file__).parent / "opinfo_refused.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            pattern, cause = line.split(maxsplit=1)
            if fnmatch.fnmatchcase(name, pattern):
                return cause
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--samples", type=int, default=2)
    parser.add_argument("--part", default="0/1", help="K/N: every Nth operator from the Kth on")
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    dtype = getattr(torch, given.dtype)
    first, step = map(int, given.part.split("/"))
    counts: Counter[str] = Counter()
    for op in operators(dtype)[first::step]:
        if given.only and not re.search(given.only, name_of(op)):
            continue
        start = time.monotonic()
        outcome = check(op, dtype, given.samples)
        counts[outcome.kind] += 1
        if outcome.kind != "passed" or given.only:
            print(f"{outcome.kind} {outcome.op} {given.dtype}: {outcome.reason[:400]} ({time.monotonic() - start:.1f} s)", flush=True)
    print(f"{given.dtype}: {counts['passed']} passed, {counts['refused']} refused, {counts['wrong']} wrong, {counts['none']} without samples")


if __name__ == "__main__":
    main()
