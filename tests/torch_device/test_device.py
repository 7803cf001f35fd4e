"""The device itself: memory, random numbers, streams, faults."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading

import oclc_torch
import pytest
import torch


def test_random_numbers_repeat():
    torch.manual_seed(3)

    def numbers() -> list[torch.Tensor]:
        return [torch.randn(1000, device="ocl"), torch.rand(7, device="ocl"), torch.randint(0, 9, (50,), device="ocl")]

    a = numbers()
    state = torch.ocl.get_rng_state()
    b = torch.rand(5, device="ocl")
    torch.manual_seed(3)
    assert all(torch.equal(x, y) for x, y in zip(a, numbers(), strict=True))
    torch.ocl.set_rng_state(state)
    assert torch.equal(torch.rand(5, device="ocl"), b)
    assert not torch.equal(torch.rand(5, device="ocl"), b)


def test_random_numbers_have_their_distribution():
    n = torch.empty(100_000, device="ocl").normal_(2.0, 3.0).cpu()
    u = torch.empty(100_000, device="ocl").uniform_(-1.0, 3.0).cpu()
    p = torch.empty(100_000, device="ocl").bernoulli_(0.3).cpu()
    assert float(n.mean()) == pytest.approx(2.0, abs=0.05) and float(n.std()) == pytest.approx(3.0, abs=0.05)
    assert float(u.min()) >= -1.0 and float(u.max()) < 3.0 and float(u.mean()) == pytest.approx(1.0, abs=0.02)
    assert float(p.mean()) == pytest.approx(0.3, abs=0.01)


def test_other_distributions():
    n = 100_000
    geometric = torch.empty(n, device="ocl").geometric_(0.25).cpu()
    cauchy = torch.empty(n, device="ocl").cauchy_(1.0, 2.0).cpu()
    log_normal = torch.empty(n, device="ocl").log_normal_(0.5, 0.25).cpu()
    assert float(geometric.min()) == 1.0 and float(geometric.mean()) == pytest.approx(4.0, abs=0.05)
    assert [float(q) for q in cauchy.quantile(torch.tensor([0.25, 0.5, 0.75]))] == pytest.approx([-1.0, 1.0, 3.0], abs=0.06)
    assert float(log_normal.log().mean()) == pytest.approx(0.5, abs=0.01)


def test_multinomial_draws_by_its_probabilities(nothing_on_the_cpu):
    p = torch.tensor([0.1, 0.0, 0.6, 0.3], device="ocl")
    for draw in (p.multinomial(50_000, replacement=True), p.expand(50_000, 4).multinomial(1)):
        found = draw.cpu().flatten().bincount(minlength=4) / 50_000
        assert found.tolist() == pytest.approx([0.1, 0.0, 0.6, 0.3], abs=0.01)
    both = p.multinomial(3).cpu()
    assert sorted(both.tolist()) == [0, 2, 3]
    with pytest.raises(RuntimeError, match="sum of probabilities <= 0"):
        torch.zeros(3, device="ocl").multinomial(1)


def test_accelerator_functions_know_the_memory():
    x = torch.empty(1 << 20, device="ocl")
    assert torch.accelerator.memory_allocated() >= x.nbytes
    assert torch.accelerator.memory_stats()["allocated_bytes.all.current"] == torch.ocl.memory_allocated()
    free, total = torch.accelerator.get_memory_info()
    assert 0 < free < total == torch.ocl.get_device_properties().total_memory
    del x
    torch.accelerator.empty_cache()
    assert torch.ocl.memory_stats()["inactive_bytes"] == 0


def test_allocations_of_random_sizes_do_not_grow():
    sizes = random.Random(0)
    kept: list[torch.Tensor] = []

    def rounds(count: int) -> int:
        for _ in range(count):
            kept.append(torch.empty(sizes.randrange(1, 1 << 16), device="ocl"))
            if len(kept) > 20:
                kept.pop(sizes.randrange(len(kept)))
        return torch.ocl.memory_reserved()

    rounds(5000)
    middle = torch.ocl.memory_stats()["buffers_created"]
    rounds(5000)
    stats = torch.ocl.memory_stats()
    assert stats["buffers_created"] - middle < 250
    assert 0.0 <= stats["fragmentation"] < 1.0
    kept.clear()
    torch.ocl.empty_cache()
    assert torch.ocl.memory_stats()["inactive_bytes"] == 0


def test_out_of_memory_is_torchs_exception_and_the_program_goes_on():
    total = torch.ocl.get_device_properties().total_memory
    torch.ocl.set_per_process_memory_fraction(max(0.001, 64e6 / total))
    try:
        with pytest.raises(torch.OutOfMemoryError, match="is out of memory: wanted"):
            torch.empty(1 << 30, device="ocl")
        assert torch.ones(4, device="ocl").sum().item() == 4.0
    finally:
        torch.ocl.set_per_process_memory_fraction(1.0)


def test_a_device_that_is_not_there_is_told():
    with pytest.raises(RuntimeError, match=r"device ocl:60 is not there: found \d+ OpenCL devices"):
        torch.ones(4, device="ocl:60")


def test_two_threads_compute():
    found: list[bool] = []

    def work(seed: int) -> None:
        x = torch.full((64,), float(seed), device="ocl")
        for _ in range(20):
            x = x * 1.0 + 1.0
        found.append(x.cpu().tolist() == [seed + 20.0] * 64)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == [True, True]


def test_a_forked_child_is_told_what_to_do():
    torch.ones(1, device="ocl")
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            torch.ones(2, device="ocl")
            os.write(writer, b"no error")
        except RuntimeError as error:
            os.write(writer, str(error).encode())
        os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    assert b"spawn" in os.read(reader, 4000)


def test_streams_and_events():
    stream = torch.Stream("ocl")
    event = torch.Event("ocl")
    x = torch.ones(1000, device="ocl") * 2
    event.record(stream)
    event.synchronize()
    assert event.query() and float(x.sum()) == 2000.0
    stream.synchronize()


@pytest.mark.parametrize("broken", [{"OCLC_OPENCL": "/nowhere/libOpenCL.so"}, {"OCLC_DEVICE": "no such device"}])
def test_torch_imports_whatever_is_wrong(broken):
    script = "import torch; assert float(torch.ones(2).sum()) == 2.0; print('imported')"
    run = subprocess.run([sys.executable, "-c", script], env={**os.environ, **broken}, capture_output=True, text=True)
    assert run.returncode == 0 and "imported" in run.stdout


def test_an_accelerator_of_torchs_own_comes_first(monkeypatch):
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    loaded: list[bool] = []
    monkeypatch.setattr(oclc_torch, "_load", lambda: loaded.append(True))
    oclc_torch._autoload()
    assert not loaded
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    oclc_torch._autoload()
    assert loaded == [True]
