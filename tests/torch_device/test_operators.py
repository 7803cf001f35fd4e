"""Operators by plans: results as on the CPU, one plan for many calls, and what runs on the CPU is told."""

from __future__ import annotations

import pytest
import torch
from torch._prims_common import clone_preserve_strides
from torch.nn import functional as F


def same(function, *tensors, rtol=1e-5, atol=1e-6):
    expected = function(*tensors)
    found = function(*[t.to("ocl") for t in tensors])
    torch.testing.assert_close(found.cpu(), expected, rtol=rtol, atol=atol)


CASES = {
    "broadcast": (lambda a, b: a * b + a / (b.abs() + 1), [(3, 1, 5), (4, 1)]),
    "matmul": (lambda a, b: a @ b, [(5, 7), (7, 3)]),
    "matmul_transposed": (lambda a, b: a @ b.t(), [(5, 7), (3, 7)]),
    "batched": (lambda a, b: torch.bmm(a, b.transpose(1, 2)), [(2, 5, 7), (2, 3, 7)]),
    "batched_with_one_element": (lambda a, b: torch.bmm(a, b.expand(5, 5, 10)), [(5, 5, 5), (1, 1, 1)]),
    "softmax": (lambda a: F.softmax(a, -1), [(4, 9)]),
    "sum_over_axes": (lambda a: a.sum((0, 2)), [(3, 4, 5)]),
    "mean_and_variance": (lambda a: torch.var_mean(a, 1)[0], [(4, 9)]),
    "layer_norm": (lambda a, w, b: F.layer_norm(a, (6,), w, b), [(4, 6), (6,), (6,)]),
    "gelu": (lambda a: F.gelu(a), [(4, 6)]),
    "conv2d": (lambda a, w, b: F.conv2d(a, w, b, padding=1, stride=2), [(2, 3, 8, 8), (4, 3, 3, 3), (4,)]),
    "max_pool2d": (lambda a: F.max_pool2d(a, 2), [(2, 3, 8, 8)]),
    "cat": (lambda a, b: torch.cat([a, b], 1), [(2, 3), (2, 4)]),
    "where": (lambda a, b: torch.where(a > b, a, b), [(5, 5), (5, 5)]),
    "cumsum": (lambda a: a.cumsum(1), [(3, 6)]),
}


@pytest.mark.parametrize("name", CASES)
def test_as_on_the_cpu(name, nothing_on_the_cpu):
    function, shapes = CASES[name]
    same(function, *[torch.randn(s) for s in shapes])


MASKED = {
    "nonzero": lambda a, m: m.nonzero(),
    "masked_select": lambda a, m: a.masked_select(m),
    "mask": lambda a, m: a[m],
    "mask_of_rows": lambda a, m: a[m[:, 0]],
    "mask_behind_an_axis": lambda a, m: a[:, m[0]],
    "fill": lambda a, m: a.clone().index_put_((m,), torch.tensor(3.0, device=a.device)),
    "put": lambda a, m: a.clone().index_put_((m,), a[m] * 2),
    "accumulate": lambda a, m: a.clone().index_put_((m,), a[m], accumulate=True),
    "unique": lambda a, m: torch.cat([v.flatten().to(torch.int64) for v in (a * 2).round().unique(return_inverse=True, return_counts=True)]),
    "consecutive": lambda a, m: torch.cat([v.flatten() for v in m.int().unique_consecutive(return_inverse=True, return_counts=True)]),
    "bincount": lambda a, m: (a * 2).round().abs().long().flatten().bincount(minlength=3),
    "bincount_weighed": lambda a, m: (a * 2).round().abs().long().flatten().bincount(a.flatten()),
}


@pytest.mark.parametrize("name", MASKED)
@pytest.mark.parametrize("chosen", ["some", "none", "all"])
def test_sizes_that_depend_on_values_are_found_on_the_device(name, chosen, nothing_on_the_cpu):
    a = torch.randn(6, 5)
    mask = {"some": a > 0.3, "none": a > 100, "all": a < 100}[chosen]
    expected, found = MASKED[name](a, mask), MASKED[name](a.to("ocl"), mask.to("ocl"))
    assert found.device.type == "ocl"
    torch.testing.assert_close(found.cpu(), expected)


def test_a_mask_of_another_size_is_told():
    with pytest.raises(IndexError, match="The shape of the mask"):
        torch.ones(3, 4, device="ocl")[torch.ones(2, dtype=torch.bool, device="ocl")]


