"""Nengo's operators as nodes of a step's graph. A row a kind; what has none runs on the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from nengo.builder import learning_rules, neurons, operator, processes
from nengo.builder.probe import SimProbe
from nengo.neurons import NeuronType
from nengo.synapses import LinearFilter

from .batches import ALONE, Batch, Stack
from .graph import Environment
from .neurons import NEURONS

# Elements of a sparse matrix up to which it is multiplied as a dense one.
_DENSE = 1 << 22


def _reset(env: Environment, op: Any, dt: float) -> None:
    env.write(op.dst, env.graph.constant(np.full(op.dst.shape, op.value)))


def _copy(env: Environment, op: Any, dt: float) -> None:
    g = env.graph
    value = env.read(op.src)
    if op.src_slice is not None:
        value = g.gather(value, np.arange(op.src.shape[0])[op.src_slice])
    if op.dst_slice is None:
        (env.increase if op.inc else env.write)(op.dst, value)
        return
    base, all_of_dst = env.place(op.dst)
    where = all_of_dst[op.dst_slice]
    value = g.reshape(g.expand(value, where.shape), (where.size,))
    whole = g.scatter(env.whole(base), where.reshape(-1), value, op.inc)
    env.assign(base, whole)


def _members(env: Environment, batch: Batch, signal: Any, ndim: int) -> str:
    """A stack of a batch's signals with `ndim` dimensions a member, or one signal as a stack of one."""
    value = env.read(signal)
    shape = env.graph.shapes[value]
    lead, own = (shape[:1], shape[1:]) if isinstance(signal, Stack) else ((1,), shape)
    return env.graph.reshape(value, (*lead, *(1,) * (ndim - len(own)), *own))


def _elementwise(env: Environment, op: Any, dt: float) -> None:
    if not isinstance(op, Batch):
        env.increase(op.Y, env.graph.mul(env.read(op.A), env.read(op.X)))
        return
    ndim = max(s.ndim for s in (op.first.A, op.first.X, op.first.Y))
    product = env.graph.mul(_members(env, op, op.A, ndim), _members(env, op, op.X, ndim))
    env.increase(op.Y, _of_members(env, product, op.Y))


def _of_members(env: Environment, value: str, stack: Any) -> str:
    """In the stack's shape, where the members have leading dimensions of 1 more, or sizes that broadcast."""
    shape = env.graph.shapes[value]
    if int(np.prod(shape, dtype=np.int64)) == stack.size:
        return env.graph.reshape(value, stack.shape)
    return env.graph.reshape(env.graph.expand(value, (stack.shape[0], *shape[1:])), (stack.shape[0], *shape[1:]))


def _product(env: Environment, a: str, x: str, y: Any) -> None:
    g = env.graph
    a_shape, x_shape = g.shapes[a], g.shapes[x]
    if a_shape == () or x_shape == ():
        product = g.mul(a, x)
    else:
        shape = a_shape[:-1] + (x_shape[1:] if len(x_shape) > 1 else ())
        product = g.node("MatMul", [a, x], shape)
    size = int(np.prod(g.shapes[product], dtype=np.int64))
    env.increase(y, g.reshape(product, y.shape) if size == y.size else product)


def _dot(env: Environment, op: Any, dt: float) -> None:
    if not isinstance(op, Batch):
        _product(env, env.read(op.A), env.read(op.X), op.Y)
        return
    if op.first.A.ndim == 0 or op.first.X.ndim == 0:
        _elementwise(env, op, dt)
        return
    g = env.graph
    (rows, terms), columns = op.first.A.shape, op.first.Y.size // op.first.A.shape[0]
    if isinstance(op.A, Stack) and not isinstance(op.X, Stack):  # one product of all rows
        a = g.reshape(env.read(op.A), (op.count * rows, terms))
        product = g.node("MatMul", [a, g.reshape(env.read(op.X), (terms, columns))], (op.count * rows, columns))
    else:
        a = _members(env, op, op.A, 2)
        x = g.reshape(env.read(op.X), (op.count if isinstance(op.X, Stack) else 1, terms, columns))
        product = g.node("MatMul", [a, x], (op.count, rows, columns))
    env.increase(op.Y, g.reshape(product, op.Y.shape))


def _sparse_dot(env: Environment, op: Any, dt: float) -> None:
    _product(env, env.graph.constant(op.A.initial_value.toarray()), env.read(op.X), op.Y)


