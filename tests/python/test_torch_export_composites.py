"""Programs as torch.export writes them, composite operators and writes into views included."""

from __future__ import annotations

import pathlib
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import oclc
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")

import exported  # noqa: E402
import op_samples  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch.utils import _pytree as pytree  # noqa: E402


def results(model: nn.Module, example: tuple[Any, ...], path: pathlib.Path, **keywords: Any) -> list[Any]:
    torch.export.save(torch.export.export(model, example, **keywords), path)
    found = oclc.compile(path, device="cpu").session("cpu")(*example)
    return list(found) if isinstance(found, (list, tuple)) else [found]


def check(model: nn.Module, example: tuple[Any, ...], path: pathlib.Path) -> None:
    found, expected = results(model, example, path), pytree.tree_leaves(model(*example))
    assert len(found) == len(expected)
    for f, e in zip(found, expected, strict=True):
        np.testing.assert_allclose(f, e.detach().numpy(), rtol=1e-5, atol=1e-5)


class Function(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *x: torch.Tensor) -> Any:
        return self.function(*x)


def rows_and_columns(x: torch.Tensor) -> Any:
    y = torch.zeros(3, 6)
    y[1] = x[0]
    y[:, 2:4] = 7
    y[0, 1] += x[1, 1]
    return y


def views_of_views(x: torch.Tensor) -> Any:
    y = x.clone()
    v, w = y[:, 1:], y.t()
    v.mul_(2)
    w[0] = 5
    return y, v, w


def other_shapes(x: torch.Tensor) -> Any:
    y = x.clone()
    z = y.view(-1)
    z[3:9] = 0
    u = y.unsqueeze(0)
    u.add_(1)
    return y * 2, z, u


def pieces(x: torch.Tensor) -> Any:
    y = x * 1
    p, q = y.chunk(2, 1)
    p.fill_(3)
    q.sub_(p)
    return y, p


def window_mask(x: torch.Tensor) -> Any:
    m = torch.zeros(8, 8)
    cuts = (slice(0, -4), slice(-4, -2), slice(-2, None))
    for i, rows in enumerate(cuts):
        for j, columns in enumerate(cuts):
            m[rows, columns] = i * 3 + j
    m = m.view(2, 4, 2, 4).permute(0, 2, 1, 3).reshape(4, 16)
    return m.unsqueeze(1) - m.unsqueeze(2) + x.sum()


def diagonals(x: torch.Tensor) -> Any:
    y = x.clone()
    torch.diagonal(y).zero_()
    y[..., -1].mul_(y[..., 0])
    return y


def permuted(x: torch.Tensor) -> Any:
    y = x + 0
    y.t()[1:3] = x.t()[0:2]
    y[::2].neg_()
    return y


@pytest.mark.parametrize("function", [rows_and_columns, views_of_views, other_shapes, pieces, window_mask, diagonals, permuted])
def test_writes_into_views_are_seen_by_all_that_share_memory(function: Any, tmp_path: pathlib.Path) -> None:
    torch.manual_seed(1)
    check(Function(function), (torch.randn(3, 6),), tmp_path / "m.pt2")


