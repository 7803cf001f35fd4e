"""Tensors of the device: memory, views, copies, saved files."""

from __future__ import annotations

import copy
import io

import pytest
import torch


def test_ones_plus_one_is_two(nothing_on_the_cpu):
    assert (torch.ones(4, device="ocl") + 1).cpu().tolist() == [2.0] * 4


TYPES = [torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.uint8, torch.bool]


@pytest.mark.parametrize("dtype", TYPES)
def test_there_and_back_keeps_the_bytes(dtype):
    x = torch.randint(0, 2, (3, 5)).to(dtype)
    assert torch.equal(x.to("ocl").cpu(), x)


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.t(),
        lambda x: x[1:, ::2],
        lambda x: x[:, 3],
        lambda x: x.unsqueeze(1).expand(4, 5, 6),
        lambda x: x.reshape(2, 2, 6).permute(2, 0, 1),
        lambda x: x.as_strided((2, 2), (7, 2), 3),
        lambda x: x.unfold(1, 3, 2),
    ],
)
def test_views_are_as_on_the_cpu(view, nothing_on_the_cpu):
    x = torch.randn(4, 6)
    on_device = x.to("ocl")
    seen = view(on_device)
    assert seen.untyped_storage().data_ptr() == on_device.untyped_storage().data_ptr()
    assert torch.equal(seen.cpu(), view(x))
    assert torch.equal((seen + 1).cpu(), view(x) + 1)


def test_writing_a_view_writes_the_tensor(nothing_on_the_cpu):
    x, y = torch.zeros(4, 6), torch.zeros(4, 6, device="ocl")
    for t in (x, y):
        t[1:3, ::2] = 5.0
        t[:, 1].add_(2.0)
        t.t()[0].mul_(3.0)
    assert torch.equal(y.cpu(), x)


def test_copies_between_overlapping_parts(nothing_on_the_cpu):
    x = torch.arange(8.0, device="ocl")
    x[1:] = x[:-1]
    assert x.cpu().tolist() == [0.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


def test_the_source_of_a_copy_may_change_afterwards():
    x = torch.ones(1 << 16)
    y = x.to("ocl")
    x.zero_()
    assert float(y.sum()) == 1 << 16


def test_element_types_convert(nothing_on_the_cpu):
    x = torch.tensor([-1.5, 0.0, 2.75])
    y = x.to("ocl")
    for dtype in (torch.int32, torch.float16, torch.bool, torch.int64):
        assert torch.equal(y.to(dtype).cpu(), x.to(dtype))


def test_resizing_keeps_what_fits():
    x = torch.arange(4.0, device="ocl")
    x.resize_(6)
    assert x[:4].cpu().tolist() == [0.0, 1.0, 2.0, 3.0]
    x.untyped_storage().resize_(8)
    assert x.untyped_storage().nbytes() == 8


def test_tensors_share_a_storage_that_they_set():
    x = torch.arange(6.0, device="ocl")
    y = torch.empty(0, device="ocl").set_(x.untyped_storage(), 2, (2, 2), (2, 1))
    y.fill_(7.0)
    assert x.cpu().tolist() == [0.0, 1.0, 7.0, 7.0, 7.0, 7.0]


def test_saved_tensors_load_on_either_side():
    x = torch.randn(3, 4, device="ocl")
    file = io.BytesIO()
    torch.save({"x": x}, file)
    file.seek(0)
    assert torch.load(file)["x"].device == x.device
    file.seek(0)
    assert torch.equal(torch.load(file, map_location="cpu")["x"], x.cpu())
    assert torch.equal(copy.deepcopy(x).cpu(), x.cpu())


def test_pinned_memory_is_known():
    assert torch.ones(4).pin_memory("ocl").is_pinned("ocl")
    assert not torch.ones(4).is_pinned("ocl")


def test_addresses_on_a_cpu_are_the_memory():
    if not torch.ocl.get_device_properties().host_memory:
        pytest.skip("the device has memory of its own")
    import ctypes

    x = torch.arange(4.0, device="ocl")
    torch.ocl.synchronize()
    assert list((ctypes.c_float * 4).from_address(x.data_ptr())) == [0.0, 1.0, 2.0, 3.0]


def test_nothing_computes_on_two_devices():
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        torch.ones(4, device="ocl") + torch.ones(4)


def test_tensors_without_elements():
    x = torch.empty(0, 3, device="ocl")
    assert (x + 1).shape == (0, 3)
    assert float(x.sum()) == 0.0
    assert torch.cat([x, torch.ones(1, 3, device="ocl")]).cpu().tolist() == [[1.0] * 3]