def _block_dot(env: Environment, op: Any, dt: float) -> None:
    """Blocks [k, r, c] of a matrix: `indices` are their columns, those of block row i are indptr[i] up to indptr[i + 1]."""
    g = env.graph
    count, rows, columns = op.A.shape
    x = g.reshape(env.read(op.X), (op.X.size // columns, columns, 1))
    if not np.array_equal(op.indices, np.arange(op.X.size // columns)):
        x = g.gather(x, op.indices)
    product = g.reshape(g.node("MatMul", [env.read(op.A), x], (count, rows, 1)), (count, rows))
    lengths = np.diff(op.indptr)
    most = int(lengths.max(initial=0))
    if not np.array_equal(lengths, np.ones_like(lengths)):
        padded = g.node("Concat", [product, g.constant(np.zeros((1, rows)))], (count + 1, rows), axis=0)
        where = np.full((len(lengths), most), count)
        for i, (begin, end) in enumerate(zip(op.indptr[:-1], op.indptr[1:], strict=True)):
            where[i, : end - begin] = np.arange(begin, end)
        terms = g.gather(padded, where)
        product = g.node("ReduceSum", [terms, g.constant([1], np.int64)], (len(lengths), rows), keepdims=0)
    env.increase(op.Y, g.reshape(product, op.Y.shape))


def _neurons(env: Environment, op: Any, dt: float) -> None:
    NEURONS[type(op.neurons)](env, op, dt)


def _filter(env: Environment, op: Any, dt: float) -> None:
    """x[t + 1] = A x[t] + B u[t]; the output is C x + D u, with the x after this step where D is zero."""
    g = env.graph
    a, b, c, d = op.process._get_ss(dt)
    if a.size == 0:
        y = g.scaled(_input_of_filter(env, op), d.item())
    else:
        state = op.state["X"]
        lead = (op.count,) if isinstance(op, Batch) else ()
        size = state.size // (len(a) * (op.count if lead else 1))
        flat = g.reshape(env.read(state), (*lead, len(a), size))
        wide = g.reshape(_input_of_filter(env, op), (*lead, 1, size))
        if len(a) == 1:
            follows = g.add(g.scaled(flat, a.item()), g.scaled(wide, b.item()))
        else:
            kept = g.node("MatMul", [g.constant(a), flat], g.shapes[flat])
            follows = g.add(kept, g.mul(g.constant(b.reshape(-1, 1)), wide))
        late = (d == 0).all()
        source = follows if late else flat
        y = g.scaled(source, c.item()) if len(a) == 1 else g.node("MatMul", [g.constant(c), source], g.shapes[wide])
        if not late:
            y = g.add(y, g.scaled(wide, d.item()))
        # One number of state: C is part of the state, as nengo keeps it.
        if len(a) == 1 and late:
            follows = g.add(g.scaled(flat, a.item()), g.scaled(wide, c.item() * b.item()))
            y = follows
        env.write(state, g.reshape(follows, state.shape))
    y = g.reshape(y, op.output.shape)
    (env.increase if op.mode == "inc" else env.write)(op.output, y)


def _input_of_filter(env: Environment, op: Any) -> str:
    """Of each member of a batch, also where they share it."""
    u = env.read(op.input)
    return env.graph.expand(u, op.output.shape) if isinstance(op, Batch) else u


def _outer(g: Any, a: str, b: str) -> str:
    (m,), (n,) = g.shapes[a], g.shapes[b]
    return g.mul(g.reshape(a, (m, 1)), g.reshape(b, (1, n)))


def _pes(env: Environment, op: Any, dt: float) -> None:
    g = env.graph
    factor = -op.learning_rate * dt / op.pre_filtered.shape[0]
    env.write(op.delta, _outer(g, g.scaled(env.read(op.error), factor), env.read(op.pre_filtered)))


def _bcm(env: Environment, op: Any, dt: float) -> None:
    g = env.graph
    post = env.read(op.post_filtered)
    change = g.mul(post, g.elementwise("Sub", post, env.read(op.theta)))
    env.write(op.delta, _outer(g, g.scaled(change, op.learning_rate * dt), env.read(op.pre_filtered)))


def _oja(env: Environment, op: Any, dt: float) -> None:
    g = env.graph
    alpha = op.learning_rate * dt
    post = env.read(op.post_filtered)
    column = g.reshape(g.scaled(g.mul(post, post), -alpha * op.beta), (op.post_filtered.size, 1))
    forgotten = g.mul(env.read(op.weights), column)
    env.write(op.delta, g.add(forgotten, _outer(g, g.scaled(post, alpha), env.read(op.pre_filtered))))


def _voja(env: Environment, op: Any, dt: float) -> None:
    g = env.graph
    post = env.read(op.post_filtered)
    column = g.reshape(post, (op.post_filtered.size, 1))
    toward = g.mul(g.constant(op.scale[:, None]), _outer(g, post, env.read(op.pre_decoded)))
    change = g.elementwise("Sub", toward, g.mul(column, env.read(op.scaled_encoders)))
    rate = g.scaled(env.read(op.learning_signal), op.learning_rate * dt)
    env.write(op.delta, g.mul(rate, change))


def _rls(env: Environment, op: Any, dt: float) -> None:
    """P loses (P r)(P r)^T / (1 + r^T P r), and delta is minus the error times P r over the same."""
    g = env.graph
    r, p = env.read(op.pre_filtered), env.read(op.inv_gamma)
    n = op.pre_filtered.size
    pr = g.node("MatMul", [p, r], (n,))
    rate = g.elementwise("Div", g.constant(1.0), g.add(g.node("MatMul", [r, pr], ()), g.constant(1.0)))
    scaled = g.mul(pr, rate)
    env.write(op.delta, g.scaled(_outer(g, env.read(op.error), scaled), -1.0))
    env.write(op.inv_gamma, g.elementwise("Sub", p, _outer(g, pr, scaled)))


def _nothing(env: Environment, op: Any, dt: float) -> None:
    pass


_ROWS: dict[type, Any] = {
    operator.Reset: _reset,
    operator.Copy: _copy,
    operator.ElementwiseInc: _elementwise,
    operator.DotInc: _dot,
    operator.SparseDotInc: _sparse_dot,
    operator.BsrDotInc: _block_dot,
    neurons.SimNeurons: _neurons,
    processes.SimProcess: _filter,
    learning_rules.SimPES: _pes,
    learning_rules.SimBCM: _bcm,
    learning_rules.SimOja: _oja,
    learning_rules.SimVoja: _voja,
    learning_rules.SimRLS: _rls,
    SimProbe: _nothing,
}


# Files of operators that registered rows use.
FILES: list[str] = []

Row = Callable[[Environment, Any, float], None]


def register(kind: type, *, file: str | None = None) -> Callable[[Row], Row]:
    """Gives an operator of nengo's builder, or a neuron type, its nodes: the function below the decorator gets the environment
    of signals, the operator (of a neuron type: the SimNeurons) and dt. `file`: operators in the form of `oclc --op`, which
    `env.graph.custom` calls."""

    def add(row: Row) -> Row:
        if issubclass(kind, NeuronType):
            NEURONS[kind] = row
        elif issubclass(kind, operator.Operator):
            _ROWS[kind] = row
        else:
            raise TypeError(f"wanted an operator of nengo's builder or a neuron type, found {kind.__name__}")
        ALONE.add(kind)
        if file is not None and file not in FILES:
            FILES.append(file)
        return row

    return add


def is_table(op: Any) -> bool:
    """Depends on time alone: its values for many steps are computed before the device runs them."""
    if type(op) is operator.TimeUpdate:
        return True
    if type(op) is operator.SimPyFunc:
        return op.x is None
    return type(op) is processes.SimProcess and op.input is None


def table_signals(op: Any) -> list[Any]:
    """What such an operator gives to others."""
    return [op.output] if type(op) is processes.SimProcess else op.sets


def runs_on_device(op: Any) -> bool:
    kind = type(op)
    if kind not in _ROWS or is_table(op) or any(s.sparse for s in op.all_signals if kind is not operator.SparseDotInc):
        return False
    if kind is operator.SparseDotInc:
        return op.A.size <= _DENSE
    if kind is neurons.SimNeurons:
        return type(op.neurons) in NEURONS and not op.state_extra
    if kind is processes.SimProcess:
        return isinstance(op.process, LinearFilter)
    return True


def build(env: Environment, op: Any, dt: float) -> None:
    _ROWS[op.kind if isinstance(op, Batch) else type(op)](env, op, dt)
