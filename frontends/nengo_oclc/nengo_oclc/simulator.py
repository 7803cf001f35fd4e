"""nengo's Simulator, of which oclc runs the steps."""

from __future__ import annotations

from typing import Any

import nengo
import numpy as np
from nengo.exceptions import SimulatorClosed
from nengo.utils.progress import Progress, ProgressTracker

from . import operators
from .stages import DeviceStage, flat, shared_bases, split

# Steps of a run that the device does without the host between them: what operators of time alone give for them lies in memory.
_STEPS = 1000


class Simulator(nengo.Simulator):
    """Runs a model's steps as plans of oclc on an OpenCL device, in single precision.

    Operators that depend on time alone (nodes without inputs, processes) are tabulated; where nothing else runs on the host, many
    consecutive steps are enqueued and state stays on the device. A node with an input, or an operator that has no
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
        super().__init__(network, dt=dt, seed=seed, model=model, progress_bar=progress_bar, optimize=optimize)

    # The host's arrays, with what the device has of them.
    @property
    def signals(self) -> Any:
        if self._stale and self._arrays is not None:
            self._stale = False
            for stage in self.device_stages:
                for name, base in stage.states.items():
                    if stage.session is not None and name in stage.plan.variables:
                        self._arrays[base][...] = stage.session.state[name].reshape(base.shape)
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
            self._stages.append(DeviceStage(ops, shared, probed, self.dt, self._device))

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
                    count = min(steps - done, _STEPS) if len(self._stages) == 1 else 1
                    if len(self._stages) == 1:
                        self._run_on_device(count)
                    else:
                        self._run_stages()
                    done += count
                    tracker.total_progress.step(n=count)
        finally:
            np.seterr(**old)
            self._stale = True

    def _keep(self, probe: Any, number: int, value: Any) -> None:
        period = 1 if probe.sample_every is None else probe.sample_every / self.dt
        if number % period < 1:
            self._sim_data[probe].append(value)

    def _run_on_device(self, count: int) -> None:
        """Consecutive steps: what depends on time alone first, for all of them."""
        (stage,) = self._stages
        arrays = self._arrays
        first = int(arrays[self.model.step].item())
        tables = {name: np.empty((count, *s.shape), dtype=np.float32) for name, (_, s) in stage.tables.items()}
        ops = [op for op in self._step_order if operators.is_table(op)]
        for k in range(count):
            for op in ops:
                of_op = [(name, signal) for name, (owner, signal) in stage.tables.items() if owner is op]
                for name, signal in of_op:
                    if signal in op.updates:
                        tables[name][k] = arrays[signal]
                    elif signal in op.incs:
                        arrays[signal][...] = 0
                self._functions[op]()
                for name, signal in of_op:
                    if signal not in op.updates:
                        tables[name][k] = arrays[signal]
        results = {}
        if stage.session is not None:
            results = stage.session.run_steps(count, tables, outputs=list(stage.probes.values()))
        for probe, signal in self._probed.items():
            series = results.get(stage.probes.get(signal))
            for k in range(count):
                value = signal.initial_value if series is None else series[k]
                self._keep(probe, first + k + 1, np.array(value, dtype=signal.dtype).reshape(signal.shape))
        self._probe_step_time()

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
            given = {name: flat(arrays[base]) for name, base in stage.inputs.items()}
            results = stage.session.run(given)
            for name, signal in stage.outputs.items():
                if name in stage.probes.values():
                    found[signal] = results[name]
                else:
                    arrays[signal][...] = results[name]
        self._probe_step_time()
        for probe, signal in self._probed.items():
            value = found.get(signal, arrays[signal])
            self._keep(probe, self._n_steps, np.array(value, dtype=signal.dtype).reshape(signal.shape))

    def _probe_step_time(self) -> None:
        self._n_steps = self._arrays[self.model.step].item()
        self._time = self._arrays[self.model.time].item()
