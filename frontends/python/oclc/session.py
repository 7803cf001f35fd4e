"""Sessions: a plan on a device, its runs, its state and its trainer."""

from __future__ import annotations

import collections
import dataclasses
import keyword
import os
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any

from . import _core
from ._arrays import from_plan, to_plan
from .devices import Context

if TYPE_CHECKING:
    from .plan import Entry, Plan

__all__ = ["Session", "Running", "State", "Launch", "Trainer", "Step"]


@dataclasses.dataclass(frozen=True)
class Launch:
    """A kernel that the last run launched."""

    name: str
    nodes: str  # of the model, separated by commas
    ns: int  # 0 if the session does not profile
    flops: float
    bytes: float
    anchor: str  # kind of kernel
    step: int
    start_ns: int


class Running:
    """A run that was enqueued. Its outputs hold results after wait(); leaving a `with` block waits."""

    def __init__(self, handle: _core.Running, outputs: dict[str, Any]) -> None:
        self._handle = handle
        self.outputs = outputs

    def wait(self) -> dict[str, Any]:
        """Waits for the run and gives its outputs."""
        self._handle.wait()
        return self.outputs

    def done(self) -> bool:
        return self._handle.done()

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        self._handle.wait()


class State(MutableMapping[str, Any]):
    """The session's state on the device by name; reading copies it to a new array, assigning writes all of it."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def __getitem__(self, name: str) -> Any:
        variables = self._session.plan.variables
        if name not in variables:
            raise KeyError(f"the plan has no state '{name}'; it has: {', '.join(variables) or 'none'}")
        return from_plan(self._session._handle.read_variable(name), variables[name].dtype)

    def __setitem__(self, name: str, value: Any) -> None:
        variables = self._session.plan.variables
        if name not in variables:
            raise KeyError(f"the plan has no state '{name}'; it has: {', '.join(variables) or 'none'}")
        self._session._handle.write_variable(name, to_plan(value, variables[name].dtype))

    def __delitem__(self, name: str) -> None:
        raise TypeError("state belongs to the plan and cannot be removed")

    def __iter__(self) -> Iterator[str]:
        return iter(self._session.plan.variables)

    def __len__(self) -> int:
        return len(self._session.plan.variables)

    def reset(self) -> None:
        """All state as it was at first."""
        self._session._handle.reset_state()


class Session:
    """A plan on a device. Used by one thread at a time; sessions of the same plan and context share programs and constants.

    Inputs are anything with `__dlpack__` on the CPU or in OpenCL (numpy, torch) or with a buffer; they are read where they lie
    if they are in rows, and copied once if not (stats()["copies"]). Element types are not converted: float64 for float32 is
    an error. Numbers and lists become arrays of the input's type.
    """

    def __init__(self, plan: Plan, context: Context, *, profile: bool = False) -> None:
        self.plan = plan
        self.context = context
        self._profiles = False
        self._handle = _core.Session.make(plan._handle, context._handle)
        self._kinds: dict[str, Any] = {}
        if profile:
            self.profile(True)

    def __call__(self, *arrays: Any, **named: Any) -> Any:
        """Runs `predict` (or the only entry): arrays in the order of the inputs, or by name. Gives the output, or a named tuple
        of the outputs."""
        entry = self._entry(None)
        names = list(entry.inputs)
        if len(arrays) > len(names):
            raise TypeError(f"entry '{entry.name}' takes {len(names)} inputs ({', '.join(names)}), found {len(arrays)}")
        given = dict(zip(names, arrays, strict=False))
        for name, array in named.items():
            if name in given:
                raise TypeError(f"input '{name}' was given by place and by name")
            given[name] = array
        outputs = self.run(given)
        return next(iter(outputs.values())) if len(outputs) == 1 else self._named_tuple(entry)(*outputs.values())

    def run(self, inputs: Mapping[str, Any], *, entry: str | None = None, out: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Runs an entry and waits. `out`: arrays for outputs by name, written in place; others are made anew, at a multiple of
        4096 bytes. Gives all outputs by name."""
        which = self._entry(entry)
        results = self._handle.run(self.plan._index(entry), *self._bindings(which, inputs, out))
        return {name: from_plan(array, t.dtype) for (name, t), array in zip(which.outputs.items(), results, strict=True)}

    def run_steps(
        self, steps: int, inputs: Mapping[str, Any], *, entry: str | None = None, outputs: Iterable[str] | None = None
    ) -> dict[str, Any]:
        """Runs an entry `steps` times, the host neither feeding nor waiting in between, and waits for the last: for plans whose
        outputs feed their inputs (oclc.compile(.., carry=..)). An input of one dimension more than the plan's has a value for
        each step along its first axis, others are the same in all. Gives `outputs` (default: all) as arrays [steps, ..]."""
        which = self._entry(entry)
        given, _ = self._bindings(which, inputs, None)
        wanted = list(which.outputs) if outputs is None else list(outputs)
        _check_names(which.name, "output", which.outputs, dict.fromkeys(wanted))
        asked = [name in wanted for name in which.outputs]
        results = self._handle.run_steps(self.plan._index(entry), steps, given, asked)
        names = [name for name in which.outputs if name in wanted]
        return {name: from_plan(array, which.outputs[name].dtype) for name, array in zip(names, results, strict=True)}

    def enqueue(
        self, inputs: Mapping[str, Any], *, entry: str | None = None, out: Mapping[str, Any] | None = None
    ) -> Running:
        """The same without waiting: the arrays are in use until the result's wait()."""
        which = self._entry(entry)
        handle, results = self._handle.enqueue(self.plan._index(entry), *self._bindings(which, inputs, out))
        return Running(handle, dict(zip(which.outputs, results, strict=True)))

    def bind(self, **dims: int) -> None:
        """Values of symbols that no input's shape gives."""
        for name, value in dims.items():
            self._handle.bind_dim(name, value)

    def trainer(self, entry: str = "train_step") -> Trainer:
        """What runs an entry over and over on batches, without waiting for each step."""
        return Trainer(self, entry)

    @property
    def state(self) -> State:
        return State(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes all state to a checkpoint, which oclrun and later sessions of the plan load."""
        self._handle.save_state(os.fspath(path))

    def load(self, path: str | os.PathLike[str]) -> None:
        """Reads a checkpoint; an error leaves the state as it was."""
        self._handle.load_state(os.fspath(path))

    def profile(self, enabled: bool = True) -> None:
        """Times every launch from the next run on, see launches(). The first time, a queue that takes times replaces the
        session's own; the state is kept. Error for a queue of the caller's that takes none."""
        if enabled and not self._profiles and self.context._owned == (0, 0):
            values = {name: self._handle.read_variable(name) for name in self.plan.variables}
            self.context = Context(self.context._selection, profiling=True)
            self._handle = _core.Session.make(self.plan._handle, self.context._handle)
            for name, value in values.items():
                self._handle.write_variable(name, value)
            self._profiles = True
        self._handle.enable_profile(enabled)

    def launches(self) -> list[Launch]:
        """The launches of the last run since profile(True)."""
        return [
            Launch(name, nodes, end - start, flops, moved, anchor, step, start)
            for name, anchor, nodes, step, start, end, flops, moved in self._handle.launches()
        ]

    def check_nan(self, enabled: bool = True) -> None:
        """Runs then go launch by launch, and the first NaN is an Error that names its nodes. Slow."""
        self._handle.enable_nan_check(enabled)

    def stats(self) -> dict[str, int]:
        """Memory in bytes, programs built and taken from the cache, launches of the last run; `copies`: strided inputs that were
        copied; `staging_bytes`: device copies of inputs and outputs in host memory."""
        return self._handle.stats()

    def cancel(self) -> None:
        """From any thread: the run that is being enqueued ends with Error (OCLC_E_CANCELLED)."""
        self._handle.cancel()

    def _entry(self, name: str | None) -> Entry:
        return list(self.plan._entries.values())[self.plan._index(name)]

    def _bindings(self, entry: Entry, inputs: Mapping[str, Any], out: Mapping[str, Any] | None) -> tuple[list[Any], list[Any]]:
        _check_names(entry.name, "input", entry.inputs, inputs)
        missing = [name for name in entry.inputs if name not in inputs]
        if missing:
            raise TypeError(f"entry '{entry.name}': no value for input {', '.join(missing)}")
        _check_names(entry.name, "output", entry.outputs, out or {})
        given = [to_plan(inputs[name], tensor.dtype) for name, tensor in entry.inputs.items()]
        return given, [(out or {}).get(name) for name in entry.outputs]

    def _named_tuple(self, entry: Entry) -> Any:
        if entry.name not in self._kinds:
            names = [name if name.isidentifier() and not keyword.iskeyword(name) else f"output_{i}"
                     for i, name in enumerate(entry.outputs)]  # fmt: skip
            self._kinds[entry.name] = collections.namedtuple("Outputs", names, rename=True)
        return self._kinds[entry.name]

    def __repr__(self) -> str:
        return f"<oclc.Session of {self.plan!r} on {self.context.device.name!r}>"


def _check_names(entry: str, what: str, known: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    unknown = [name for name in given if name not in known]
    if unknown:
        raise TypeError(f"entry '{entry}' has no {what} {', '.join(unknown)}; it has: {', '.join(known) or 'none'}")


@dataclasses.dataclass(frozen=True)
class Step:
    """What a step of a trainer gave."""

    step: int
    loss: float
    values: dict[str, float]


class Trainer:
    """Runs an entry over and over. step() feeds a batch, enqueues and returns; losses come back as steps finish. While it
    lives, the session's entry is not used otherwise; state may be read, saved and loaded between steps."""

    def __init__(self, session: Session, entry: str) -> None:
        self._session = session
        self._inputs = session._entry(entry).inputs
        self._handle = _core.Trainer.make(session._handle, session.plan._index(entry))
        self._names = self._handle.value_names()

    def step(self, **batch: Any) -> None:
        """A step on these inputs; an input that is not given keeps its last value."""
        for name, value in batch.items():
            if name not in self._inputs:
                raise TypeError(f"the entry has no input '{name}'; it has: {', '.join(self._inputs)}")
            self._handle.feed(name, to_plan(value, self._inputs[name].dtype))
        self._handle.step()

    def set(self, **numbers: float) -> None:
        """Hyper-parameters from the next step on: set(lr=0.01)."""
        for name, value in numbers.items():
            self._handle.set(name, value)

    def results(self, wait: bool = False) -> list[Step]:
        """Steps that have finished since the last call, oldest first; with `wait`, of all that were enqueued."""
        return [Step(step, loss, dict(zip(self._names, values, strict=False))) for step, loss, values in self._handle.results(wait)]

    def losses(self, wait: bool = True) -> list[float]:
        """The losses of these steps."""
        return [result.loss for result in self.results(wait)]
