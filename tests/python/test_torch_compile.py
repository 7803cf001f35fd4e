"""torch.compile(backend="oclc"): inference and training beside eager PyTorch."""

from __future__ import annotations

import copy
import pathlib
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import oclc  # noqa: E402
import oclc.torch as oclc_torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402


pytestmark = pytest.mark.usefixtures("fresh_torch")


def compiled(model: Callable[..., Any], **keywords: Any) -> Any:
    return torch.compile(model, backend="oclc", fullgraph=True, options={"device": "cpu"}, **keywords)


class Convolutions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(8, 8, 3, padding=1, groups=8), nn.GroupNorm(2, 8), nn.GELU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        )  # fmt: skip
        self.head = nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(x))


class Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(50, 32)
        self.norm = nn.LayerNorm(32)
        self.qkv = nn.Linear(32, 96)
        self.out = nn.Linear(32, 32)
        self.head = nn.Linear(32, 50)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens)
        b, t, c = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, t, 3, 4, c // 4).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
        return self.head(F.gelu(x, approximate="tanh"))


NETWORKS: dict[str, tuple[Callable[[], nn.Module], Callable[[], torch.Tensor]]] = {
    "perceptron": (lambda: nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 3)), lambda: torch.randn(5, 6)),
    "convolutions": (Convolutions, lambda: torch.randn(4, 3, 16, 16)),
    "transformer": (Transformer, lambda: torch.randint(50, (2, 10))),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_inference_equals_eager(name: str) -> None:
    make, example = NETWORKS[name]
    model, x = make().eval(), example()
    with torch.no_grad():
        torch.testing.assert_close(compiled(model)(x), model(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", NETWORKS)
def test_gradients_and_statistics_equal_eager(name: str) -> None:
    make, example = NETWORKS[name]
    model, x = make().train(), example()
    other = copy.deepcopy(model)
    expected = other(x)
    expected.square().mean().backward()
    found = compiled(model)(x)
    found.square().mean().backward()
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    for (name_, p), q in zip(model.named_parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(p.grad, q.grad, rtol=2e-4, atol=2e-5, msg=lambda m, n=name_: f"{n}: {m}")
    for (name_, p), q in zip(model.named_buffers(), other.buffers(), strict=True):
        torch.testing.assert_close(p, q, rtol=1e-4, atol=1e-5, msg=lambda m, n=name_: f"{n}: {m}")


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.AdamW])
def test_a_usual_training_loop_learns_as_eager(optimizer: Callable[..., torch.optim.Optimizer]) -> None:
    model = Convolutions().train()
    other = copy.deepcopy(model)
    x, labels = torch.randn(8, 3, 16, 16), torch.randint(5, (8,))
    losses: list[list[float]] = []
    for network, step in ((model, compiled(model)), (other, other)):
        update = optimizer(network.parameters(), lr=0.01)
        losses.append([])
        for _ in range(5):
            update.zero_grad()
            loss = F.cross_entropy(step(x), labels)
            loss.backward()
            update.step()
            losses[-1].append(loss.item())
    torch.testing.assert_close(torch.tensor(losses[0]), torch.tensor(losses[1]), rtol=1e-3, atol=1e-4)
    assert losses[0][-1] < losses[0][0]


def test_an_optimizers_step_is_one_graph() -> None:
    model = nn.Linear(4, 3)
    other = copy.deepcopy(model)
    for network in (model, other):
        for p in network.parameters():
            p.grad = torch.ones_like(p)
    first, second = torch.optim.Adam(model.parameters(), lr=0.1), torch.optim.Adam(other.parameters(), lr=0.1)
    step = torch.compile(first.step, backend="oclc", options={"device": "cpu"})
    same = torch.compile(second.step, backend="aot_eager")  # eager Adam takes powers of beta in double, graphs in single
    for _ in range(2):
        step()
        same()
    before = copy.copy(oclc_torch.counters)
    step()
    same()
    assert oclc_torch.counters.calls == before.calls + 1
    assert 1 <= oclc_torch.counters.launches - before.launches <= 6
    assert oclc_torch.counters.compiled == before.compiled
    for p, q in zip(model.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(p, q, rtol=1e-5, atol=1e-6)


def test_a_dynamic_batch_is_one_plan() -> None:
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3)).eval()
    step = compiled(model, dynamic=True)
    before = oclc_torch.counters.compiled + oclc_torch.counters.cached
    with torch.no_grad():
        for n in (2, 5, 9, 31):
            x = torch.randn(n, 6)
            torch.testing.assert_close(step(x), model(x), rtol=1e-4, atol=1e-5)
    assert oclc_torch.counters.compiled + oclc_torch.counters.cached == before + 1


