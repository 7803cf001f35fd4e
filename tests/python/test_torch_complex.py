"""Complex tensors and Fourier transforms, beside eager PyTorch; and what of them is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.usefixtures("fresh_torch")


def compiled(function: Callable[..., Any], **options: Any) -> Any:
    return torch.compile(function, backend="oclc", fullgraph=True, options={"device": "cpu"}, **options)


def real(*shape: int) -> torch.Tensor:
    return torch.randn(shape)


def numbers(*shape: int) -> torch.Tensor:
    return torch.randn(shape, dtype=torch.complex64)


CASES: dict[str, tuple[Callable[..., Any], Callable[[], list[torch.Tensor]]]] = {
    "products, quotients and sums": (lambda z, w: (z * w - z) / (w + (2 - 1j)) * 3, lambda: [numbers(3, 4), numbers(4)]),
    "with real tensors and numbers": (lambda z, x: x / z + z * x + (1 - z) / x - 2.5, lambda: [numbers(3, 4), real(3, 4)]),
    "a quotient of numbers whose squares are too large": (lambda z: z / (z * 2), lambda: [numbers(5) * 1e30]),
    "lengths and angles": (lambda z: (z.abs(), z.angle()), lambda: [torch.tensor([0j, 3 - 4j, -1e30 + 1e30j, -2 + 0j])]),
    "made of lengths and angles": (lambda x, y: torch.polar(x.abs(), y), lambda: [real(3, 1), real(4)]),
    "made of parts": (lambda x, y: torch.complex(x, y).exp().log(), lambda: [real(3, 1), real(4)]),
    "conjugates of inputs": (lambda z: (z.imag + 1, z * 2), lambda: [numbers(3, 4).conj()]),
    "matrices": (lambda z, w: (z @ w.t().conj(), z @ z.t()), lambda: [numbers(3, 4), numbers(5, 4)]),
    "views, cuts and joins": (
        lambda z: torch.cat([z[:, 1:].flip(0).t().reshape(3, 3), z[:, :-1].roll(1, 1)]).sum(-1), lambda: [numbers(3, 4)]),
    "pairs of real numbers": (lambda x: torch.view_as_real(torch.view_as_complex(x) * 1j), lambda: [real(3, 4, 2)]),
    "to and from other types": (lambda z, x: (z.to(torch.complex128) + x).to(torch.complex64), lambda: [numbers(3), real(3)]),
    "a transform of real numbers": (lambda x: torch.fft.rfft(x, norm="ortho"), lambda: [real(3, 7)]),
    "a transform along several axes": (lambda z: torch.fft.fftn(z, dim=(0, 2)), lambda: [numbers(4, 3, 5)]),
    "a transform of more numbers than there are": (lambda x: torch.fft.fft(x, n=12, dim=0), lambda: [real(7, 2)]),
    "a transform back": (lambda z: torch.fft.ifft2(z, norm="forward"), lambda: [numbers(4, 5)]),
    "back to real numbers, an odd number of them": (lambda z: torch.fft.irfftn(z, s=(4, 7)), lambda: [numbers(4, 4)]),
    "a spectrogram": (
        lambda x: torch.stft(x, 16, 4, window=torch.hann_window(16), return_complex=True).abs(), lambda: [real(2, 80)]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_as_eager(name: str) -> None:
    function, inputs = CASES[name]
    given = inputs()
    torch.testing.assert_close(compiled(function)(*given), function(*given), rtol=3e-6, atol=3e-6)


def test_gradients_go_through_a_transform() -> None:
    ours, theirs = (torch.linspace(-1, 1, 24).reshape(2, 12).requires_grad_() for _ in range(2))

    def energy(x: torch.Tensor) -> Any:
        return torch.fft.irfft(torch.fft.rfft(x) * torch.linspace(0, 1, 7), n=12).square().sum()

    compiled(energy)(ours).backward()
    energy(theirs).backward()
    torch.testing.assert_close(ours.grad, theirs.grad)


def test_an_operator_without_a_complex_form_is_named() -> None:
    with pytest.raises(Exception, match=r"aten.tanh.default of complex numbers \(1 node"):
        compiled(torch.tanh)(numbers(3))


def test_a_transform_wants_a_known_length() -> None:
    with pytest.raises(Exception, match="lengths of transforms that are known when compiling"):
        compiled(lambda x: torch.fft.rfft(x, dim=0).abs(), dynamic=True)(real(9, 2))
