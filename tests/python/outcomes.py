"""What the scripts share that run PyTorch's own samples through the backend: outcomes by case, kept in a file, and their table."""

from __future__ import annotations

import argparse
import dataclasses
import fnmatch
import json
import pathlib
import re
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import oclc
import torch
from torch.utils import _pytree as pytree

# What torch.testing.assert_close takes by itself: (relative, absolute).
TOLERANCES = {
    torch.float64: (1e-7, 1e-7), torch.float32: (1.3e-6, 1e-5), torch.float16: (1e-3, 1e-5), torch.bfloat16: (1.6e-2, 1e-5),
    torch.complex128: (1e-7, 1e-7), torch.complex64: (1.3e-6, 1e-5), torch.complex32: (1e-3, 1e-5),
}  # fmt: skip
SEED = 7

Limits = dict[torch.dtype, tuple[float, float]]


@dataclasses.dataclass
class Outcome:
    """Of one case. kind: passed, fell (right, and part of it ran on the CPU), refused, wrong, or none where there is no sample. samples:
    the first letter of each one's kind, n of none."""

    op: str
    kind: str
    reason: str = ""
    samples: str = ""


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


def failed(error: BaseException, what: str = "") -> tuple[str, str]:
    """(kind, reason) of a call that raised."""
    reason = refusal(error)
    return ("refused", reason) if reason else ("wrong", f"{what}{type(error).__name__}: {error}")


def worst(name: str, found: Iterable[tuple[str, str]]) -> Outcome:
    """Of the outcomes of a case's samples."""
    kinds: dict[str, str] = {}
    letters = ""
    for kind, reason in found:
        kinds.setdefault(kind, " ".join(reason.split()))
        letters += (kind or "none")[0]
    for kind in ("wrong", "refused", "fell", "passed"):
        if kind in kinds:
            return Outcome(name, kind, kinds[kind], letters)
    return Outcome(name, "none", "no sample that eager runs", letters)


