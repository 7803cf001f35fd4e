"""A model's operators as stages that run one behind another in a step, on the device or on the host."""

from __future__ import annotations

from typing import Any

import numpy as np
import oclc

from . import operators
from .batches import Joined, batched
from .graph import STEPS, TICKS, Environment, Graph, shape_in_plan


def written(op: Any) -> list[Any]:
    return [*op.sets, *op.incs, *op.updates]


def split(order: list[Any], dependents: dict[Any, list[Any]]) -> list[list[Any]]:
    """One stage of the device where all that runs on the host depends on time alone. Else even stages are the device's and odd
    ones the host's, each operator in the first that its predecessors allow."""
    if all(operators.runs_on_device(op) or operators.is_table(op) for op in order):
        return [order]
    before: dict[Any, list[Any]] = {}
    for op, later in dependents.items():
        for other in later:
            before.setdefault(other, []).append(op)
    stage_of: dict[Any, int] = {}
    for op in order:
        least = max((stage_of[p] for p in before.get(op, ()) if p in stage_of), default=0)
        stage_of[op] = least + (least % 2 != (not operators.runs_on_device(op)))
    return [[op for op in order if stage_of[op] == stage] for stage in range(max(stage_of.values()) + 1)]


def shared_bases(stages: list[list[Any]]) -> set[Any]:
    """Signals of which more than one stage reads or writes, and those of stages on the host."""
    users: dict[Any, set[int]] = {}
    for i, ops in enumerate(stages):
        for op in ops:
            for signal in op.all_signals:
                users.setdefault(signal.base, set()).add(i)
    return {base for base, stages_of in users.items() if len(stages_of) > 1 or any(i % 2 for i in stages_of)}


# Of a run: steps that the device does without the host between them, and bytes of what they read and give.
_MOST_STEPS = 1000
_MOST_BYTES = 64 << 20


class DeviceStage:
    """Operators as a plan. Signals that no other stage uses are constants, state or passing values of it; those in `shared` come
    from the host's arrays and go there. What an operator of time alone writes is an input.

    repeats: the plan does many steps in a run, in one launch where the device allows it; inputs and probes have a value for each.
    """

    def __init__(
        self,
        ops: list[Any],
        dependents: dict[Any, list[Any]],
        shared: set[Any],
        probed: list[Any],
        dt: float,
        device: Any,
        repeats: bool = False,
    ) -> None:
        self.states: dict[str, Any] = {}  # bases by name
        self.inputs: dict[str, Any] = {}  # bases that the host has, by name
        self.tables: dict[str, tuple[Any, Any]] = {}  # operator and signal by name
        self.outputs: dict[str, Any] = {}  # signals by name
        self._graph = Graph()
        self._shared = shared
        self._written = {s.base for op in ops for s in written(op)}
        order, self._layout = batched(ops, dependents, self._written, lambda base: base not in shared and base.dtype.kind == "f")
        env = Environment(self._graph, self._first_value, self._layout)
        increments = self._take_tables(env, ops, probed)
        for op in order:
            for signal, value in increments.get(op, ()):
                env.increase(signal, value)
            if not operators.is_table(op):
                operators.build(env, op, dt)
        carries = self._give_states(env)
        for base in {s.base: None for op in ops for s in written(op) if s.base in shared}:
            self._give(env, base)
        self.probes = {signal: self._give(env, signal) for signal in dict.fromkeys(probed)}
        used = {name for node in self._graph.nodes for name in node.input}
        # A state may be carried whose old value nobody needs.
        unused = {i.name for i in self._graph.inputs} - used - set(carries.values())
        for names in (self.states, self.inputs, self.tables):
            for name in unused & set(names):
                names.pop(name)
        self.plan: oclc.Plan | None = None
        self.session: Any = None
        if self._graph.outputs:  # state and probes; without any nothing that a step does is seen
            chosen: dict[str, Any] = {"device": device} if isinstance(device, str) else {}
            if repeats:
                model = self._graph.repeated(carries, unused)
                chosen["typical"] = {STEPS: _MOST_STEPS}
            else:
                model = self._graph.model(unused)
            carry = {output: f"{name},state" for output, name in carries.items()}
            # Traces of neurons that are silent decay to numbers below the smallest normal one, which are slow on many processors.
            self.plan = oclc.compile(model, carry=carry, ops=operators.FILES, subnormals="flush", **chosen)
            self.session = self.plan.session(device)
            self.reset()

    def reset(self) -> None:
        if self.session is None:
            return
        for name, base in self.states.items():
            if name in self.plan.variables:
                self.session.state[name] = in_plan(base, base.initial_value)

    @property
    def most_steps(self) -> int:
        """Of a run of a stage that repeats."""
        signals = [*self.probes, *(signal for _, signal in self.tables.values())]
        return max(1, min(_MOST_STEPS, _MOST_BYTES // max(1, sum(4 * s.size for s in signals))))

    def run_steps(self, count: int, tables: dict[str, Any]) -> dict[Any, Any]:
        """What is probed, by signals, with a value for each step."""
        if self.session is None:
            return {}
        results = self.session.run(tables or {TICKS: np.zeros(count, dtype=np.float32)})
        return {signal: results[name] for signal, name in self.probes.items()}

    def read_states(self, arrays: Any) -> None:
        """What the device has of the host's arrays."""
        if self.session is None:
            return
        for name, base in self.states.items():
            if name not in self.plan.variables:
                continue
            value = self.session.state[name]
            if isinstance(base, Joined):
                for member, row in zip(base.members, value, strict=True):
                    arrays[member][...] = row
            else:
                arrays[base][...] = value.reshape(base.shape)

    def _first_value(self, base: Any) -> str:
        g = self._graph
        member = base.members[0] if isinstance(base, Joined) else base  # members are alike in this
        if member not in self._written and base not in self._shared:
            return g.constant(in_plan(base, base.initial_value))
        names = self.inputs if base in self._shared else self.states
        name = f"{'h' if base in self._shared else 's'}{len(names)}"
        names[name] = base
        return g.add_input(name, shape_in_plan(base))

    def _take_tables(self, env: Environment, ops: list[Any], probed: list[Any]) -> dict[Any, list[tuple[Any, str]]]:
        """What is added where its operator stands; what is set, or was updated in the step before, is there from the start."""
        read = {s.base for op in ops if not operators.is_table(op) for s in op.all_signals} | {s.base for s in probed}
        increments: dict[Any, list[tuple[Any, str]]] = {}
        for op in ops:
            if not operators.is_table(op):
                continue
            for signal in operators.table_signals(op):
                if signal.base not in read:
                    continue
                name = f"t{len(self.tables)}"
                self.tables[name] = (op, signal)
                value = self._graph.add_input(name, signal.shape)
                if signal in op.incs:
                    increments.setdefault(op, []).append((signal, value))
                else:
                    env.write(signal, value)
        return increments

    def _give(self, env: Environment, signal: Any) -> str:
        name = f"o{len(self.outputs)}"
        self.outputs[name] = signal
        self._graph.add_output(name, env.read(signal))
        return name

    def _give_states(self, env: Environment) -> dict[str, str]:
        carries = {}
        for name, base in list(self.states.items()):
            value = env.value(base)
            if value != name:
                self._graph.add_output(f"next_{name}", value)
                carries[f"next_{name}"] = name
        return carries


def in_plan(base: Any, value: Any) -> np.ndarray:
    """A signal's value as plans have it: in single precision, whatever nengo keeps."""
    return np.ascontiguousarray(value, dtype=np.float32).reshape(shape_in_plan(base))
