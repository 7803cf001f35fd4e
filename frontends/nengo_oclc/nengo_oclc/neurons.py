"""Nengo's neuron types: what a step makes of currents and of the neurons' state."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from nengo import neurons as types

if TYPE_CHECKING:
    from .graph import Environment


def _rectified(env: Environment, op: Any, dt: float) -> None:
    g = env.graph
    env.write(op.output, g.scaled(g.node("Relu", [env.read(op.J)], op.J.shape), op.neurons.amplitude))


def _spiking_rectified(env: Environment, op: Any, dt: float) -> None:
    g = env.graph
    driven = g.scaled(g.node("Relu", [env.read(op.J)], op.J.shape), dt)
    _whole_spikes(env, op, g.add(env.read(op.state["voltage"]), driven), dt)


def _regular_spiking(env: Environment, op: Any, dt: float) -> None:
    g = env.graph
    _whole_spikes(env, op, g.add(env.read(op.state["voltage"]), g.scaled(env.read(op.J), dt)), dt)


def _whole_spikes(env: Environment, op: Any, voltage: str, dt: float) -> None:
    g = env.graph
    spikes = g.node("Floor", [voltage], g.shapes[voltage])
    env.write(op.output, g.scaled(spikes, op.neurons.amplitude / dt))
    env.write(op.state["voltage"], g.elementwise("Sub", voltage, spikes))


def _sigmoid(env: Environment, op: Any, dt: float) -> None:
    g = env.graph
    env.write(op.output, g.scaled(g.node("Sigmoid", [env.read(op.J)], op.J.shape), 1 / op.neurons.tau_ref))


def _tanh(env: Environment, op: Any, dt: float) -> None:
    g = env.graph
    env.write(op.output, g.scaled(g.node("Tanh", [env.read(op.J)], op.J.shape), 1 / op.neurons.tau_ref))


def _lif_rates(env: Environment, op: Any, current: str) -> None:
    """amplitude / (tau_ref + tau_rc log(1 + 1 / (J - 1))) where the current J is above 1."""
    g, n = env.graph, op.neurons
    over = g.elementwise("Sub", current, g.constant(1.0))
    fires = g.elementwise("Greater", over, g.constant(0.0))
    safe = g.node("Where", [fires, over, g.constant(1.0)], g.shapes[over])
    slow = g.elementwise("Log", g.add(g.elementwise("Div", g.constant(1.0), safe), g.constant(1.0)))
    rate = g.elementwise("Div", g.constant(n.amplitude), g.add(g.scaled(slow, n.tau_rc), g.constant(n.tau_ref)))
    env.write(op.output, g.node("Where", [fires, rate, g.constant(0.0)], g.shapes[over]))


def _lif_rate(env: Environment, op: Any, dt: float) -> None:
    _lif_rates(env, op, env.read(op.J))


def _lif_spikes(env: Environment, op: Any, current: str, dt: float) -> None:
    """The voltage goes to the current with tau_rc for the part of the step in which the neuron does not rest. One that passes 1
    spikes, and rests for tau_ref from the time on at which it did."""
    g, n = env.graph, op.neurons
    shape = op.J.shape
    rest = g.add(env.read(op.state["refractory_time"]), g.constant(-dt))
    awake = g.elementwise("Min", g.node("Relu", [g.elementwise("Sub", g.constant(dt), rest)], shape), g.constant(dt))
    decay = g.elementwise("Exp", g.scaled(awake, -1 / n.tau_rc))
    voltage = g.add(current, g.mul(g.elementwise("Sub", env.read(op.state["voltage"]), current), decay))
    fires = g.elementwise("Greater", voltage, g.constant(1.0))
    above = g.elementwise("Sub", voltage, g.constant(1.0))
    over = g.node("Where", [fires, g.elementwise("Sub", current, g.constant(1.0)), g.constant(1.0)], shape)
    part = g.elementwise("Div", g.node("Where", [fires, above, g.constant(0.0)], shape), over)
    since = g.scaled(g.elementwise("Log", g.elementwise("Sub", g.constant(1.0), part)), n.tau_rc)  # minus the time behind the spike
    env.write(op.output, g.node("Where", [fires, g.constant(n.amplitude / dt), g.constant(0.0)], shape))
    if np.isfinite(n.min_voltage):
        voltage = g.elementwise("Max", voltage, g.constant(n.min_voltage))
    env.write(op.state["voltage"], g.node("Where", [fires, g.constant(0.0), voltage], shape))
    resting = g.add(since, g.constant(n.tau_ref + dt))
    env.write(op.state["refractory_time"], g.node("Where", [fires, resting, rest], shape))


def _lif(env: Environment, op: Any, dt: float) -> None:
    _lif_spikes(env, op, env.read(op.J), dt)


def _adapting(neurons: Callable[[Environment, Any, str, float], None]) -> Callable[[Environment, Any, float], None]:
    """The output slowly raises what is taken from the current."""

    def step(env: Environment, op: Any, dt: float) -> None:
        g, n = env.graph, op.neurons
        adaptation = env.read(op.state["adaptation"])
        neurons(env, op, g.elementwise("Sub", env.read(op.J), adaptation), dt)
        change = g.elementwise("Sub", g.scaled(env.read(op.output), n.inc_n), adaptation)
        env.write(op.state["adaptation"], g.add(adaptation, g.scaled(change, dt / n.tau_n)))

    return step


def _izhikevich(env: Environment, op: Any, dt: float) -> None:
    g, n = env.graph, op.neurons
    current = g.elementwise("Max", env.read(op.J), g.constant(-30.0))
    v, u = env.read(op.state["voltage"]), env.read(op.state["recovery"])
    slope = g.add(g.scaled(g.mul(v, v), 0.04), g.add(g.scaled(v, 5.0), g.constant(140.0)))
    slope = g.add(slope, g.elementwise("Sub", current, u))
    v = g.add(v, g.scaled(slope, 1000 * dt))
    fires = g.elementwise("GreaterOrEqual", v, g.constant(30.0))
    v = g.node("Where", [fires, g.constant(n.reset_voltage), v], op.J.shape)
    env.write(op.output, g.node("Where", [fires, g.constant(1 / dt), g.constant(0.0)], op.J.shape))
    env.write(op.state["voltage"], v)
    drift = g.scaled(g.elementwise("Sub", g.scaled(v, n.coupling), u), 1000 * dt * n.tau_recovery)
    u = g.add(u, drift)
    raised = g.add(u, g.constant(n.reset_recovery))
    env.write(op.state["recovery"], g.node("Where", [fires, raised, u], op.J.shape))


NEURONS: dict[type, Callable[[Environment, Any, float], None]] = {
    types.RectifiedLinear: _rectified,
    types.SpikingRectifiedLinear: _spiking_rectified,
    types.Sigmoid: _sigmoid,
    types.Tanh: _tanh,
    types.LIFRate: _lif_rate,
    types.LIF: _lif,
    types.AdaptiveLIFRate: _adapting(lambda env, op, current, dt: _lif_rates(env, op, current)),
    types.AdaptiveLIF: _adapting(_lif_spikes),
    types.Izhikevich: _izhikevich,
    types.RegularSpiking: _regular_spiking,
}

# Those of nengo: neurons of several ensembles may be computed as one array.
ELEMENTWISE = frozenset(NEURONS)
