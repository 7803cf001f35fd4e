"""nengo's Simulator, of which oclc runs the steps."""

from __future__ import annotations

from typing import Any

import nengo
import numpy as np
from nengo.builder.operator import TimeUpdate
from nengo.exceptions import SimulatorClosed
from nengo.utils.progress import Progress, ProgressTracker

from . import operators
from .stages import DeviceStage, in_plan, shared_bases, split


class Simulator(nengo.Simulator):
    """Runs a model's steps as plans of oclc on an OpenCL device, in single precision.

    Operators that depend on time alone (nodes without inputs, processes) are tabulated; where nothing else runs on the host, the
    plan does many consecutive steps in a run, and state stays on the device. A node with an input, or an operator that has no
    counterpart, runs on the host in each step.

    device: what `oclc.Plan.session` takes ("cpu", "gpu", a part of a name); other parameters are nengo.Simulator's.
    """

    unsupported: list[tuple[str, str]] = []

    def __init__(
        self,
        network: Any,
        dt: float = 0.001,
        seed: int | None = None,
        model: Any = None,
        progress_bar: Any = True,
        optimize: bool = True,
        device: Any = None,
    ) -> None:
        self._device = device
        self._stages: list[Any] | None = None
        self._stale = False
        # Equal operators are joined here, in less time than nengo's optimizer needs; see batches.py.
        super().__init__(network, dt=dt, seed=seed, model=model, progress_bar=progress_bar, optimize=False)
        self.optimize = optimize

    # The host's arrays, with what the device has of them.
    @property
    def signals(self) -> Any:
        if self._stale and self._arrays is not None:
            self._stale = False
            for stage in self.device_stages:
                stage.read_states(self._arrays)
        return self._arrays

    @signals.setter
    def signals(self, arrays: Any) -> None:
        self._arrays = arrays

    @property
    def device_stages(self) -> list[DeviceStage]:
        return [stage for stage in self._stages or () if isinstance(stage, DeviceStage)]

    @property
    def plans(self) -> list[Any]:
        """The plans that a step runs, with their launches: `plan.info()` has flops and bytes."""
        return [stage.plan for stage in self.device_stages if stage.plan is not None]

    def reset(self, seed: int | None = None) -> None:
        if self.closed:
            raise SimulatorClosed("Cannot reset closed Simulator.")
        self._stale = False
        if self._stages is None:
            self._make_stages()
        for stage in self.device_stages:
            stage.reset()
        super().reset(seed)
        self._functions = dict(zip(self._step_order, self._steps, strict=True))

    def _make_stages(self) -> None:
        parts = split(self._step_order, self.dg)
        shared = shared_bases(parts) if len(parts) > 1 else set()
        self._probed = {probe: self.model.sig[probe]["in"] for probe in self.model.probes}
        written = {s.base for op in self._step_order for s in [*op.sets, *op.incs, *op.updates]}
        self._stages = []
        for i, ops in enumerate(parts):
            if i % 2:
                self._stages.append(ops)
                continue
            own = {s.base for op in ops for s in op.all_signals} & written - shared
            probed = [signal for signal in self._probed.values() if signal.base in own]
            self._stages.append(DeviceStage(ops, self.dg, shared, probed, self.dt, self._device, repeats=len(parts) == 1))

    def step(self) -> None:
        self.run_steps(1, progress_bar=False)

    def run_steps(self, steps: int, progress_bar: Any = None) -> None:
        if self.closed:
            raise SimulatorClosed("Simulator cannot run because it is closed.")
        if progress_bar is None:
            progress_bar = self.progress_bar
        old = np.seterr(invalid="raise", divide="ignore")
        try:
            with ProgressTracker(progress_bar, Progress("Simulating", "Simulation", steps)) as tracker:
                done = 0
                while done < steps:
                    count = 1
                    if len(self._stages) == 1:
                        count = min(steps - done, self._stages[0].most_steps)
                        self._run_on_device(count)
                    else:
                        self._run_stages()
                    done += count
                    tracker.total_progress.step(n=count)
        finally:
            np.seterr(**old)
            self._stale = True

    def _run_on_device(self, count: int) -> None:
        """Consecutive steps: what depends on time alone first, for all of them."""
        (stage,) = self._stages
        first = int(self._arrays[self.model.step].item())
        results = stage.run_steps(count, self._tabulated(stage, count))
        for probe, signal in self._probed.items():
            kept = np.flatnonzero(_is_kept(first + 1 + np.arange(count), probe, self.dt))
            if signal in results:
                values = results[signal][kept]
            else:
                values = np.broadcast_to(signal.initial_value, (len(kept), *signal.shape))
            self._sim_data[probe].extend(np.array(values, dtype=signal.dtype).reshape(len(kept), *signal.shape))
        self._probe_step_time()

    def _tabulated(self, stage: DeviceStage, count: int) -> dict[str, Any]:
        """Values of inputs in the next `count` steps; the host's arrays are then as they are behind them."""
        arrays = self._arrays
        ops = [op for op in self._step_order if operators.is_table(op)]
        if not stage.tables and all(type(op) is TimeUpdate for op in ops):
            arrays[self.model.step][...] += count
            arrays[self.model.time][...] = arrays[self.model.step] * self.dt
            return {}
        tables = {name: np.empty((count, *s.shape), dtype=np.float32) for name, (_, s) in stage.tables.items()}
        rows = []
        for op in ops:
            before, cleared, behind = [], [], []
            for name, (owner, signal) in stage.tables.items():
                if owner is op:
                    (before if signal in op.updates else behind).append((tables[name], arrays[signal]))
                    if signal in op.incs:
                        cleared.append(arrays[signal])
            rows.append((self._functions[op], before, cleared, behind))
        for k in range(count):
            for function, before, cleared, behind in rows:
                for table, array in before:
                    table[k] = array
                for array in cleared:
                    array[...] = 0
                function()
                for table, array in behind:
                    table[k] = array
        return tables

    def _run_stages(self) -> None:
        """One step, through the host's arrays where stages meet."""
        arrays = self._arrays
        found = {}
        for stage in self._stages:
            if not isinstance(stage, DeviceStage):
                for op in stage:
                    self._functions[op]()
                continue
            if stage.session is None:
                continue
            given = {name: in_plan(base, arrays[base]) for name, base in stage.inputs.items()}
            results = stage.session.run(given)
            for name, signal in stage.outputs.items():
                if name in stage.probes.values():
                    found[signal] = results[name]
                else:
                    arrays[signal][...] = results[name]
        self._probe_step_time()
        for probe, signal in self._probed.items():
            if _is_kept(self._n_steps, probe, self.dt):
                value = found.get(signal, arrays[signal])
                self._sim_data[probe].append(np.array(value, dtype=signal.dtype).reshape(signal.shape))

    def _probe_step_time(self) -> None:
        self._n_steps = self._arrays[self.model.step].item()
        self._time = self._arrays[self.model.time].item()


def _is_kept(number: Any, probe: Any, dt: float) -> Any:
    """Whether the probe keeps the step's value, of a step's number or of several."""
    period = 1 if probe.sample_every is None else probe.sample_every / dt
    return number % period < 1
