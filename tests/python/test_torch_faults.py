"""Bad inputs and long runs through torch.compile and TrainStep: what is said, and that the process does not grow."""

from __future__ import annotations

import multiprocessing
import os
import pathlib
import threading
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import oclc  # noqa: E402
import oclc.torch as oclc_torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402


pytestmark = pytest.mark.usefixtures("fresh_torch")


def compiled(function: Callable[..., Any]) -> Any:
    return torch.compile(function, backend="oclc", fullgraph=True, options={"device": "cpu"})


def train_step(model: nn.Module, dynamic: str | None = None) -> oclc_torch.TrainStep:
    example = (torch.randn(4, 8), torch.randint(3, (4,)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return oclc_torch.TrainStep(model, loss=F.cross_entropy, optimizer=optimizer, example=example, dynamic=dynamic, device="cpu")


def resident_kib() -> int:
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise AssertionError("no VmRSS")


STEPS = 10 if os.environ.get("OCLC_TEST_ALL") == "1" else 1  # hundreds of steps


def test_training_steps_do_not_grow_the_process() -> None:
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 3))
    step = compiled(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, labels = torch.randn(4, 8), torch.randint(3, (4,))

    def steps(count: int) -> None:
        for _ in range(count):
            optimizer.zero_grad()
            F.cross_entropy(step(x), labels).backward()
            optimizer.step()

    steps(100)
    before = resident_kib()
    steps(STEPS * 100)
    assert resident_kib() - before < 1024


def test_steps_of_one_plan_do_not_grow_the_process() -> None:
    step = train_step(nn.Linear(8, 3))
    x, labels = torch.randn(4, 8), torch.randint(3, (4,))

    def steps(count: int) -> None:
        for _ in range(count // 10):
            for _ in range(10):
                step(x, labels)
            assert len(step.losses()) == 10

    steps(100)
    before = resident_kib()
    steps(STEPS * 100)
    assert resident_kib() - before < 1024


def test_two_threads_take_turns_in_one_plan() -> None:
    step = compiled(lambda x: torch.tanh(x @ x) + 1)
    inputs = [torch.randn(64, 64) for _ in range(2)]
    expected = [torch.tanh(x @ x) + 1 for x in inputs]
    step(inputs[0])
    wrong: list[str] = []

    def work(at: int) -> None:
        try:
            for _ in range(50):
                torch.testing.assert_close(step(inputs[at]), expected[at], rtol=1e-4, atol=1e-4)
        except Exception as error:
            wrong.append(str(error))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def _in_child(step: Callable[..., Any], x: torch.Tensor, queue: Any) -> None:
    try:
        step(x)
        queue.put("no error")
    except oclc.ForkError as error:
        queue.put(str(error))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_is_told_what_to_do() -> None:
    step = compiled(lambda x: x * 2 + 1)
    x = torch.ones(4)
    step(x)
    fork = multiprocessing.get_context("fork")
    queue = fork.Queue()
    process = fork.Process(target=_in_child, args=(step, x, queue))
    process.start()
    message = queue.get(timeout=60)
    process.join(60)
    assert "forked" in message and "spawn" in message
    torch.testing.assert_close(step(x), torch.full((4,), 3.0))


def test_tensors_of_another_device_are_refused_by_name() -> None:
    with pytest.raises(Exception, match="takes tensors of the CPU, found one on meta"):
        compiled(lambda x: x * 2)(torch.ones(4, device="meta"))


def test_another_element_type_is_another_plan() -> None:
    step = compiled(lambda x: x * 2)
    for dtype in (torch.float32, torch.int64, torch.float16, torch.float64):
        assert torch.equal(step(torch.ones(4, dtype=dtype)), torch.full((4,), 2, dtype=dtype))


def test_a_step_of_one_plan_names_what_does_not_fit() -> None:
    step = train_step(nn.Linear(8, 3))
    x, labels = torch.randn(4, 8), torch.randint(3, (4,))
    with pytest.raises(TypeError, match="wanted 2 tensors, found 1"):
        step(x)
    with pytest.raises(oclc.Error, match=r"float64"):
        step(x.double(), labels)
    with pytest.raises(oclc.Error, match=r"5"):
        step(torch.randn(5, 8), labels)
    step(torch.randn(8, 4).t(), labels)  # strided: copied
    step(x, labels)
    assert len(step.losses()) == 2


def test_random_numbers_are_torchs_and_repeat_with_its_seed() -> None:
    def noisy(x: torch.Tensor) -> torch.Tensor:
        return F.dropout(x, 0.3) + torch.rand_like(x) * torch.randn(3, 1)

    step, x = compiled(noisy), torch.ones(3, 50)
    torch.manual_seed(5)
    expected = noisy(x)
    torch.manual_seed(5)
    torch.testing.assert_close(step(x), expected)
    assert not torch.equal(step(x), expected)


def test_dropout_in_training_has_eagers_gradients() -> None:
    x = torch.randn(6, 40)
    found = []
    for wrap in (compiled, lambda f: f):
        own = x.clone().requires_grad_()
        step = wrap(lambda v: F.dropout(torch.tanh(v), 0.5).square())
        torch.manual_seed(9)
        step(own).sum().backward()
        found.append(own.grad)
    torch.testing.assert_close(found[0], found[1])


def test_numbers_whose_distribution_the_graph_computes_are_refused_by_name() -> None:
    with pytest.raises(Exception, match=r"aten.bernoulli.default\): wanted random numbers whose distribution the graph's inputs give"):
        compiled(lambda x: torch.bernoulli(torch.sigmoid(x)))(torch.ones(4))
