"""The package as it is installed."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import oclc
from conftest import DIGITS
from oclc import _core

FOLDER = pathlib.Path(_core.__file__).parent


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True, timeout=300, check=False
    )


def test_the_installed_package_is_tested() -> None:
    assert "site-packages" in str(FOLDER)


def test_the_module_is_of_the_stable_abi_where_there_is_one() -> None:
    if sys.version_info >= (3, 12):
        assert pathlib.Path(_core.__file__).name == "_core.abi3.so"
    else:
        assert ".cpython-311" in pathlib.Path(_core.__file__).name


def test_neither_libopencl_nor_foreign_names_of_libraries_are_linked() -> None:
    for library in FOLDER.glob("*.so*"):
        needed = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout
        names = [line.split("[")[1].rstrip("]") for line in needed.splitlines() if "(NEEDED)" in line]
        system = ("libstdc++", "libgcc_s", "libc.so", "libm.so", "ld-linux", "libz.so", "libpthread", "libdl")
        for name in names:
            assert name.startswith(system) or (FOLDER / name).exists(), (library.name, name)


def test_the_module_shows_no_symbols_of_what_it_carries() -> None:
    table = subprocess.run(["nm", "-D", "--defined-only", _core.__file__], capture_output=True, text=True, check=True).stdout
    shown = [line.split()[-1] for line in table.splitlines()]
    assert "PyInit__core" in shown
    assert not [name for name in shown if "protobuf" in name or "sqlite3" in name or "fmt" in name]


def test_import_and_compilation_need_no_opencl() -> None:
    code = f"import oclc; print(oclc.compile({str(DIGITS / 'model.onnx')!r}, target='cpu').entries['predict'].name)"
    found = python(code, OCLC_OPENCL="/nowhere/libOpenCL.so.1")
    assert found.stdout.strip() == "predict", found.stderr


def test_without_a_loader_the_first_call_of_a_device_says_what_to_do() -> None:
    found = python(
        "import oclc\ntry:\n  oclc.devices()\nexcept oclc.Error as e:\n  print(e.status, e)", OCLC_OPENCL="/nowhere/libOpenCL.so.1"
    )
    assert "OCLC_E_DEVICE the OpenCL library that OCLC_OPENCL names cannot be loaded" in found.stdout, found.stderr


def test_importing_the_package_imports_no_torch() -> None:
    found = python("import sys, oclc; print('torch' in sys.modules)")
    assert found.stdout.strip() == "False", found.stderr


def test_the_version_is_the_librarys() -> None:
    assert oclc.__version__ == _core.version()
