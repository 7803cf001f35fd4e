"""Runs: what goes in and out, without copies, and what is refused."""

from __future__ import annotations

import multiprocessing
import pathlib
import threading
import time

import numpy as np
import oclc
import pytest
from conftest import DIGITS


def test_a_run_equals_the_reference(session: oclc.Session, images: np.ndarray, logits: np.ndarray) -> None:
    np.testing.assert_allclose(session(images), logits, rtol=2e-5, atol=2e-5)


def test_the_batch_may_change_from_run_to_run(session: oclc.Session, images: np.ndarray, logits: np.ndarray) -> None:
    for n in (1, 7, 360, 2):
        np.testing.assert_allclose(session(images[:n]), logits[:n], rtol=2e-5, atol=2e-5)


def test_inputs_go_by_place_and_by_name(session: oclc.Session, images: np.ndarray) -> None:
    by_place = session(images[:2])
    np.testing.assert_array_equal(session(image=images[:2]), by_place)
    np.testing.assert_array_equal(session.run({"image": images[:2]})["logits"], by_place)


def test_new_outputs_are_aligned_and_own_their_memory(session: oclc.Session, images: np.ndarray) -> None:
    y = session(images[:3])
    assert y.dtype == np.float32 and y.shape == (3, 10) and y.flags.writeable
    assert y.ctypes.data % 4096 == 0
    kept = y.copy()
    session(images[3:6])
    np.testing.assert_array_equal(y, kept)


def test_out_is_written_in_place(session: oclc.Session, images: np.ndarray) -> None:
    expected = session(images[:4])
    buffer = np.full((4, 10), np.nan, np.float32)
    result = session.run({"image": images[:4]}, out={"logits": buffer})["logits"]
    assert result is buffer
    np.testing.assert_array_equal(buffer, expected)


def test_a_strided_input_is_copied_once_and_counted(session: oclc.Session, images: np.ndarray) -> None:
    expected = session(np.ascontiguousarray(images[::2]))
    before = session.stats()["copies"]
    np.testing.assert_array_equal(session(images[::2]), expected)
    assert session.stats()["copies"] == before + 1
    session(images)
    assert session.stats()["copies"] == before + 1


def test_a_read_only_array_is_read(session: oclc.Session, images: np.ndarray) -> None:
    fixed = images[:2].copy()
    fixed.flags.writeable = False
    np.testing.assert_array_equal(session(fixed), session(images[:2]))


def test_a_memoryview_is_read(session: oclc.Session, images: np.ndarray) -> None:
    np.testing.assert_array_equal(session(memoryview(images[:2].copy())), session(images[:2]))


def test_enqueued_runs_give_their_results_after_wait(session: oclc.Session, images: np.ndarray) -> None:
    expected = session(images)
    with session.enqueue({"image": images}) as running:
        pass
    assert running.done()
    np.testing.assert_array_equal(running.outputs["logits"], expected)
    np.testing.assert_array_equal(session.enqueue({"image": images}).wait()["logits"], expected)


def test_float64_is_not_converted(session: oclc.Session, images: np.ndarray) -> None:
    with pytest.raises(oclc.Error, match="wanted float32, found float64") as caught:
        session(images[:1].astype(np.float64))
    assert caught.value.status == "OCLC_E_BINDING"


def test_a_wrong_shape_names_both(session: oclc.Session) -> None:
    with pytest.raises(oclc.Error, match=r"\[N, 1, 8, 8\].*\[1, 1, 8, 9\]"):
        session(np.zeros((1, 1, 8, 9), np.float32))


def test_a_batch_of_none_gives_no_results(session: oclc.Session) -> None:
    assert session(np.zeros((0, 1, 8, 8), np.float32)).shape == (0, 10)


def test_a_size_of_zero_is_refused_where_the_plan_has_another() -> None:
    session = oclc.compile(DIGITS / "model.onnx", device="cpu", dims={"N": 4}).session("cpu")
    with pytest.raises(oclc.Error, match=r"wanted shape \[4, 1, 8, 8\], found \[0, 1, 8, 8\]"):
        session(np.zeros((0, 1, 8, 8), np.float32))


def test_no_array_is_a_type_error(session: oclc.Session) -> None:
    with pytest.raises(TypeError, match="wanted an array"):
        session(object())


def test_complex_elements_are_a_type_error(session: oclc.Session) -> None:
    with pytest.raises(TypeError, match="wanted elements of float32"):
        session(np.zeros((1, 1, 8, 8), np.complex64))


