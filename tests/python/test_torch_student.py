"""conv2d, linear and matmul by OpenCL: results, gradients, layers replaced, the table."""

from __future__ import annotations

import copy
import pathlib
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import oclc.torch as oclc_torch  # noqa: E402
from test_torch_compile import Convolutions  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

CASES: dict[str, tuple[Any, Any, tuple[tuple[int, ...], ...]]] = {
    "conv2d": (
        lambda x, w, b: oclc_torch.conv2d(x, w, b, stride=2, padding=1),
        lambda x, w, b: F.conv2d(x, w, b, stride=2, padding=1),
        ((2, 4, 9, 9), (6, 4, 3, 3), (6,)),
    ),
    "depthwise": (
        lambda x, w: oclc_torch.conv2d(x, w, None, 1, (1, 0), 1, 4),
        lambda x, w: F.conv2d(x, w, None, 1, (1, 0), 1, 4),
        ((2, 4, 7, 7), (4, 1, 3, 3)),
    ),
    "linear": (oclc_torch.linear, F.linear, ((2, 5, 6), (3, 6), (3,))),
    "matmul": (oclc_torch.matmul, torch.matmul, ((3, 4, 5), (5, 6))),
}


@pytest.mark.parametrize("name", CASES)
def test_results_and_gradients_equal_torch(name: str) -> None:
    ours, theirs, shapes = CASES[name]
    torch.manual_seed(1)
    tensors = [torch.randn(s, requires_grad=True) for s in shapes]
    found, expected = ours(*tensors), theirs(*tensors)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    weight = torch.randn_like(expected)
    for g, w in zip(
        torch.autograd.grad((found * weight).sum(), tensors), torch.autograd.grad((expected * weight).sum(), tensors), strict=True
    ):
        torch.testing.assert_close(g, w, rtol=1e-4, atol=1e-4)


def test_the_operators_have_shapes_for_tracing() -> None:
    def function(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return torch.relu(oclc_torch.linear(x, w)) * 2

    x, w = torch.randn(4, 6), torch.randn(3, 6)
    torch._dynamo.reset()
    torch.testing.assert_close(torch.compile(function, backend="aot_eager", fullgraph=True)(x, w), function(x, w))


def test_replaced_layers_keep_parameters_and_results() -> None:
    torch.manual_seed(1)
    model = Convolutions().eval()
    other = copy.deepcopy(model)
    assert oclc_torch.replace(model, (nn.Conv2d, nn.Linear)) == 3
    x = torch.randn(2, 3, 16, 16)
    torch.testing.assert_close(model(x), other(x), rtol=1e-4, atol=1e-5)
    assert model.state_dict().keys() == other.state_dict().keys()


def test_compare_has_a_row_a_layer_and_writes_the_kernels(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = Convolutions().eval()
    oclc_torch.replace(model)
    rows = oclc_torch.compare(model, torch.randn(2, 3, 16, 16), repeats=1, sources=tmp_path)
    assert [row.layer for row in rows] == ["body.0", "body.4", "head"]
    assert all(row.difference < 1e-4 and row.oclc_seconds > 0 for row in rows)
    assert "kernel void" in pathlib.Path(rows[0].source).read_text()
    assert "body.4" in capsys.readouterr().out


def test_kinds_without_such_a_form_and_vectors_are_refused() -> None:
    with pytest.raises(ValueError, match="found LayerNorm"):
        oclc_torch.replace(nn.Sequential(nn.LayerNorm(4)), (nn.LayerNorm,))
    with pytest.raises(ValueError, match="wanted matrices"):
        oclc_torch.matmul(torch.randn(3), torch.randn(3))
