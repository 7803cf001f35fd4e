"""PyTorch's own samples of its operators (OpInfo) through the backend, forward and gradient, beside eager PyTorch.

    python tests/python/opinfo.py [--dtype float32] [--samples 2] [--part K/N] [--only PATTERN] [--out FILE]
    python tests/python/opinfo.py --table FILE.. > docs/torch_operators.md

The first prints a line for each operator that does not pass, and how many passed, are refused by name, and are wrong. FILE keeps
the outcomes, a line of JSON each: a run that was cut off goes on behind them. The second makes a table of such files.
"""

from __future__ import annotations

import argparse
import dataclasses
import fnmatch
import json
import math
import pathlib
import re
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any

import oclc
import torch
from oclc.torch import backend as oclc_backend
from torch.testing._internal import common_methods_invocations as invocations
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree

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
SEED = 7

# What torch.testing.assert_close takes by itself: (relative, absolute).
TOLERANCES = {
    torch.float64: (1e-7, 1e-7), torch.float32: (1.3e-6, 1e-5), torch.float16: (1e-3, 1e-5), torch.bfloat16: (1.6e-2, 1e-5),
}  # fmt: skip


def tolerances(op: Any) -> dict[torch.dtype, tuple[float, float]]:
    """torch's own, and where its operator states wider ones for tests on a CPU, these."""
    found = dict(TOLERANCES)
    for row in op.decorators:
        if getattr(row, "device_type", None) not in (None, "cpu"):
            continue
        for decorator in getattr(row, "decorators", (row,)):
            for dtype, given in getattr(decorator, "d", {}).items():
                if dtype in found and hasattr(given, "rtol"):
                    found[dtype] = (max(found[dtype][0], given.rtol), max(found[dtype][1], given.atol))
    return found


@dataclasses.dataclass
class Outcome:
    """Of one operator. kind: passed, refused, wrong, or none where there is no sample."""

    op: str
    kind: str
    reason: str = ""


def name_of(op: Any) -> str:
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else str(op.name)


def operators(dtype: torch.dtype) -> list[Any]:
    return [op for op in op_db if dtype in op.dtypes and op.name not in UNSET]


def refusal(error: BaseException) -> str:
    """Why the compiler, or torch's tracing before it, refuses; empty for any other error."""
    seen: BaseException | None = error
    torch_says = ""
    while seen is not None:
        if isinstance(seen, oclc.CompileError):
            return str(seen)
        if isinstance(seen, torch._dynamo.exc.TorchDynamoException) and not isinstance(seen, torch._dynamo.exc.BackendCompilerFailed):
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


def far(found: list[Any], expected: list[Any], exact: list[Any] | None, limits: dict[torch.dtype, tuple[float, float]]) -> str:
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
        relative, absolute = limits.get(e.dtype, (0.0, 0.0))
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
    limits = tolerances(op)
    arguments = (sample.input, *sample.args)

    def function(*a: Any, _k: dict[str, Any] = sample.kwargs) -> Any:
        return op(*a, **_k)

    torch.manual_seed(SEED)
    try:
        expected = tensors(function(*arguments))
    except (RuntimeError, NotImplementedError, ValueError):
        return "", ""
    step = torch.compile(function, backend=oclc_backend, fullgraph=True, options={"device": "cpu"})
    torch.manual_seed(SEED)
    try:
        found = tensors(step(*arguments))
    except Exception as error:
        reason = refusal(error)
        return ("refused", reason) if reason else ("wrong", f"{type(error).__name__}: {error}")
    double, double_arguments = None, None
    if op.name not in DRAWN:
        try:
            double_arguments = in_double(arguments)
            double = tensors(op(*double_arguments, **in_double(sample.kwargs)))
        except Exception:
            double_arguments = None
    different = far(found, expected, double, limits)
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
    different = far(given, right, exact, limits)
    return ("wrong", f"gradient: {different}") if different else ("passed", "")


def spread(samples: list[Any], count: int) -> list[Any]:
    """The first, and others at equal distances: neighbours are alike."""
    step = max(len(samples) / count, 1)
    return [samples[math.floor(i * step)] for i in range(min(count, len(samples)))]


def check(op: Any, dtype: torch.dtype, samples: int) -> Outcome:
    """The worst of some of the operator's samples."""
    torch.manual_seed(3)
    differentiable = op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")
    try:
        chosen = spread(list(op.sample_inputs("cpu", dtype, requires_grad=differentiable)), samples)
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


