"""PyTorch's own samples of its operators (OpInfo) through the backend, forward and gradient, beside eager PyTorch.

Each operator either passes or is refused by name (CompileError); wrong numbers and other exceptions fail. By default a seeded
part of the operators runs; OCLC_TEST_ALL=1 runs all.
"""

from __future__ import annotations

import os
import random
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")

import oclc  # noqa: E402
from oclc.torch import backend as oclc_backend  # noqa: E402
from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402

SAMPLES = 2
PART = 30  # operators of an ordinary run

# What no plan can equal, each with its reason.
LEFT_OUT = {
    "empty": "results are whatever lies in memory",
    "empty_like": "results are whatever lies in memory",
    "new_empty": "results are whatever lies in memory",
    "new_empty_strided": "results are whatever lies in memory",
    "empty_strided": "results are whatever lies in memory",
    "empty_permuted": "results are whatever lies in memory",
}


def chosen() -> list[Any]:
    ops = [op for op in op_db if torch.float32 in op.dtypes and op.name not in LEFT_OUT]
    if os.environ.get("OCLC_TEST_ALL") == "1":
        return ops
    return random.Random(7).sample(ops, PART)


def refused(error: BaseException) -> bool:
    """Whether the error is a refusal by name, of the compiler or, before it, of torch's own tracing."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, (oclc.CompileError, torch._dynamo.exc.Unsupported, torch._dynamo.exc.UserError)):
            return True
        seen = seen.__cause__ or seen.__context__ or getattr(seen, "inner_exception", None)
    return "oclc" in str(error) and ("wanted" in str(error) or "CompileError" in str(error))


def tensors(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in torch.utils._pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def differentiable(values: list[torch.Tensor]) -> list[torch.Tensor]:
    return [v for v in values if v.requires_grad]


@pytest.mark.parametrize("op", chosen(), ids=lambda op: f"{op.name}{'.' + op.variant_test_name if op.variant_test_name else ''}")
def test_an_operator_equals_eager_or_is_refused_by_name(op: Any) -> None:
    torch.manual_seed(3)
    samples = list(op.sample_inputs("cpu", torch.float32, requires_grad=op.supports_autograd))[:SAMPLES]
    passed, reason = 0, ""
    for sample in samples:
        torch._dynamo.reset()
        arguments = (sample.input, *sample.args)

        def function(*a: Any, _op: Any = op, _k: dict[str, Any] = sample.kwargs) -> Any:
            return _op(*a, **_k)

        step = torch.compile(function, backend=oclc_backend, fullgraph=True, options={"device": "cpu"})
        try:
            expected = function(*arguments)
        except (RuntimeError, NotImplementedError, ValueError):
            continue  # the sample is of an error
        try:
            found = step(*arguments)
        except Exception as error:
            if not refused(error):
                raise
            reason = str(error)[:300]
            continue
        for f, e in zip(tensors(found), tensors(expected), strict=True):
            torch.testing.assert_close(f, e, rtol=1e-4, atol=1e-5, equal_nan=True)
        inputs = differentiable(tensors(arguments))
        results = [(f, e) for f, e in zip(tensors(found), tensors(expected), strict=True) if e.requires_grad]
        if inputs and results:
            wanted = torch.autograd.grad([e.sum() for _, e in results], inputs, allow_unused=True)
            try:
                given = torch.autograd.grad([f.sum() for f, _ in results], inputs, allow_unused=True)
            except Exception as error:
                if not refused(error):
                    raise
                reason = str(error)[:300]
                continue
            for g, w in zip(given, wanted, strict=True):
                if w is not None and g is not None:
                    torch.testing.assert_close(g, w, rtol=1e-3, atol=1e-4, equal_nan=True)
        passed += 1
    if not passed and reason:
        pytest.skip(f"refused: {reason}")
