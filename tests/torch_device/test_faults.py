"""Faults: each is told, and the process goes on. Long runs do not grow."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
import torch
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset


def python(script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", script], env={**os.environ, **environment}, capture_output=True, text=True)


class OnDevice(Dataset):
    """A data set that makes its tensors on the device."""

    def __len__(self) -> int:
        return 4

    def __getitem__(self, i: int) -> torch.Tensor:
        return torch.full((3,), float(i), device="ocl")


class OnCpu(Dataset):
    def __len__(self) -> int:
        return 4

    def __getitem__(self, i: int) -> torch.Tensor:
        return torch.full((3,), float(i))


def test_a_forked_data_loader_that_uses_the_device_is_told():
    torch.ones(1, device="ocl")
    loader = DataLoader(OnDevice(), batch_size=2, num_workers=1, multiprocessing_context="fork")
    with pytest.raises(RuntimeError, match="Cannot re-initialize ocl in forked subprocess.*'spawn' start method"):
        list(loader)
    assert torch.ones(2, device="ocl").sum().item() == 2.0


def test_a_forked_data_loader_that_leaves_the_device_alone_serves():
    torch.ones(1, device="ocl")
    loader = DataLoader(OnCpu(), batch_size=2, num_workers=1, multiprocessing_context="fork", pin_memory=True)
    batches = [batch.to("ocl", non_blocking=True) for batch in loader]
    assert [b.sum(1).cpu().tolist() for b in batches] == [[0.0, 3.0], [6.0, 9.0]]


# A driver that is lost when the variable LOST is set: what takes commands then answers as a device does that is gone. All other
# functions are those of the library that it is linked to.
LOSING_DRIVER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
typedef int (*call)(void *, void *, void *, void *, void *, void *, void *, void *, void *);
#define LOSES(name)                                                                                                       \
  int name(void *a, void *b, void *c, void *d, void *e, void *f, void *g, void *h, void *i) {                             \
    if (getenv("LOST")) return -2; /* CL_DEVICE_NOT_AVAILABLE */                                                          \
    return ((call)dlsym(dlopen("libOpenCL.so.1", RTLD_NOW), #name))(a, b, c, d, e, f, g, h, i);                           \
  }
LOSES(clEnqueueNDRangeKernel)
LOSES(clEnqueueReadBuffer)
LOSES(clEnqueueWriteBuffer)
LOSES(clEnqueueFillBuffer)
LOSES(clFinish)
LOSES(clFlush)
"""

USE_OF_A_LOST_DEVICE = """
import os, oclc_torch, torch
x = torch.ones(4, device="ocl")
(x + x).cpu()
os.environ["LOST"] = "1"
for what in (lambda: x + x, lambda: x.cpu(), lambda: torch.zeros(3, device="ocl"), lambda: torch.ocl.synchronize(), lambda: torch.ones(2).to("ocl")):
    try:
        what()
        print("nothing said")
    except RuntimeError as error:
        print("said:", str(error).splitlines()[0])
print(float(torch.ones(2).sum()))
"""


@pytest.fixture(scope="session")
def losing_driver(tmp_path_factory: pytest.TempPathFactory) -> str:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    folder = tmp_path_factory.mktemp("driver")
    (folder / "losing.c").write_text(LOSING_DRIVER)
    library = str(folder / "liblosing.so")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, str(folder / "losing.c"), "-Wl,--no-as-needed", "-l:libOpenCL.so.1"], check=True)
    return library


def test_a_lost_driver_is_told_by_every_call_and_the_process_goes_on(losing_driver):
    ran = python(USE_OF_A_LOST_DEVICE, OCLC_OPENCL=losing_driver)
    assert ran.returncode == 0, ran.stderr
    said = [line for line in ran.stdout.splitlines() if line.startswith("said: device ocl:")]
    assert len(said) == 5 and all("CL_DEVICE_NOT_AVAILABLE" in line for line in said), ran.stdout + ran.stderr
    assert ran.stdout.splitlines()[-1] == "2.0"


BROKEN_KERNELS = """
import oclc_torch, torch
try:
    torch.randn(4, device="ocl")
except RuntimeError as error:
    print("said:", " ".join(str(error).split())[:400])
print(torch.ones(2, device="ocl").exp().log().cpu().tolist())  # on the CPU, which is told
for name, (count, reason) in torch.ocl.fallbacks().items():
    print("fell:", name, count, " ".join(reason.split())[:400])
"""


def test_a_kernel_that_does_not_build_is_told_with_the_compilers_text(tmp_path):
    if not torch.ocl.get_device_properties().host_memory:
        pytest.skip("only PoCL takes options that break every kernel")
    flags = "-Dget_global_id=no_such_function -Dget_group_id=no_such_function"
    ran = python(BROKEN_KERNELS, POCL_EXTRA_BUILD_FLAGS=flags, POCL_CACHE_DIR=str(tmp_path), OCLC_CACHE_DIR=str(tmp_path))
    assert ran.returncode == 0, ran.stderr
    said, result, *fell = ran.stdout.splitlines()
    assert said.startswith("said: device ocl: the kernel random_numbers does not build on") and "no_such_function" in said, ran.stdout
    assert result == "[1.0, 1.0]"
    assert len(fell) == 2 and all("does not build on device" in line and "no_such_function" in line for line in fell), ran.stdout


def resident_kib() -> int:
    found = re.search(r"VmRSS:\s+(\d+)", pathlib.Path("/proc/self/status").read_text())
    assert found
    return int(found[1])


STEPS = 1000 if os.environ.get("OCLC_TEST_ALL") == "1" else 200


def test_training_steps_do_not_grow_the_process(nothing_on_the_cpu):
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3)).to("ocl")
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    x, y = torch.randn(4, 8).to("ocl"), torch.randint(3, (4,)).to("ocl")

    def steps(count: int) -> None:
        for _ in range(count):
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        torch.ocl.synchronize()

    steps(100)
    before, reserved = resident_kib(), torch.ocl.memory_reserved()
    steps(STEPS)
    assert torch.ocl.memory_reserved() == reserved
    assert resident_kib() - before < 1024