def test_the_third_size_needs_no_plan(nothing_on_the_cpu):
    for n in (5, 6):
        (torch.ones(n, 3, device="ocl") * 2).sigmoid()
    before = torch.ocl.counters()["traced"]
    for n in (7, 8, 64):
        x = torch.randn(n, 3)
        torch.testing.assert_close((x.to("ocl") * 2).sigmoid().cpu(), (x * 2).sigmoid())
    assert torch.ocl.counters()["traced"] == before


def test_the_third_number_needs_no_plan(nothing_on_the_cpu):
    x = torch.randn(3, 4)
    y = x.to("ocl")
    for v in (0.1, 0.2):
        y.addcmul(y, y, value=v)
    before = torch.ocl.counters()["traced"]
    for v in (0.0, 1.0, -0.3):
        torch.testing.assert_close(y.addcmul(y, y, value=v).cpu(), x.addcmul(x, x, value=v))
    assert torch.ocl.counters()["traced"] == before


def test_integers_keep_their_numbers():
    x = torch.tensor([1, 2, 3])
    for v in (1.5, 2.5, 3.5):
        same(lambda a, v=v: a * v, x)


def test_in_place_takes_no_copy(nothing_on_the_cpu):
    x = torch.ones(8, device="ocl")
    before = torch.ocl.counters()
    x.mul_(3.0).add_(x)
    after = torch.ocl.counters()
    assert after["copied"] == before["copied"]
    assert x.cpu().tolist() == [6.0] * 8


def test_out_is_written_where_it_lies(nothing_on_the_cpu):
    a, b = torch.randn(4, 5), torch.randn(5, 3)
    out = torch.empty(4, 3, device="ocl")
    address = out.data_ptr()
    assert torch.mm(a.to("ocl"), b.to("ocl"), out=out) is out
    assert out.data_ptr() == address
    torch.testing.assert_close(out.cpu(), a @ b)


def test_a_result_that_does_not_fit_its_tensor_is_refused():
    with pytest.raises(RuntimeError, match="can't be cast"):
        torch.ones(3, dtype=torch.int64, device="ocl").add_(0.5)


def test_what_runs_on_the_cpu_is_counted_and_said_once():
    x = torch.tensor([0.0, 1.0, 0.0, 2.0], device="ocl")
    before = torch.ocl.fallbacks().get("aten::mode", (0, ""))[0]
    if before == 0:
        with pytest.warns(UserWarning, match="aten::mode runs on the CPU"):
            x.mode()
    else:
        x.mode()
    assert x.mode().indices.item() == 2
    assert torch.ocl.fallbacks()["aten::mode"][0] == before + 2


def test_a_fallback_can_be_an_error(monkeypatch):
    monkeypatch.setenv("TORCH_OCL_FALLBACK", "error")
    with pytest.raises(NotImplementedError, match="aten::mode would run on the CPU"):
        torch.ones(4, device="ocl").mode()


def test_foreach_is_one_plan(nothing_on_the_cpu):
    xs = [torch.randn(n) for n in (3, 5, 8)]
    ys = [x.to("ocl") for x in xs]
    before = torch.ocl.counters()["calls"]
    torch._foreach_mul_(ys, 2.0)
    assert torch.ocl.counters()["calls"] == before + 1
    for x, y in zip(xs, ys, strict=True):
        assert torch.equal(y.cpu(), x * 2)


def test_batch_norm_with_its_statistics(nothing_on_the_cpu):
    x, statistics = torch.randn(3, 4, 5, 5), torch.rand(4) + 0.5
    same(lambda x, s: F.batch_norm(x, s, s, s, s, False), x, statistics)


def test_launches_are_counted():
    x = torch.ones(8, device="ocl")
    before = torch.ocl.counters()["launches"]
    x + 1
    assert torch.ocl.counters()["launches"] == before + 1


def test_elements_of_a_result_share_no_memory(monkeypatch, nothing_on_the_cpu):
    """torch below 2.12 says of a part that is written into an expanded tensor that the result is expanded too."""
    monkeypatch.setattr("torch._meta_registrations._scatter_meta_output", clone_preserve_strides, raising=False)
    calls = {
        torch.select_scatter: lambda x: (x, torch.zeros_like(x[1]), 0, 1),
        torch.slice_scatter: lambda x: (x, torch.zeros_like(x[:, :2]), 1, 0, 2),
        torch.diagonal_scatter: lambda x: (x, torch.zeros_like(x.diagonal())),
    }
    for function, arguments in calls.items():
        same(lambda x, f=function, a=arguments: f(*a(x.expand(5, 7))), torch.ones(()))