def test_sizes_of_zero_run_in_torch() -> None:
    step = compiled(lambda x: torch.relu(x) + 1)
    before = oclc_torch.counters.eager
    assert step(torch.randn(0, 3)).shape == (0, 3)
    assert oclc_torch.counters.eager == before + 1


def test_a_strided_input_is_copied_and_counted() -> None:
    step = compiled(lambda x: torch.exp(x) * 2)
    x = torch.randn(6, 4).t()
    before = oclc_torch.counters.copies
    torch.testing.assert_close(step(x), torch.exp(x) * 2)
    assert oclc_torch.counters.copies == before + 1


def test_results_have_the_strides_that_torch_expects() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return (x + 1).to(memory_format=torch.channels_last)

    x = torch.randn(2, 3, 4, 5)
    found = compiled(function)(x)
    torch.testing.assert_close(found, function(x))
    assert found.stride() == function(x).stride()


def test_integers_and_truth_values() -> None:
    def function(x: torch.Tensor, k: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x[k], (x > 0).sum(1), torch.where(x > 0, x, -x), k // 2 + k % 3, x.argmax(1)

    x, k = torch.randn(7, 5), torch.tensor([3, -1, 0])
    for found, expected in zip(compiled(function)(x, k), function(x, k), strict=True):
        torch.testing.assert_close(found, expected)


def test_all_missing_operators_are_named_at_once_with_their_modules() -> None:
    class Odd(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.linalg.inv_ex(x)[0] + torch.linalg.cholesky_ex(x)[0]

    model = nn.Sequential(Odd())
    with pytest.raises(Exception) as caught:
        compiled(model)(torch.eye(3))
    message = str(caught.value)
    assert "aten.linalg_inv_ex.default" in message and "aten.linalg_cholesky_ex.default" in message


def with_an_inverse(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    factor = torch.linalg.cholesky_ex(x @ x.T + 1)[0]
    return torch.relu(factor @ y) * 2


def test_with_fallback_missing_operators_run_in_torch_and_are_named() -> None:
    x, y = torch.randn(3, 3) + 3 * torch.eye(3), torch.randn(3, 2, requires_grad=True)
    step = torch.compile(with_an_inverse, backend="oclc", options={"device": "cpu", "fallback": True})
    before = copy.copy(oclc_torch.counters)
    with pytest.warns(UserWarning, match=r"in torch run aten\.linalg_cholesky_ex\.default"):
        found = step(x, y)
    assert oclc_torch.counters.fallbacks == before.fallbacks + 1
    assert oclc_torch.counters.calls >= before.calls + 2  # before it and after it
    expected = with_an_inverse(x, y)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    (given,) = torch.autograd.grad(found.sum(), y)
    (wanted,) = torch.autograd.grad(expected.sum(), y)
    torch.testing.assert_close(given, wanted, rtol=1e-4, atol=1e-5)


def test_a_graph_that_is_read_whole_needs_no_fallback(recwarn: pytest.WarningsRecorder) -> None:
    model, x = nn.Sequential(nn.Linear(6, 16), nn.Tanh()), torch.randn(5, 6)
    before = oclc_torch.counters.fallbacks
    found = torch.compile(model, backend="oclc", options={"device": "cpu", "fallback": True})(x)
    torch.testing.assert_close(found, model(x), rtol=1e-4, atol=1e-5)
    assert oclc_torch.counters.fallbacks == before and not [w for w in recwarn if "in torch run" in str(w.message)]


def test_frozen_parameters_are_constants_until_they_change(tmp_path: pathlib.Path) -> None:
    model, x = Convolutions().eval(), torch.randn(2, 3, 16, 16)
    step = torch.compile(model, backend="oclc", options={"device": "cpu", "freeze": True, "cache_dir": str(tmp_path)})
    with torch.no_grad():
        before = copy.copy(oclc_torch.counters)
        torch.testing.assert_close(step(x), model(x), rtol=1e-4, atol=1e-5)
        step(x)
        assert oclc_torch.counters.compiled == before.compiled + 1
        plan = oclc.load(next((tmp_path / "torch").iterdir()))
        assert len(plan.entries["predict"].inputs) == 1
        model.head.bias.add_(1)
        torch.testing.assert_close(step(x), model(x), rtol=1e-4, atol=1e-5)
        assert oclc_torch.counters.compiled == before.compiled + 2


def test_freeze_and_fallback_exclude_each_other() -> None:
    with pytest.raises(Exception, match="wanted freeze or fallback, found both"):
        torch.compile(lambda x: x + 1, backend="oclc", options={"freeze": True, "fallback": True})(torch.ones(3))


def test_an_expanded_result_is_written_once() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.exp(x).expand(4, 3)

    x = torch.randn(3)
    torch.testing.assert_close(compiled(function)(x), function(x))


def test_a_list_in_the_program_is_a_constant_of_the_plan() -> None:
    x = torch.randn(3, 4, requires_grad=True)
    y = compiled(lambda x: x[:, [1, 2]] * torch.tensor([2.0, 3.0]))(x)
    assert torch.equal(y, x[:, [1, 2]] * torch.tensor([2.0, 3.0]))
    y.sum().backward()
    assert torch.equal(x.grad, torch.tensor([[0.0, 2.0, 3.0, 0.0]]).expand(3, 4))


def test_sizes_that_depend_on_values_are_refused_by_name() -> None:
    with pytest.raises(Exception, match=r"_local_scalar_dense.default\): wanted sizes and numbers that do not depend on values"):
        compiled(lambda x, n: x * n.item())(torch.ones(3), torch.tensor(2))


def test_element_types_that_the_compiler_lacks_are_refused_by_name() -> None:
    with pytest.raises(Exception, match="of an element type that the compiler has"):
        compiled(lambda x: x.float() * 2)(torch.ones(3).to(torch.float8_e4m3fn))


def test_unknown_options_list_the_known_ones() -> None:
    with pytest.raises(Exception, match="wanted some of device, precision"):
        torch.compile(lambda x: x + 1, backend="oclc", options={"speed": 9})(torch.ones(3))


def test_plans_are_cached_on_disk_by_content(tmp_path: pathlib.Path) -> None:
    options = {"device": "cpu", "cache_dir": str(tmp_path)}

    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.sin(x) + 3

    x = torch.randn(4, 4)
    before = (oclc_torch.counters.compiled, oclc_torch.counters.cached)
    torch.compile(function, backend="oclc", options=options)(x)
    torch._dynamo.reset()
    torch.testing.assert_close(torch.compile(function, backend="oclc", options=options)(x), function(x))
    assert (oclc_torch.counters.compiled, oclc_torch.counters.cached) == (before[0] + 1, before[1] + 1)
    assert len(list((tmp_path / "torch").iterdir())) == 1
    torch._dynamo.reset()
    torch.compile(function, backend="oclc", options={**options, "precision": "strict"})(x)
    assert len(list((tmp_path / "torch").iterdir())) == 2


def test_many_calls_do_not_grow_the_process() -> None:
    def resident_kib() -> int:
        for line in pathlib.Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
        raise AssertionError("no VmRSS")

    step = compiled(nn.Linear(8, 8))
    x = torch.randn(2, 8)
    with torch.no_grad():
        for _ in range(1000):
            step(x)
        before = resident_kib()
        for _ in range(5000):
            step(x)
    assert resident_kib() - before < 1024


def test_a_tensor_of_torch_goes_into_a_plans_session_without_a_copy() -> None:
    from conftest import DIGITS

    session = oclc.compile(DIGITS / "model.onnx", device="cpu").session("cpu")
    x = torch.rand(3, 1, 8, 8)
    torch.testing.assert_close(torch.from_numpy(session(x)), torch.from_numpy(session(x.numpy())))
    out = torch.empty(3, 10)
    session.run({"image": x}, out={"logits": out})
    torch.testing.assert_close(out, torch.from_numpy(session(x)))
    assert session.stats()["copies"] == 0
