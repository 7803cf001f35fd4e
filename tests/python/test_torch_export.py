"""Files of torch.export.save, read without torch."""

from __future__ import annotations

import pathlib
import zipfile
from typing import Any

import numpy as np
import oclc
import pytest

torch = pytest.importorskip("torch")

from test_torch_compile import Convolutions, Transformer  # noqa: E402
from torch import nn  # noqa: E402


def saved(model: nn.Module, example: tuple[Any, ...], path: pathlib.Path, **keywords: Any) -> pathlib.Path:
    torch.export.save(torch.export.export(model, example, **keywords), path)
    return path


def test_a_model_equals_torch_for_every_batch(tmp_path: pathlib.Path) -> None:
    torch.manual_seed(1)
    model = Convolutions().eval()
    batch = torch.export.Dim("N", max=64)
    path = saved(model, (torch.randn(2, 3, 16, 16),), tmp_path / "m.pt2", dynamic_shapes=({0: batch},))
    plan = oclc.compile(path, device="cpu")
    assert len(plan.symbols) == 1 and list(plan.symbols.values())[0] == (1, 64)
    session = plan.session("cpu")
    for n in (1, 2, 7):
        x = torch.randn(n, 3, 16, 16)
        np.testing.assert_allclose(session(x), model(x).detach().numpy(), rtol=1e-4, atol=1e-5)


def test_composite_and_decomposed_programs_give_the_same(tmp_path: pathlib.Path) -> None:
    torch.manual_seed(1)
    model = Transformer().eval()
    tokens = torch.randint(50, (2, 10))
    whole = torch.export.export(model, (tokens,))
    torch.export.save(whole, tmp_path / "whole.pt2")
    torch.export.save(whole.run_decompositions(), tmp_path / "core.pt2")
    expected = model(tokens).detach().numpy()
    for name in ("whole", "core"):
        session = oclc.compile(tmp_path / f"{name}.pt2", device="cpu").session("cpu")
        np.testing.assert_allclose(session(tokens), expected, rtol=1e-4, atol=1e-5)


def test_reports_speak_of_the_models_modules(tmp_path: pathlib.Path) -> None:
    path = saved(Convolutions().eval(), (torch.randn(2, 3, 16, 16),), tmp_path / "m.pt2")
    rows = oclc.compile(path, target="cpu", report=True).report()
    assert any(row.node.startswith("body.0") for row in rows) and any(row.node.startswith("head") for row in rows)


def test_a_saved_model_trains_as_torch_does(tmp_path: pathlib.Path) -> None:
    torch.manual_seed(1)
    model = Convolutions().train()
    x, labels = torch.randn(4, 3, 16, 16), torch.randint(5, (4,))
    path = saved(model, (x,), tmp_path / "m.pt2")
    plan = oclc.compile(path, device="cpu", train=oclc.Train("cross_entropy", "sgd", lr=0.05))
    trainer = plan.session("cpu").trainer()
    for _ in range(5):
        trainer.step(x=x, labels=labels)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    expected = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), labels)
        loss.backward()
        optimizer.step()
        expected.append(loss.item())
    np.testing.assert_allclose(trainer.losses(), expected, rtol=1e-3, atol=1e-4)


def test_missing_operators_are_listed_with_their_modules(tmp_path: pathlib.Path) -> None:
    class Odd(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.linalg.inv(x) + torch.linalg.cholesky(x)

    path = saved(nn.Sequential(Odd()), (torch.eye(3),), tmp_path / "m.pt2")
    with pytest.raises(oclc.CompileError, match="run_decompositions") as caught:
        oclc.compile(path, target="cpu")
    assert "linalg_inv" in str(caught.value) and "linalg_cholesky" in str(caught.value)


def test_another_zip_is_refused(tmp_path: pathlib.Path) -> None:
    torch.save({"a": 1}, tmp_path / "m.pt2")
    with pytest.raises(oclc.CompileError, match="export the model with torch.export"):
        oclc.compile(tmp_path / "m.pt2", target="cpu")


def test_a_compressed_or_cut_file_is_refused(tmp_path: pathlib.Path) -> None:
    path = saved(nn.Linear(2, 2), (torch.randn(1, 2),), tmp_path / "m.pt2")
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(tmp_path / "packed.pt2", "w", zipfile.ZIP_DEFLATED) as packed:
        for name in source.namelist():
            packed.writestr(name, source.read(name))
    with pytest.raises(oclc.CompileError, match="without compression"):
        oclc.compile(tmp_path / "packed.pt2", target="cpu")
    (tmp_path / "cut.pt2").write_bytes(path.read_bytes()[:-100])
    with pytest.raises(oclc.CompileError):
        oclc.compile(tmp_path / "cut.pt2", target="cpu")


def test_a_newer_schema_is_refused(tmp_path: pathlib.Path) -> None:
    path = saved(nn.Linear(2, 2), (torch.randn(1, 2),), tmp_path / "m.pt2")
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(tmp_path / "new.pt2", "w", zipfile.ZIP_STORED) as new:
        for name in source.namelist():
            data = source.read(name)
            if name.endswith("models/model.json"):
                data = data.replace(b'"major": 8', b'"major": 9')
            new.writestr(name, data)
    with pytest.raises(oclc.CompileError, match="schema 8"):
        oclc.compile(tmp_path / "new.pt2", target="cpu")


def test_dims_bind_symbols_and_name_those_there_are(tmp_path: pathlib.Path) -> None:
    path = saved(
        nn.Linear(2, 2), (torch.randn(3, 2),), tmp_path / "m.pt2", dynamic_shapes=({0: torch.export.Dim("N", max=8)},)
    )
    symbol = next(iter(oclc.compile(path, target="cpu").symbols))
    assert oclc.compile(path, target="cpu", dims={symbol: 4}).entries["predict"].inputs["input"].shape == (4, 2)
    with pytest.raises(oclc.CompileError, match=symbol):
        oclc.compile(path, target="cpu", dims={"M": 4})
    with pytest.raises(oclc.CompileError, match="from 1 to 8"):
        oclc.compile(path, target="cpu", dims={symbol: 9})