def kept(path: str) -> dict[str, dict[str, str]]:
    """Outcomes of a file by operator. One that was begun and has none has ended the process."""
    found: dict[str, dict[str, str]] = {}
    file = pathlib.Path(path)
    for line in file.read_text().splitlines() if file.exists() else ():
        row = json.loads(line)
        found[row["op"]] = row
    for row in found.values():
        if row["kind"] == "begun":
            row.update(kind="wrong", reason="the process ended")
    return found


def cause(reason: str) -> str:
    """What kind of refusal it is: the operators that are missing, or the text without names and numbers."""
    missing = re.findall(r"((?:aten|prims|torch_nn|higher_order|_operator|torchvision)[.][\w.]+) \(\d+ node", reason)
    if missing:
        return "missing: " + ", ".join(sorted(set(missing)))
    for pattern, text in (
        ("element type that the compiler has|complex", "an element type that the compiler lacks"),
        ("DynamicOutputShape|data-dependent|Unbacked|GuardOnDataDependent", "the size of a result depends on values"),
        ("torch does not trace it", "torch does not trace it with fullgraph=True"),
    ):
        if re.search(pattern, reason):
            return text
    return re.sub(r"'[^']*'", "..", reason)[:110]


def table(files: list[str]) -> Iterator[str]:
    """The lines of docs/torch_operators.md."""
    causes: dict[str, set[str]] = {}
    yield "# PyTorch's operators by `torch.compile(.., backend=\"oclc\", fullgraph=True)`"
    yield ""
    yield "Made by `python tests/python/opinfo.py --table FILE..` of what `--dtype D --out FILE` wrote: PyTorch's own samples (`op_db`), forward"
    yield "pass and gradient, by PyTorch's own tolerances; a result no further from double precision than twice as far as eager's passes too."
    yield ""
    yield "| element type | passed | refused | wrong | no sample that eager runs |"
    yield "|---|---|---|---|---|"
    for name in files:
        rows = kept(name)
        counts = Counter(row["kind"] for row in rows.values())
        dtype = next(iter(rows.values()))["dtype"]
        yield f"| {dtype} | {counts['passed']} | {counts['refused']} | {counts['wrong']} | {counts['none']} |"
        for row in rows.values():
            if row["kind"] == "refused":
                causes.setdefault(cause(row["reason"]), set()).add(row["op"])
            elif row["kind"] == "wrong":
                causes.setdefault("WRONG: " + row["reason"][:100], set()).add(row["op"])
    yield ""
    yield "| what is refused, and why | operators |"
    yield "|---|---|"
    for text, ops in sorted(causes.items(), key=lambda item: (-len(item[1]), item[0])):
        yield f"| {text.replace('|', '/')} | {', '.join(f'`{op}`' for op in sorted(ops))} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--samples", type=int, default=2)
    parser.add_argument("--part", default="0/1", help="K/N: every Nth operator from the Kth on")
    parser.add_argument("--only", default="")
    parser.add_argument("--out", default="", help="file of outcomes; those that it has are not run again")
    parser.add_argument("--table", nargs="+", default=[], metavar="FILE")
    given = parser.parse_args()
    if given.table:
        print("\n".join(table(given.table)))
        return
    warnings.simplefilter("ignore")
    dtype = getattr(torch, given.dtype)
    first, step = map(int, given.part.split("/"))
    known = kept(given.out) if given.out else {}
    counts: Counter[str] = Counter()
    with open(given.out or "/dev/null", "a") as out:
        for op in operators(dtype)[first::step]:
            if given.only and not re.search(given.only, name_of(op)):
                continue
            row = known.get(name_of(op))
            if row is None:
                start = time.monotonic()
                row = {"op": name_of(op), "dtype": given.dtype, "kind": "begun"}
                print(json.dumps(row), file=out, flush=True)
                outcome = check(op, dtype, given.samples)
                row = {**row, "kind": outcome.kind, "reason": outcome.reason[:2000]}
                print(json.dumps(row), file=out, flush=True)
                if outcome.kind != "passed" or given.only:
                    took = time.monotonic() - start
                    print(f"{outcome.kind} {outcome.op} {given.dtype}: {outcome.reason[:400]} ({took:.1f} s)", flush=True)
            counts[row["kind"]] += 1
    print(f"{given.dtype}: {counts['passed']} passed, {counts['refused']} refused, {counts['wrong']} wrong, {counts['none']} without samples")


if __name__ == "__main__":
    main()
