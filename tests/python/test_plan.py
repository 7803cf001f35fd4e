"""Compiling, plans and what they say about themselves."""

from __future__ import annotations

import pathlib
import pickle
import warnings

import numpy as np
import oclc
import pytest
from conftest import DIGITS, ROOT


def test_a_plan_names_its_entries_inputs_and_symbols(digits: oclc.Plan) -> None:
    entry = digits.entries["predict"]
    assert entry.inputs == {"image": oclc.Tensor("float32", ("N", 1, 8, 8))}
    assert entry.outputs == {"logits": oclc.Tensor("float32", ("N", 10))}
    assert entry.launches > 0
    assert digits.symbols["N"][0] == 0
    assert digits.memory(N=3)["input_bytes"] == 3 * 64 * 4


def test_dims_become_numbers(images: np.ndarray) -> None:
    plan = oclc.compile(DIGITS / "model.onnx", dims={"N": 4}, device="cpu")
    assert plan.entries["predict"].inputs["image"].shape == (4, 1, 8, 8)
    assert plan.symbols == {}


def test_bytes_and_a_path_give_the_same_plan() -> None:
    by_path = oclc.compile(str(DIGITS / "model.onnx"), target="cpu")
    by_bytes = oclc.compile((DIGITS / "model.onnx").read_bytes(), target="cpu")
    assert bytes(by_path) == bytes(by_bytes)


def test_a_plan_survives_save_and_load(digits: oclc.Plan, images: np.ndarray, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "digits.bin"
    digits.save(path)
    loaded = oclc.load(path)
    assert loaded.entries == digits.entries
    assert bytes(loaded) == bytes(digits) == path.read_bytes()
    expected = digits.session("cpu")(images[:5])
    np.testing.assert_array_equal(loaded.session("cpu")(images[:5]), expected)
    np.testing.assert_array_equal(oclc.load(bytes(digits)).session("cpu")(images[:5]), expected)


def test_sources_are_opencl(digits: oclc.Plan) -> None:
    sources = digits.sources()
    assert sources and all("kernel void" in source for source in sources.values())


def test_the_report_has_a_row_a_node(digits: oclc.Plan) -> None:
    rows = digits.report()
    assert {"conv"} <= {op for row in rows for op in row.operators.split(", ")}
    assert all(row.fate for row in rows)


def test_without_report_there_is_none(tmp_path: pathlib.Path) -> None:
    plan = oclc.compile(DIGITS / "model.onnx", target="cpu")
    with pytest.raises(ValueError, match="compile with report=True"):
        plan.report()


def test_info_is_what_the_program_prints(digits: oclc.Plan) -> None:
    info = digits.info(N=2)
    assert [entry["name"] for entry in info["entries"]] == ["predict"]


def test_stages_are_told_in_order() -> None:
    stages: list[str] = []
    oclc.compile(DIGITS / "model.onnx", target="cpu", progress=stages.append)
    assert stages == ["device", "graph", "passes", "kernels", "schedule", "codegen", "plan", "write"]


def test_an_exception_in_progress_ends_the_compilation() -> None:
    def refuse(stage: str) -> None:
        raise KeyboardInterrupt(stage)

    with pytest.raises(KeyboardInterrupt, match="device"):
        oclc.compile(DIGITS / "model.onnx", target="cpu", progress=refuse)


def test_a_file_that_is_no_model_names_the_file_and_the_stage(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "wrong.onnx"
    path.write_text("hello")
    with pytest.raises(oclc.CompileError) as caught:
        oclc.compile(path, target="cpu")
    assert caught.value.stage == "import"
    assert caught.value.wanted and caught.value.causes


def test_a_missing_file_is_an_error_of_the_system(tmp_path: pathlib.Path) -> None:
    with pytest.raises((oclc.CompileError, oclc.Error), match="No such file"):
        oclc.compile(tmp_path / "none.onnx", target="cpu")


def test_an_unknown_target_lists_the_known_ones() -> None:
    with pytest.raises(oclc.CompileError, match="cpu"):
        oclc.compile(DIGITS / "model.onnx", target="abacus")


def test_an_unknown_pass_is_refused() -> None:
    with pytest.raises(oclc.CompileError, match="no_such_pass"):
        oclc.compile(DIGITS / "model.onnx", target="cpu", disable=["no_such_pass"])


def test_a_model_of_another_kind_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="wanted a path, the bytes of an ONNX model"):
        oclc.compile(3.5)


def test_a_damaged_plan_says_so(digits: oclc.Plan) -> None:
    damaged = bytearray(bytes(digits))
    damaged[len(damaged) // 2] ^= 0xFF
    with pytest.raises(oclc.Error) as caught:
        oclc.load(bytes(damaged))
    assert caught.value.status == "OCLC_E_PLAN"


def test_an_entry_that_is_not_there_names_those_that_are(digits: oclc.Plan) -> None:
    with pytest.raises(KeyError, match="predict"):
        digits.memory("train_step", N=1)


def test_errors_survive_pickling() -> None:
    error = oclc.Error("text", "OCLC_E_PLAN", -5)
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.status, copy.cl_code) == ("text", "OCLC_E_PLAN", -5)
    with pytest.raises(oclc.CompileError) as caught:
        oclc.compile(DIGITS / "model.onnx", target="abacus")
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_compiling_gives_no_warnings_of_its_own() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        oclc.compile(DIGITS / "model.onnx", target="cpu")


def test_operators_of_a_file_are_read() -> None:
    folder = ROOT / "examples" / "custom_op"
    with pytest.raises(oclc.CompileError, match="SwooshL"):
        oclc.compile(folder / "model.onnx", target="cpu")
    plan = oclc.compile(folder / "model.onnx", target="cpu", ops=[folder / "swoosh.cl"])
    assert plan.entries["predict"].launches == 1