def test_a_missing_and_an_unknown_input_are_named(session: oclc.Session, images: np.ndarray) -> None:
    with pytest.raises(TypeError, match="no value for input image"):
        session()
    with pytest.raises(TypeError, match="has no input picture; it has: image"):
        session(images[:1], picture=images[:1])
    with pytest.raises(TypeError, match="by place and by name"):
        session(images[:1], image=images[:1])


def test_out_that_cannot_be_written_is_refused(session: oclc.Session, images: np.ndarray) -> None:
    fixed = np.zeros((1, 10), np.float32)
    fixed.flags.writeable = False
    with pytest.raises(TypeError, match="wanted a writable array"):
        session.run({"image": images[:1]}, out={"logits": fixed})
    with pytest.raises(ValueError, match="wanted a contiguous array"):
        session.run({"image": images[:2]}, out={"logits": np.zeros((4, 10), np.float32)[::2]})
    with pytest.raises(oclc.Error, match="wanted shape"):
        session.run({"image": images[:2]}, out={"logits": np.zeros((2, 9), np.float32)})


def test_a_failed_call_leaves_the_session_usable(session: oclc.Session, images: np.ndarray) -> None:
    expected = session(images[:1])
    with pytest.raises(oclc.Error):
        session(images[:1].astype(np.float64))
    np.testing.assert_array_equal(session(images[:1]), expected)


def test_a_device_that_is_not_there_lists_those_that_are(digits: oclc.Plan) -> None:
    with pytest.raises(oclc.Error, match="fits no device"):
        digits.session("no such device")


def test_devices_are_listed() -> None:
    found = oclc.devices()
    assert any(device.kind == "cpu" for device in found)
    assert [device.index for device in found] == list(range(len(found)))


def test_sessions_share_a_context_of_the_caller(digits: oclc.Plan, images: np.ndarray) -> None:
    context = oclc.Context("cpu")
    first, second = digits.session(context), digits.session(context)
    np.testing.assert_array_equal(first(images[:2]), second(images[:2]))
    assert context.cl_context and context.cl_queue


def test_a_context_on_the_callers_objects(digits: oclc.Plan, images: np.ndarray) -> None:
    owner = oclc.Context("cpu")
    borrowed = digits.session((owner.cl_context, owner.cl_queue))
    np.testing.assert_array_equal(borrowed(images[:2]), digits.session("cpu")(images[:2]))


def test_profiles_time_each_launch(session: oclc.Session, images: np.ndarray) -> None:
    session.profile(True)
    session(images[:8])
    launches = session.launches()
    assert launches and all(launch.ns > 0 for launch in launches)
    assert any("conv" in launch.nodes.lower() or launch.flops > 0 for launch in launches)


def test_two_threads_in_one_session_are_refused(session: oclc.Session, images: np.ndarray) -> None:
    """One of the threads that overlap gets the error, and the other its result."""
    batch = np.repeat(images, 8, axis=0)
    errors: list[Exception] = []
    stop = time.monotonic() + 20

    def work() -> None:
        while time.monotonic() < stop and not errors:
            try:
                session(batch)
            except oclc.Error as error:
                errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors and "in use on another thread" in str(errors[0])
    session(images[:1])


def test_runs_release_the_gil(digits: oclc.Plan, images: np.ndarray) -> None:
    """Another thread counts while a run goes on."""
    session = digits.session("cpu")
    batch = np.repeat(images, 16, axis=0)
    session(batch)
    counted = 0
    stop = threading.Event()

    def count() -> None:
        nonlocal counted
        while not stop.is_set():
            counted += 1
            time.sleep(0)

    thread = threading.Thread(target=count)
    thread.start()
    session(batch)
    stop.set()
    thread.join()
    assert counted > 10


def _in_child(session: oclc.Session, images: np.ndarray, queue: multiprocessing.Queue) -> None:  # type: ignore[type-arg]
    try:
        session(images)
        queue.put("no error")
    except oclc.ForkError as error:
        queue.put(str(error))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_session_after_fork_is_refused(session: oclc.Session, images: np.ndarray) -> None:
    session(images[:1])
    fork = multiprocessing.get_context("fork")
    queue = fork.Queue()
    process = fork.Process(target=_in_child, args=(session, images[:1], queue))
    process.start()
    message = queue.get(timeout=60)
    process.join(60)
    assert "forked" in message and "spawn" in message
    assert process.exitcode == 0
    session(images[:1])


def test_many_runs_do_not_grow_the_process(session: oclc.Session, images: np.ndarray) -> None:
    def resident_kib() -> int:
        for line in pathlib.Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
        raise AssertionError("no VmRSS")

    for _ in range(500):
        session(images[:1])
    before = resident_kib()
    for _ in range(3000):
        session(images[:1])
    assert resident_kib() - before < 1024
