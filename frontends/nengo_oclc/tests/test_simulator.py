"""The simulator beside nengo's own, and an operator's file in a neuron type of one's own."""

from __future__ import annotations

import pathlib
from typing import Any

import nengo
import numpy as np

import nengo_oclc


def _both(net: Any, seconds: float) -> tuple[Any, Any, Any]:
    with nengo.Simulator(net, progress_bar=False) as reference:
        reference.run(seconds)
    with nengo_oclc.Simulator(net, progress_bar=False, device="cpu") as sim:
        sim.run(seconds / 2)
        sim.run(seconds / 2)
        plans = len(sim.plans)
    return reference.data, sim.data, plans


def test_learning_on_the_device_equals_nengo() -> None:
    with nengo.Network(seed=1) as net:
        u = nengo.Node(lambda t: np.sin(6 * t))
        pre, post = nengo.Ensemble(50, 1), nengo.Ensemble(40, 1, neuron_type=nengo.AdaptiveLIF())
        nengo.Connection(u, pre)
        learnt = nengo.Connection(pre, post, function=lambda x: [0], learning_rule_type=nengo.PES())
        error = nengo.Node(size_in=1)
        nengo.Connection(post, error)
        nengo.Connection(u, error, transform=-1)
        nengo.Connection(error, learnt.learning_rule)
        decoded, spikes = nengo.Probe(post, synapse=0.03), nengo.Probe(pre.neurons)
        weights = nengo.Probe(learnt, "weights", sample_every=0.05)
    wanted, found, plans = _both(net, 0.3)
    assert plans == 1
    np.testing.assert_allclose(found[decoded], wanted[decoded], atol=1e-5)
    np.testing.assert_array_equal(found[spikes], wanted[spikes])
    np.testing.assert_allclose(found[weights], wanted[weights], rtol=1e-4, atol=1e-9)


def test_equal_ensembles_are_computed_as_one_array() -> None:
    with nengo.Network(seed=4) as net:
        a, b = (nengo.Node(np.random.RandomState(i).randn(6)) for i in range(2))
        bound = nengo.networks.CircularConvolution(10, dimensions=6)
        nengo.Connection(a, bound.input_a)
        nengo.Connection(b, bound.input_b)
        probe, spikes = nengo.Probe(bound.output, synapse=0.01), nengo.Probe(bound.product.sq1.all_ensembles[3].neurons)
    wanted, found, plans = _both(net, 0.1)
    assert plans == 1
    np.testing.assert_allclose(found[probe], wanted[probe], atol=1e-5)
    np.testing.assert_array_equal(found[spikes], wanted[spikes])
    with nengo_oclc.Simulator(net, progress_bar=False, device="cpu") as sim:
        assert len(sim.model.operators) > 300
        assert len(sim.device_stages[0]._graph.nodes) < 150


def test_equal_operators_that_write_to_one_place_add_up() -> None:
    with nengo.Network(seed=5) as net:
        total = nengo.Node(size_in=2)
        for i in range(5):
            ens = nengo.Ensemble(12, 1)
            nengo.Connection(nengo.Node([0.2 * i - 0.3]), ens, synapse=None)
            nengo.Connection(ens, total[i % 2 : i % 2 + 1], synapse=nengo.Alpha(0.02))
        probe = nengo.Probe(total)
    wanted, found, _ = _both(net, 0.1)
    np.testing.assert_allclose(found[probe], wanted[probe], atol=1e-5)


def test_a_probe_keeps_every_tenth_step() -> None:
    with nengo.Network(seed=6) as net:
        ens = nengo.Ensemble(20, 1)
        nengo.Connection(nengo.Node([0.5]), ens)
        probe = nengo.Probe(ens, synapse=0.02, sample_every=0.01)
    wanted, found, _ = _both(net, 0.15)
    assert found[probe].shape == wanted[probe].shape == (15, 1)
    np.testing.assert_allclose(found[probe], wanted[probe], atol=1e-5)


def test_a_node_with_an_input_runs_on_the_host() -> None:
    with nengo.Network(seed=2) as net:
        a, b = nengo.Ensemble(30, 1), nengo.Ensemble(30, 1)
        node = nengo.Node(lambda t, x: np.abs(x), size_in=1)
        nengo.Connection(a, node)
        nengo.Connection(node, b)
        probe = nengo.Probe(b, synapse=0.02)
    wanted, found, plans = _both(net, 0.05)
    assert plans == 2
    np.testing.assert_allclose(found[probe], wanted[probe], atol=1e-5)


class Softplus(nengo.neurons.NeuronType):
    """A rate neuron of which nengo_oclc knows nothing."""

    def gain_bias(self, max_rates: Any, intercepts: Any) -> Any:
        return np.ones_like(np.asarray(intercepts, dtype=float)), -np.asarray(intercepts, dtype=float)

    def step(self, dt: float, J: Any, output: Any) -> None:
        output[...] = np.log1p(np.exp(J))


def test_a_neuron_type_is_registered_with_an_operator_file(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "softplus.cl"
    file.write_text('/*! oclc-op 1\nname = "test.Softplus"\nin = ["j: T[...]"]\nout = ["y: T[...]"]\nformula = "y = softplus(j)"\n*/\n')

    def model() -> tuple[Any, Any]:
        with nengo.Network(seed=3) as net:
            ens = nengo.Ensemble(20, 1, neuron_type=Softplus())
            nengo.Connection(nengo.Node(lambda t: 4 * t), ens)
            probe = nengo.Probe(ens.neurons)
        return net, probe

    net, probe = model()
    wanted, on_host, plans = _both(net, 0.02)
    assert plans == 2  # without a row the neurons are the host's
    np.testing.assert_allclose(on_host[probe], wanted[probe], rtol=1e-5)

    @nengo_oclc.register(Softplus, file=str(file))
    def softplus(env: Any, op: Any, dt: float) -> None:
        (y,) = env.graph.custom("test.Softplus", [env.read(op.J)], [op.J.shape])
        env.write(op.output, y)

    wanted, found, plans = _both(net, 0.02)
    assert plans == 1
    np.testing.assert_allclose(found[probe], wanted[probe], rtol=1e-5)
