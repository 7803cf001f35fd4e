"""Operators that are read in a way of their own, beside eager PyTorch; and what is refused, by its text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import oclc  # noqa: E402
from torch.nn import functional as F  # noqa: E402


pytestmark = pytest.mark.usefixtures("fresh_torch")


def compiled(function: Callable[..., Any], **options: Any) -> Any:
    return torch.compile(function, backend="oclc", fullgraph=True, options={"device": "cpu"}, **options)


def whole(*shape: int) -> torch.Tensor:
    return torch.randint(-9, 10, shape)


def numbers(*shape: int) -> torch.Tensor:
    return torch.randn(shape)


CASES: dict[str, tuple[Callable[..., Any], Callable[[], list[torch.Tensor]]]] = {
    "a convolution of integers": (
        lambda x, w: F.conv2d(x, w, stride=2, padding=1, dilation=2, groups=2), lambda: [whole(2, 4, 9, 8), whole(6, 2, 3, 2)]),
    "a transposed convolution of integers": (
        lambda x, w, b: F.conv_transpose2d(x, w, b, stride=3, padding=1, output_padding=1, groups=2),
        lambda: [whole(2, 4, 5, 4), whole(4, 3, 3, 2), whole(6)]),
    "a transposed convolution of integers that cuts more than its window": (
        lambda x, w: F.conv_transpose1d(x, w, stride=1, padding=2), lambda: [whole(1, 2, 7), whole(2, 3, 2)]),
    "means of integers towards 0": (
        lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False), lambda: [whole(2, 3, 6, 7)]),
    "means of integers by a given divisor": (
        lambda x: F.avg_pool2d(x, 2, ceil_mode=True, divisor_override=3), lambda: [whole(1, 2, 5, 5)]),
    "truth values added at places": (
        lambda x, i, y: x.index_add(0, i, y), lambda: [whole(4, 3) > 5, torch.tensor([1, 1, 3]), whole(3, 3) > 0]),
    "truth values put at places and added": (
        lambda x, i, y: x.index_put((i,), y, accumulate=True), lambda: [whole(5) > 5, torch.tensor([1, 1, 3]), whole(3) > 0]),
    "signs of truth values": (torch.sign, lambda: [whole(5) > 0]),
    "places of what is not 0": (lambda x: torch.nonzero_static(x, size=4), lambda: [torch.tensor([[0, 3, 0], [1, 0, 2]])]),
    "more places of what is not 0 than there is room for": (
        lambda x: torch.nonzero_static(x, size=2, fill_value=-7), lambda: [torch.tensor([0, 3, 1, 2])]),
    "an element at an index without axes": (torch.take, lambda: [numbers(3, 4), torch.tensor(7)]),
    "an edge that stays where all else is cut": (lambda x: F.pad(x, (-4, 5, 1, 0), mode="replicate"), lambda: [numbers(2, 3, 4, 4)]),
    "a resize without aliases": (
        lambda x: F.interpolate(x, size=(3, 11), mode="bilinear", antialias=True), lambda: [numbers(1, 2, 8, 7)]),
    "a cubic resize without aliases": (
        lambda x: F.interpolate(x, scale_factor=0.4, mode="bicubic", antialias=True), lambda: [numbers(1, 2, 8, 7)]),
    "mantissas and exponents": (
        torch.frexp, lambda: [torch.tensor([0.0, -0.0, 1.0, -3.5, 1e-42, 1e38, float("inf"), float("nan")])]),
    "mantissas of half precision": (torch.frexp, lambda: [torch.tensor([0.0, 1.0, -3.5, 6e-8, 6e4]).half()]),
    "next numbers": (
        torch.nextafter,
        lambda: [torch.tensor([0.0, 1.0, -1.0, 5.0, 1e-45, float("inf")]), torch.tensor([-1.0, 2.0, -2.0, 5.0, 0.0, 0.0])]),
    "quantiles of the normal distribution": (
        torch.special.ndtri, lambda: [torch.tensor([0.0, 1e-20, 1e-4, 0.3, 0.5, 0.9, 0.9999, 1.0])]),
    "a view by strides of a transposed tensor": (lambda x: x.t().as_strided((3, 5), (2, 1), 3) * 2, lambda: [numbers(4, 6)]),
    "a view by strides beyond the view that it is of": (lambda x: (x * 2)[:2].as_strided((4,), (5,)), lambda: [numbers(4, 6)]),
    "a view by strides from where its view begins": (lambda x: (x * 2)[1].as_strided((3,), (2,)), lambda: [numbers(4, 6)]),
    "a view by strides before the view that it is of": (lambda x: x.as_strided((2, 2), (1, 2), 0), lambda: [numbers(20)[5:15]]),
    "a view by strides behind the view that it is of": (lambda x: x.as_strided((2, 2), (1, 2), 16), lambda: [numbers(20)[5:15]]),
    "a view by strides of an input that is transposed": (lambda x: x.as_strided((4,), (3,), 1) + x.sum(), lambda: [numbers(4, 6).t()]),
    "a write by strides into a transposed tensor": (
        lambda x, y: (x * 2).t().as_strided_scatter(y, (3, 2), (7, 1), 2), lambda: [numbers(4, 6), numbers(3, 2)]),
    "spherical Bessel functions": (
        torch.special.spherical_bessel_j0, lambda: [torch.tensor([0.0, 1e-4, 0.49, 0.51, -7.0, float("inf")])]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_as_eager(name: str) -> None:
    function, inputs = CASES[name]
    given = inputs()
    torch.testing.assert_close(compiled(function)(*given), function(*given), rtol=2e-6, atol=1e-6, equal_nan=True)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_with_gradients(mode: str) -> None:
    words, offsets = torch.tensor([3, 1, 4, 1, 2, 2, 0]), torch.tensor([0, 3, 3, 7])
    found, expected = torch.randn(5, 6), torch.empty(0)
    weight = found.clone().requires_grad_()
    other = found.clone().requires_grad_()

    def bag(w: torch.Tensor) -> Any:
        return F.embedding_bag(words, w, offsets, mode=mode, padding_idx=2, include_last_offset=True)

    result, expected = compiled(bag)(weight), bag(other)
    torch.testing.assert_close(result, expected)
    g = torch.randn_like(expected)
    (result * g).sum().backward()
    (expected * g).sum().backward()
    torch.testing.assert_close(weight.grad, other.grad)


def test_weights_of_words_have_gradients() -> None:
    words, offsets = torch.tensor([3, 1, 4, 1]), torch.tensor([0, 1])
    tensors = [torch.randn(5, 6), torch.randn(4)]
    ours, theirs = ([t.clone().requires_grad_() for t in tensors] for _ in range(2))

    def bag(w: torch.Tensor, shares: torch.Tensor) -> Any:
        return F.embedding_bag(words, w, offsets, mode="sum", per_sample_weights=shares)

    result, expected = compiled(bag)(*ours), bag(*theirs)
    torch.testing.assert_close(result, expected)
    result.square().sum().backward()
    expected.square().sum().backward()
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a.grad, b.grad)


def test_statistics_of_half_precision_are_those_of_single() -> None:
    """Sums of 4,096 numbers near 3 are not those of half precision."""
    x = (torch.randn(4, 2, 32, 32) * 0.1 + 3).half()
    weight, bias = torch.ones(2).half(), torch.zeros(2).half()

    def normed(x: torch.Tensor) -> Any:
        return F.batch_norm(x, None, None, weight, bias, training=True)

    exact = F.batch_norm(x.double(), None, None, weight.double(), bias.double(), training=True)
    assert (compiled(normed)(x).double() - exact).abs().max() < 4e-3


def test_a_product_added_to_a_part_of_a_matrix_is_rounded_once() -> None:
    a, b, c = (torch.randn(24, 24).bfloat16() for _ in range(3))

    def added(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> Any:
        return torch.addmm(a, b, c, beta=-4.775, alpha=2.0315)

    exact = added(a.double(), b.double(), c.double())
    theirs = (added(a, b, c).double() - exact).abs().max()
    assert (compiled(added)(a, b, c).double() - exact).abs().max() <= 1.05 * theirs


def test_an_empty_result_is_no_part_of_the_plan() -> None:
    def function(x: torch.Tensor) -> Any:
        return x[:0], x + 1

    before = oclc.torch.counters.eager
    empty, more = compiled(function)(torch.ones(3))
    assert empty.shape == (0,) and more.tolist() == [2.0, 2.0, 2.0]
    assert oclc.torch.counters.eager == before


@pytest.mark.parametrize(
    ("function", "tensors", "text"),
    [
        (torch.gcd, (torch.tensor([4]), torch.tensor([6])), "prims.gcd"),
        (lambda x: x[x > 0], (torch.ones(3),), "wanted indices of integers, found a mask"),
        (lambda x: torch.linalg.eigvalsh(x), (torch.eye(3),), "_linalg_eigh"),
    ],
)
def test_what_is_refused_says_why(function: Any, tensors: tuple[torch.Tensor, ...], text: str) -> None:
    with pytest.raises(Exception, match=text):
        compiled(function)(*tensors)


def test_an_input_that_strides_read_stays_where_it_lay() -> None:
    """torch compiles nothing anew for a view that begins elsewhere."""
    step, memory = compiled(lambda x: x.as_strided((3,), (2,), 1)), numbers(20)
    torch.testing.assert_close(step(memory[5:15]), memory[1:7:2])
    with pytest.raises(RuntimeError, match="which as_strided reads, at element 5 of its storage as when it was compiled, found it at 7"):
        step(memory[7:17])


def test_means_of_integers_want_known_sizes() -> None:
    step = compiled(lambda x: F.avg_pool2d(x, 2), dynamic=True)
    with pytest.raises(Exception, match="sizes known when compiling for means of integers"):
        step(whole(1, 1, 5, 5))