def test_what_a_program_may_not_write_is_said(tmp_path: pathlib.Path) -> None:
    class Cache(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("cache", torch.zeros(4, 3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.cache[1:2] = x
            return self.cache.sum(0)

    class Flat(Cache):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.cache.reshape(-1)[0:3] = x
            return x

    def maybe(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        y.reshape(-1)[0] = 1
        return y

    def alone(x: torch.Tensor) -> torch.Tensor:
        y = (x * 2).flatten()
        return y.relu_().add_(1)

    def wanted(model: nn.Module, text: str) -> None:
        with pytest.raises(oclc.CompileError, match=text):
            results(model, (torch.randn(1, 3),), tmp_path / "m.pt2")

    wanted(Cache(), r"a program that leaves its buffers as they are, found a write into 'cache'; give the buffer as an input and return")
    wanted(Flat(), r"a program that leaves its buffers as they are, found a write into 'cache'")
    wanted(Function(lambda x: x[:, 1:].add_(1)), r"a program that leaves its inputs as they are, found a write into")
    wanted(Function(maybe), r"writes into tensors that share memory as their program says, whatever their strides are, found a write")
    check(Function(alone), (torch.randn(1, 3),), tmp_path / "m.pt2")


@pytest.mark.parametrize("layer", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize(
    ("layers", "both_ways", "batch_first", "bias"), [(1, False, False, True), (2, True, True, True), (2, False, True, False)]
)
def test_recurrent_layers_are_read_whole(
    layer: str, layers: int, both_ways: bool, batch_first: bool, bias: bool, tmp_path: pathlib.Path
) -> None:
    torch.manual_seed(1)
    options = {"nonlinearity": "relu"} if layer == "RNN" and layers == 2 else {}
    model = getattr(nn, layer)(
        5, 7, num_layers=layers, bidirectional=both_ways, batch_first=batch_first, bias=bias, **options
    ).eval()
    for x in (torch.randn(4, 3, 5), torch.randn(4, 5)):
        check(model, (x,), tmp_path / "m.pt2")
    cell = getattr(nn, layer + "Cell")(5, 7).eval()
    for x in (torch.randn(3, 5), torch.randn(5)):
        check(cell, (x,), tmp_path / "c.pt2")


def holey(rows: int, columns: int) -> torch.Tensor:
    x = torch.randn(rows, columns)
    x[0, 1] = x[2] = torch.nan
    return x


@pytest.mark.parametrize("interpolation", ["linear", "lower", "higher", "midpoint", "nearest"])
@pytest.mark.parametrize("function", [torch.quantile, torch.nanquantile])
def test_quantiles_are_read_whole(function: Any, interpolation: str, tmp_path: pathlib.Path) -> None:
    torch.manual_seed(1)
    parts = torch.tensor([0.0, 0.35, 0.5, 1.0])
    for x in (torch.randn(4, 7), holey(4, 7)):
        for dim, keepdim in ((None, False), (0, True), (1, False)):
            check(
                Function(lambda x, dim=dim, keepdim=keepdim: function(x, parts, dim, keepdim, interpolation=interpolation)),
                (x,),
                tmp_path / "m.pt2",
            )
    check(Function(lambda x: function(x, 0.3, dim=1, interpolation=interpolation)), (torch.randn(4, 7),), tmp_path / "m.pt2")


def test_membership_is_read_whole(tmp_path: pathlib.Path) -> None:
    x, others = torch.randint(0, 9, (3, 5)), torch.tensor([[2, 3], [5, 7]])
    check(Function(lambda x, y: (torch.isin(x, y), torch.isin(x, y, invert=True))), (x, others), tmp_path / "m.pt2")
    check(Function(lambda x: (torch.isin(x, 4), torch.isin(3, x))), (x,), tmp_path / "m.pt2")


@pytest.mark.parametrize("padding", [0, 1])
def test_pooled_elements_go_back_to_their_places(padding: int, tmp_path: pathlib.Path) -> None:
    torch.manual_seed(1)

    def there_and_back(x: torch.Tensor) -> torch.Tensor:
        pool, unpool = (F.max_pool2d, F.max_unpool2d) if x.dim() < 5 else (F.max_pool3d, F.max_unpool3d)
        y, places = pool(x, 3, 2, padding, return_indices=True)
        return unpool(y, places, 3, 2, padding, x.shape[-2:] if x.dim() < 5 else x.shape[-3:])

    for shape in ((2, 3, 9, 11), (3, 9, 11), (1, 2, 7, 9, 8)):
        check(Function(there_and_back), (torch.randn(shape),), tmp_path / "m.pt2")


def test_diagonals_of_the_last_axes_are_read_whole(tmp_path: pathlib.Path) -> None:
    x = torch.randn(2, 3, 4, 5)
    check(Function(lambda x: (torch.linalg.diagonal(x), torch.linalg.diagonal(x, offset=-1))), (x,), tmp_path / "m.pt2")
    check(Function(lambda x: torch.linalg.diagonal(x, offset=2, dim1=1, dim2=3)), (x,), tmp_path / "m.pt2")


def test_batch_norm_by_its_native_name(tmp_path: pathlib.Path) -> None:
    torch.manual_seed(1)
    x, weight, bias, mean, variance = torch.randn(4, 3, 5), torch.rand(3), torch.randn(3), torch.randn(3), torch.rand(3) + 0.5
    check(
        Function(lambda *a: torch.native_batch_norm(*a, False, 0.1, 1e-5)[0]), (x, weight, bias, mean, variance), tmp_path / "m.pt2"
    )
    check(
        Function(lambda x, w, b: torch.native_batch_norm(x, w, b, None, None, True, 0.1, 1e-5)), (x, weight, bias), tmp_path / "m.pt2"
    )


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
def test_real_numbers_are_transformed_as_halves(norm: str, tmp_path: pathlib.Path) -> None:
    x = torch.randn(3, 6)
    for function in (torch.fft.irfft, torch.fft.hfft):
        check(Function(lambda x, f=function: (f(x, norm=norm), f(x, n=9, norm=norm))), (x,), tmp_path / "m.pt2")


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_with_padding_are_read_whole(mode: str, tmp_path: pathlib.Path) -> None:
    torch.manual_seed(1)
    bag = nn.EmbeddingBag(10, 4, mode=mode, padding_idx=3)
    check(bag, (torch.tensor([1, 3, 3, 5, 3, 9]), torch.tensor([0, 2, 4])), tmp_path / "m.pt2")


def test_a_recurrent_layer_of_any_batch(tmp_path: pathlib.Path) -> None:
    model = nn.GRU(5, 7, batch_first=True).eval()
    batch = torch.export.Dim("batch", max=16)
    torch.export.save(torch.export.export(model, (torch.randn(2, 6, 5),), dynamic_shapes=({0: batch},)), tmp_path / "m.pt2")
    session = oclc.compile(tmp_path / "m.pt2", device="cpu").session("cpu")
    for n in (1, 4):
        x = torch.randn(n, 6, 5)
        for found, expected in zip(session(x), model(x), strict=True):
            np.testing.assert_allclose(found, expected.detach().numpy(), rtol=1e-5, atol=1e-5)


class Spectrum(nn.Module):
    """Frames of a signal, their magnitudes, and the signal again."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("window", torch.hann_window(64))

    def forward(self, x: torch.Tensor) -> Any:
        z = torch.stft(x, 64, 16, window=self.window, return_complex=True)
        y = torch.istft(z * 0.5, 64, 16, window=self.window, length=x.shape[-1])
        return z.abs(), y, torch.fft.irfft(torch.fft.rfft(x, norm="ortho") * 2j, n=400)


def test_a_signal_becomes_frames_and_frames_a_signal(tmp_path: pathlib.Path) -> None:
    torch.manual_seed(1)
    check(Spectrum(), (torch.randn(2, 500),), tmp_path / "m.pt2")


# Operators that only programs that are not decomposed have.
COMPOSITES = [
    "addr", "argsort", "atleast_2d", "bilinear", "block_diag", "broadcast_tensors", "cdist", "column_stack", "count_nonzero", "cross",
    "cumulative_trapezoid", "diag", "diag_embed", "diff", "dist", "dsplit", "dstack", "einsum", "eye", "fft.fft", "fft.fftshift", "fft.ihfft2", "fft.rfftn",
    "float_power", "frac", "heaviside",
    "hsplit", "index_copy", "index_fill", "inner", "isclose", "kron", "linalg.cross", "linalg.matrix_norm", "linalg.multi_dot",
    "linalg.norm", "linspace", "logaddexp", "logaddexp2", "logspace", "meshgrid", "movedim", "nan_to_num", "nanmean", "nansum",
    "nn.functional.bilinear", "nn.functional.celu", "nn.functional.channel_shuffle", "nn.functional.cosine_embedding_loss",
    "nn.functional.cosine_similarity", "nn.functional.glu", "nn.functional.hinge_embedding_loss", "nn.functional.kl_div",
    "nn.functional.pad", "nn.functional.pairwise_distance", "nn.functional.pixel_unshuffle", "nn.functional.poisson_nll_loss",
    "nn.functional.selu", "nn.functional.soft_margin_loss", "nn.functional.softshrink", "nn.functional.triplet_margin_loss",
    "nn.functional.unfold", "norm", "outer", "repeat_interleave", "rot90", "sinc", "square", "std_mean", "take_along_dim",
    "tensor_split", "tensordot", "tile", "trace", "trapezoid", "var_mean", "vstack", "xlogy",
]  # fmt: skip


def chosen() -> list[Any]:
    ops = [op for op in op_samples.operators(torch.float32) if op.name in COMPOSITES]
    return random.Random(7).sample(ops, 24)


@pytest.mark.parametrize("op", [pytest.param(op, id=op_samples.name_of(op)) for op in chosen()])
def test_a_composite_operator_equals_eager(op: Any) -> None:
    outcome = op_samples.check(exported.Exported(), op, torch.float32, samples=2)
    assert outcome.kind == "passed", outcome.reason
