"""The tests of PyTorch's own example of a device, OpenReg, under the name `ocl`.

    python tests/torch_device/openreg.py FOLDER [--only PATTERN] [--out FILE]

FOLDER holds the test_*.py of test/cpp_extensions/open_registration_extension/torch_openreg/tests of PyTorch's repository, which are
not part of this one. They run on copies in which the names of OpenReg are this device's, in a process for each file, on two devices where
PoCL can make them; those of torch.distributed are left out. Prints how many pass, and of each other one the last line of its error.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator

NAMES = {"torch_openreg": "oclc_torch", "openreg": "ocl", "OpenReg": "ocl", "OPENREG": "OCL"}
LEFT_OUT = {"test_distributed.py"}
ENVIRONMENT = {"OCLC_DEVICE": "0", "TORCH_OCL_PROFILE": "1", "COLUMNS": "1000"}


def renamed(text: str) -> str:
    for theirs, ours in NAMES.items():
        text = text.replace(theirs, ours)
    return text


def two_devices() -> dict[str, str]:
    """What PoCL takes for two devices: before 4.0 their name is another."""
    for names in ("cpu cpu", "pthread pthread"):
        environment = {**os.environ, "POCL_DEVICES": names}
        count = subprocess.run([sys.executable, "-c", "import oclc; print(len(oclc.devices()))"], capture_output=True, text=True, env=environment)
        if count.stdout.strip() == "2":
            return {"POCL_DEVICES": names}
    return {}


def outcomes(file: pathlib.Path, only: str, devices: dict[str, str]) -> Iterator[tuple[str, str, str]]:
    """Of each test its name, kind and reason."""
    command = [sys.executable, "-m", "pytest", "-q", "-rA", "--tb=line", "-p", "no:cacheprovider", "-p", "oclc_torch", str(file), *(["-k", only] if only else [])]
    environment = {**ENVIRONMENT, **devices, **os.environ}
    ran = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=file.parent)
    found = False
    for line in ran.stdout.splitlines():
        row = re.match(r"(PASSED|FAILED|SKIPPED|ERROR)\s+(?:\[\d+\]\s+)?(\S+[.]py\S*)(?:\s+-\s+|:\s*)?(.*)", line)
        if row:
            found = True
            yield row[2].rpartition("/")[2], row[1].lower(), row[3]
    if not found or ran.returncode not in (0, 1, 5):
        yield file.name, "ended", f"status {ran.returncode}: {(ran.stdout + ran.stderr)[-300:]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", default="", help="pytest's -k")
    parser.add_argument("--out", type=pathlib.Path, help="file of the outcomes, a line for each test")
    given = parser.parse_args()
    counts: Counter[str] = Counter()
    lines = []
    devices = two_devices()
    with tempfile.TemporaryDirectory() as place:
        for theirs in sorted(given.folder.glob("test_*.py")):
            if theirs.name in LEFT_OUT:
                continue
            ours = pathlib.Path(place) / theirs.name
            ours.write_text(renamed(theirs.read_text()))
            for name, kind, reason in outcomes(ours, given.only, devices):
                counts[kind] += 1
                lines.append(f"{kind} {name} {reason}".rstrip())
                if kind != "passed":
                    print(lines[-1], flush=True)
    if given.out:
        given.out.write_text("\n".join(lines) + "\n")
    print(", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())))


if __name__ == "__main__":
    main()
