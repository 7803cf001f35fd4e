"""Builds oclc_torch._C against the torch that is installed: pip install --no-build-isolation ./frontends/torch_device

The extension calls liboclc_runtime.so of the installed package oclc. It is built for the torch that it finds, and loads with
that minor release alone.
"""

import glob
import importlib.util
import os
import pathlib

import torch
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension

here = pathlib.Path(__file__).resolve().parent
root = here.parents[1]
package = importlib.util.find_spec("oclc")
if package is None or package.origin is None:
    raise SystemExit("oclc-torch: the package oclc is not installed; install it first, and build with --no-build-isolation")
runtime = glob.glob(str(pathlib.Path(package.origin).parent / "liboclc_runtime.so*"))
if not runtime:
    raise SystemExit(f"oclc-torch: wanted liboclc_runtime.so beside {package.origin}, found none; install oclc again")

(here / "oclc_torch" / "_built_for.py").write_text(f'"""Written by setup.py."""\n\nTORCH = "{torch.__version__}"\n')
extension = CppExtension(
    "oclc_torch._C",
    sorted(os.path.relpath(path, here) for path in glob.glob(str(here / "csrc" / "*.cpp"))),
    include_dirs=[str(here / "csrc"), str(root), str(root / "runtime" / "include")],
    extra_compile_args=[
        "-std=c++20", "-O2", "-g0", "-fvisibility=hidden", "-DCL_TARGET_OPENCL_VERSION=300",
        "-DCL_USE_DEPRECATED_OPENCL_1_2_APIS",
    ],
    extra_link_args=[runtime[0], "-Wl,-rpath,$ORIGIN/../oclc"],
)
setup(ext_modules=[extension], cmdclass={"build_ext": BuildExtension})