def tensors(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def in_double(value: Any) -> Any:
    """The same with real numbers in double precision, apart from the graph of gradients."""

    def convert(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return leaf
        own = leaf.detach()
        if leaf.is_floating_point() or leaf.is_complex():
            own = own.to(torch.complex128 if leaf.is_complex() else torch.float64)
        return own.requires_grad_(leaf.requires_grad)

    return pytree.tree_map(convert, value)


def far(found: list[Any], expected: list[Any], exact: list[Any] | None, limits: Limits) -> str:
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
            inexact = e.is_floating_point() or e.is_complex()
            if reference is not None and reference.shape == e.shape and inexact and as_good(f, e, reference, absolute):
                continue
            return f"result {i}: " + " ".join(str(error).split())[:240]
    return ""


def as_good(found: torch.Tensor, eager: torch.Tensor, exact: torch.Tensor, absolute: float) -> bool:
    """What is not finite in double precision is the same; the rest lies no further from it than twice as far as eager's."""
    finite = exact.isfinite()
    if not torch.allclose(found[~finite].to(exact.dtype), exact[~finite], rtol=0, atol=0, equal_nan=True):
        return False
    ours, theirs = (found - exact)[finite].abs(), (eager - exact)[finite].abs()
    return bool(ours.isfinite().all() and (ours.numel() == 0 or ours.max() <= 2 * theirs.max() + absolute))


def gradients(results: list[torch.Tensor], wanted: list[int], inputs: list[torch.Tensor]) -> list[Any]:
    return list(torch.autograd.grad([results[i].sum() for i in wanted], inputs, allow_unused=True))


def spread(samples: list[Any], count: int) -> list[Any]:
    """The first, and others at equal distances: neighbours are alike."""
    step = max(len(samples) / count, 1)
    return [samples[int(i * step)] for i in range(min(count, len(samples)))]


REFUSED = pathlib.Path(__file__).parent / "opinfo_refused.txt"


def declared(name: str, dtype: str = "", file: pathlib.Path = REFUSED) -> tuple[str, str] | None:
    """What the refusal of the operator says where it is known to be refused, and the kinds of its first samples, empty for all alike."""
    for line in file.read_text().splitlines():
        if line and not line.startswith("#"):
            case, cause = line.split(maxsplit=1)
            pattern, _, samples = case.partition(":")
            name_pattern, _, only = pattern.partition("@")
            if fnmatch.fnmatchcase(name, name_pattern) and only in ("", dtype):
                return cause, samples
    return None


def as_declared(outcome: Outcome, dtype: str) -> str:
    """What is wrong with an outcome, or nothing: each sample passed, or is refused where and as is declared."""
    cause, wanted = declared(outcome.op, dtype) or ("", "p")
    wanted = wanted or "r"
    for i, found in enumerate(outcome.samples):
        expected = wanted[min(i, len(wanted) - 1)]
        if found != "n" and (found != expected or found == "r" and cause not in outcome.reason):
            kind = {"p": "to pass", "r": f"to be refused ({cause})"}[expected]
            return f"sample {i} was expected {kind}, found {outcome.kind}: {outcome.reason}"
    return ""


def kept(path: str) -> dict[str, dict[str, str]]:
    """Outcomes of a file by case. One that was begun and has none has ended the process."""
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
    missing = re.findall(r"((?:aten|prims|torch_nn|higher_order|_operator|torchvision)[.][\w.]+(?: of complex numbers)?) \(\d+ node", reason)
    if missing:
        return "missing: " + ", ".join(sorted(set(missing)))
    for pattern, text in (
        ("element type that the compiler has|complex", "an element type that the compiler lacks"),
        ("DynamicOutputShape|data-dependent|Data dependent|Unbacked|GuardOnDataDependent|do not depend on values",
         "the size of a result, or a number of the program, depends on values"),
        ("sparse", "sparse tensors"),
        ("torch does not trace it", "torch does not trace it with fullgraph=True"),
    ):  # fmt: skip
        if re.search(pattern, reason):
            return text
    return re.sub(r"'[^']*'", "..", reason)[:110]


def table(title: str, files: list[str]) -> Iterator[str]:
    """The lines of a document."""
    causes: dict[str, set[str]] = {}
    yield f"# {title}"
    yield ""
    yield "What `--table FILE..` prints of the files that `--out FILE` wrote, a run for each element type. PyTorch's own samples are compared with"
    yield "eager PyTorch by PyTorch's own tolerances, gradients too; a result that is no further from double precision than twice as far as"
    yield "eager's passes as well."
    yield ""
    outcomes = {name: kept(name) for name in files}
    fell = any(row["kind"] == "fell" for rows in outcomes.values() for row in rows.values())
    yield f"| element type | passed |{' fell to the CPU |' * fell} refused | wrong | no sample that eager runs |"
    yield f"|---|---|{'---|' * fell}---|---|---|"
    for rows in outcomes.values():
        counts = Counter(row["kind"] for row in rows.values())
        dtype = next(iter(rows.values()))["dtype"]
        on_cpu = f" {counts['fell']} |" * fell
        yield f"| {dtype} | {counts['passed']} |{on_cpu} {counts['refused']} | {counts['wrong']} | {counts['none']} |"
        for row in rows.values():
            if row["kind"] in ("refused", "fell"):
                causes.setdefault(cause(row["reason"]), set()).add(row["op"])
            elif row["kind"] == "wrong":
                causes.setdefault("WRONG: " + row["reason"][:100], set()).add(row["op"])
    yield ""
    yield f"| what {'runs on the CPU or ' * fell}is refused, and why | cases |"
    yield "|---|---|"
    for text, ops in sorted(causes.items(), key=lambda item: (-len(item[1]), item[0])):
        yield f"| {text.replace('|', '/')} | {', '.join(f'`{op}`' for op in sorted(ops))} |"


def parser(about: str) -> argparse.ArgumentParser:
    given = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--dtype", default="float32")
    given.add_argument("--samples", type=int, default=2)
    given.add_argument("--part", default="0/1", help="K/N: every Nth case from the Kth on")
    given.add_argument("--only", default="", metavar="PATTERN")
    given.add_argument("--out", default="", help="file of outcomes; those that it has are not run again")
    given.add_argument("--seconds", type=float, default=float("inf"), help="begin no case after them; the status is then 3")
    given.add_argument("--table", nargs="+", default=[], metavar="FILE")
    return given


def run(given: argparse.Namespace, title: str, cases: Iterable[tuple[str, Callable[[], Outcome]]]) -> None:
    """Runs the cases that `given` names, or prints the table of files. A line for each case that does not pass, and the sums."""
    if given.table:
        print("\n".join(table(title, given.table)))
        return
    warnings.simplefilter("ignore")
    first, step = map(int, given.part.split("/"))
    end = time.monotonic() + given.seconds
    known = kept(given.out) if given.out else {}
    counts: Counter[str] = Counter()
    with open(given.out or "/dev/null", "a") as out:
        for name, check in list(cases)[first::step]:
            if given.only and not re.search(given.only, name):
                continue
            row = known.get(name)
            if row is None and time.monotonic() > end:
                sys.exit(3)
            if row is None:
                start = time.monotonic()
                row = {"op": name, "dtype": given.dtype, "kind": "begun"}
                print(json.dumps(row), file=out, flush=True)
                outcome = check()
                took = time.monotonic() - start
                row.update(kind=outcome.kind, reason=outcome.reason[:2000], samples=outcome.samples, seconds=f"{took:.1f}")
                print(json.dumps(row), file=out, flush=True)
                if outcome.kind != "passed" or given.only:
                    print(f"{outcome.kind} {name} {given.dtype}: {outcome.reason[:400]} ({took:.1f} s)", flush=True)
            counts[row["kind"]] += 1
    fell = f"{counts['fell']} fell to the CPU, " if counts["fell"] else ""
    print(f"{given.dtype}: {counts['passed']} passed, {fell}{counts['refused']} refused, {counts['wrong']} wrong, {counts['none']} without samples")
