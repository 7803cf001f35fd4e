"""Training: trainers, state, checkpoints."""

from __future__ import annotations

import pathlib

import numpy as np
import oclc
import pytest
from conftest import DIGITS


@pytest.fixture(scope="module")
def plan() -> oclc.Plan:
    return oclc.compile(
        DIGITS / "model.onnx", device="cpu", train=oclc.Train("cross_entropy", "adamw", lr=1e-3, numbers={"weight_decay": 0.01})
    )


@pytest.fixture(scope="module")
def batch() -> tuple[np.ndarray, np.ndarray]:
    images = np.load(DIGITS / "train_images.npy")[:64].astype(np.float32) / 16
    return images, np.load(DIGITS / "train_labels.npy")[:64].astype(np.int64)


def test_a_training_plan_has_its_entries_and_state(plan: oclc.Plan) -> None:
    assert {"predict", "train_step", "eval_step"} <= set(plan.entries)
    assert plan.entries["train_step"].inputs["labels"].limit == 10
    assert "lr" in plan.variables and "linear4.weight" in plan.variables


def test_losses_come_back_and_go_down(plan: oclc.Plan, batch: tuple[np.ndarray, np.ndarray]) -> None:
    session = plan.session("cpu")
    trainer = session.trainer()
    for _ in range(12):
        trainer.step(image=batch[0], labels=batch[1])
    losses = trainer.losses()
    assert len(losses) == 12 and losses[-1] < losses[0]
    assert session.stats()["train_steps"] == 12


def test_hyper_parameters_are_state(plan: oclc.Plan, batch: tuple[np.ndarray, np.ndarray]) -> None:
    session = plan.session("cpu")
    assert session.state["lr"] == pytest.approx(1e-3)
    session.state["lr"] = 0.0
    before = session.state["linear4.weight"]
    trainer = session.trainer()
    trainer.step(image=batch[0], labels=batch[1])
    trainer.losses()
    np.testing.assert_array_equal(session.state["linear4.weight"], before)
    trainer.set(lr=0.01)
    trainer.step()
    trainer.losses()
    assert np.any(session.state["linear4.weight"] != before)


def test_a_checkpoint_goes_on_with_the_same_bits(
    plan: oclc.Plan, batch: tuple[np.ndarray, np.ndarray], tmp_path: pathlib.Path
) -> None:
    def steps(session: oclc.Session, count: int) -> list[float]:
        trainer = session.trainer()
        for _ in range(count):
            trainer.step(image=batch[0], labels=batch[1])
        return trainer.losses()

    whole = steps(plan.session("cpu"), 6)
    first = plan.session("cpu")
    begun = steps(first, 3)
    first.save(tmp_path / "c.state")
    second = plan.session("cpu")
    second.load(tmp_path / "c.state")
    assert begun + steps(second, 3) == whole


def test_reset_gives_the_initial_values_again(plan: oclc.Plan, batch: tuple[np.ndarray, np.ndarray]) -> None:
    session = plan.session("cpu")
    before = session.state["linear4.weight"]
    trainer = session.trainer()
    trainer.step(image=batch[0], labels=batch[1])
    trainer.losses()
    session.state.reset()
    np.testing.assert_array_equal(session.state["linear4.weight"], before)


def test_state_of_another_shape_or_name_is_refused(plan: oclc.Plan) -> None:
    session = plan.session("cpu")
    with pytest.raises(oclc.Error, match="state 'linear4.weight'"):
        session.state["linear4.weight"] = np.zeros(3, np.float32)
    with pytest.raises(KeyError, match="no state 'weights'"):
        session.state["weights"] = np.zeros(3, np.float32)
    with pytest.raises(KeyError, match="no state 'weights'"):
        session.state["weights"]


def test_a_file_that_is_no_checkpoint_changes_nothing(plan: oclc.Plan, tmp_path: pathlib.Path) -> None:
    session = plan.session("cpu")
    before = session.state["linear4.weight"]
    (tmp_path / "wrong").write_text("no checkpoint")
    with pytest.raises(oclc.Error) as caught:
        session.load(tmp_path / "wrong")
    assert caught.value.status == "OCLC_E_PLAN"
    np.testing.assert_array_equal(session.state["linear4.weight"], before)


def test_a_step_without_its_inputs_names_them(plan: oclc.Plan, batch: tuple[np.ndarray, np.ndarray]) -> None:
    trainer = plan.session("cpu").trainer()
    with pytest.raises(oclc.Error, match="labels"):
        trainer.step(image=batch[0])
    with pytest.raises(TypeError, match="has no input 'picture'"):
        trainer.step(picture=batch[0])


def test_unknown_losses_and_optimizers_are_refused() -> None:
    with pytest.raises(oclc.CompileError, match="cross_entropy"):
        oclc.compile(DIGITS / "model.onnx", target="cpu", train=oclc.Train("perplexity"))
    with pytest.raises(oclc.CompileError, match="adamw"):
        oclc.compile(DIGITS / "model.onnx", target="cpu", train=oclc.Train("cross_entropy", "newton"))
