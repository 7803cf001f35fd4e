"""docs/guides/pytorch.md: its blocks are one program, which runs as it stands."""

from __future__ import annotations

import re

import pytest
from conftest import ROOT

GUIDE = ROOT / "docs" / "guides" / "pytorch.md"


def test_what_the_guide_shows_runs(tmp_path, monkeypatch: pytest.MonkeyPatch, fresh_torch: None) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 3
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(GUIDE), "exec"), names)
    assert (tmp_path / "plan.bin").stat().st_size > 0
    assert names["found"].shape == (7, 10)
