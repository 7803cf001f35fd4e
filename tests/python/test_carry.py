"""Outputs that feed inputs: many consecutive runs."""

from __future__ import annotations

import numpy as np
import oclc
import pytest
from onnx import TensorProto, helper


def cell() -> bytes:
    """y = x + h, h_next = x + 0.5 h for x and h of [1, 3]."""
    value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 3])  # noqa: E731
    nodes = [
        helper.make_node("Constant", [], ["half"], value_float=0.5),
        helper.make_node("Mul", ["h", "half"], ["kept"]),
        helper.make_node("Add", ["x", "kept"], ["h_next"]),
        helper.make_node("Add", ["x", "h"], ["y"]),
    ]
    graph = helper.make_graph(nodes, "cell", [value("x"), value("h")], [value("y"), value("h_next")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


def expected(x: np.ndarray, h: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    out = []
    for step in x:
        out.append(step + h)
        h = step + np.float32(0.5) * h
    return np.array(out), h


def test_steps_go_on_from_the_state_of_the_one_before() -> None:
    session = oclc.compile(cell(), device="cpu", carry={"h_next": "h"}).session("cpu")
    x = np.random.default_rng(1).standard_normal((40, 1, 3)).astype(np.float32)
    wanted, state = expected(x, np.zeros((1, 3), np.float32))
    found = session.run_steps(40, {"x": x}, outputs=["y"])
    assert list(found) == ["y"]
    np.testing.assert_allclose(found["y"], wanted, rtol=1e-6)
    np.testing.assert_allclose(session.state["h"], state, rtol=1e-6)

    session.state["h"] = np.ones((1, 3), np.float32)
    found = session.run_steps(5, {"x": x[0]})  # the same in all steps
    wanted, state = expected(np.repeat(x[:1], 5, axis=0), np.ones((1, 3), np.float32))
    np.testing.assert_allclose(found["y"], wanted, rtol=1e-6)
    np.testing.assert_allclose(found["h_next"][-1], state, rtol=1e-6)
    session.state.reset()
    assert not session.state["h"].any()


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(oclc.CompileError, match="wanted an input 'g' of the model for --carry h_next=g"):
        oclc.compile(cell(), device="cpu", carry={"h_next": "g"})
    session = oclc.compile(cell(), device="cpu", carry={"h_next": "h,state"}).session("cpu")
    x = np.zeros((3, 1, 3), np.float32)
    with pytest.raises(oclc.Error, match="wanted 4 steps of shape"):
        session.run_steps(4, {"x": x})
    with pytest.raises(TypeError, match="has no output h_next; it has: y"):
        session.run_steps(3, {"x": x}, outputs=["h_next"])
    with pytest.raises(oclc.Error, match="wanted float32, found float64"):
        session.run_steps(3, {"x": x.astype(np.float64)})
