"""The examples that run on the device print what their READMEs say."""

from __future__ import annotations

import re
import subprocess
import sys

from conftest import ROOT


def test_digits_are_learnt():
    script = ROOT / "examples/digits/train_on_device.py"
    run = subprocess.run([sys.executable, script, "--epochs", "4"], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    right = re.search(r"(\d+) of 360 test images are right", run.stdout)
    assert right and int(right[1]) >= 342, run.stdout
    assert "on the CPU ran: nothing" in run.stdout
