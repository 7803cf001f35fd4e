"""Equal operators of a step as one: those of one kind and shapes of which none needs another are one operator on stacks of signals.

A model of many small ensembles has an operator of each kind for each of them. Signals that equal operators use in the same place
are joined to one array, so that a stack of them is a range of it. The work is linear in operators and signals; nengo's optimizer,
which merges signals pair by pair, is not needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from nengo.builder import operator, processes
from nengo.builder.neurons import SimNeurons
from nengo.synapses import LinearFilter

from .neurons import ELEMENTWISE


# Operators and neuron types with a row of a user's, which knows of no stacks.
ALONE: set[type] = set()


class Joined:
    """Bases of one shape as the rows of an array."""

    is_view = False

    def __init__(self, members: Iterable[Any]) -> None:
        self.members = list(members)
        self.shape = (len(self.members), *self.members[0].shape)
        self.ndim = len(self.shape)
        self.size = int(np.prod(self.shape, dtype=np.int64))

    @property
    def base(self) -> Joined:
        return self

    @property
    def initial_value(self) -> np.ndarray:
        return np.stack([member.initial_value for member in self.members])


class Stack:
    """Signals of one shape in one base, as an array of one dimension more."""

    def __init__(self, base: Any, where: np.ndarray) -> None:
        self.base = base
        self.where = where  # among the base's elements
        self.shape = where.shape
        self.ndim = where.ndim
        self.size = where.size


class Layout:
    """Where signals are: in their base, or in what it was joined to."""

    def __init__(self) -> None:
        self._joined: dict[Any, tuple[Joined, int]] = {}
        self._elements: dict[Any, np.ndarray] = {}

    def join(self, bases: list[Any]) -> None:
        joined = Joined(bases)
        for i, base in enumerate(bases):
            self._joined[base] = (joined, i)

    def is_joined(self, base: Any) -> bool:
        return base in self._joined

    def base(self, signal: Any) -> Any:
        found = self._joined.get(signal.base)
        return signal.base if found is None else found[0]

    def place(self, signal: Any) -> tuple[Any, np.ndarray]:
        """The base, and the numbers of the signal's elements among its elements, in the signal's shape."""
        if isinstance(signal, Stack):
            return signal.base, signal.where
        where = self._of_base(signal)
        found = self._joined.get(signal.base)
        if found is None:
            return signal.base, where
        joined, row = found
        return joined, where + row * signal.base.size

    def _of_base(self, signal: Any) -> np.ndarray:
        base = signal.base
        if isinstance(base, Joined) or not signal.is_view:
            return np.arange(base.size, dtype=np.int64).reshape(base.shape)
        if base not in self._elements:
            self._elements[base] = np.arange(base.size, dtype=np.int64).reshape(base.shape)
        all_of_base = self._elements[base]
        size = all_of_base.itemsize
        strides = tuple(s * size for s in signal.elemstrides)
        return np.ndarray(signal.shape, dtype=np.int64, buffer=all_of_base, offset=signal.elemoffset * size, strides=strides)


class Batch:
    """Operators of one kind as one: its signals by the kind's names are stacks, or one signal that all of them read."""

    def __init__(self, kind: type, count: int, signals: dict[str, Any], first: Any) -> None:
        self.kind = kind
        self.count = count
        self.first = first
        self.state = {}
        for name, signal in signals.items():
            if name.startswith("state."):
                self.state[name[6:]] = signal
            else:
                setattr(self, name, signal)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.first, name)  # what all have in common


def _signals(op: Any) -> dict[str, Any] | None:
    """By name, of an operator that may be one of a batch."""
    kind = type(op)
    if kind in ALONE:
        return None
    if kind is operator.Reset:
        return {"dst": op.dst}
    if kind is operator.Copy and op.src_slice is None and op.dst_slice is None and op.src.shape == op.dst.shape:
        return {"src": op.src, "dst": op.dst}
    if kind is operator.ElementwiseInc:
        return {"A": op.A, "X": op.X, "Y": op.Y}
    if kind is operator.DotInc:
        scalar = op.A.ndim == 0 or op.X.ndim == 0
        matrix = op.A.ndim == 2 and op.X.ndim in (1, 2) and op.Y.size == op.A.shape[0] * (op.X.size // max(1, op.X.shape[0]))
        return {"A": op.A, "X": op.X, "Y": op.Y} if scalar or matrix else None
    if kind is SimNeurons and type(op.neurons) in ELEMENTWISE - ALONE and not op.state_extra:
        return {"J": op.J, "output": op.output, **{f"state.{name}": s for name, s in op.state.items()}}
    if kind is processes.SimProcess and op.input is not None and isinstance(op.process, LinearFilter):
        return {"input": op.input, "output": op.output, **{f"state.{name}": s for name, s in op.state.items()}}
    return None


def _kept(op: Any) -> Any:
    """What operators of one batch have in common beside shapes."""
    kind = type(op)
    if kind is operator.Reset:
        return np.asarray(op.value).tobytes()
    if kind is operator.Copy:
        return op.inc
    if kind is SimNeurons:
        return op.neurons
    return (op.process, op.mode) if kind is processes.SimProcess else None


def _depths(order: list[Any], dependents: dict[Any, list[Any]]) -> dict[Any, int]:
    """Of each operator that many follow one another before it; of one depth none needs another."""
    depths = dict.fromkeys(order, 0)
    for op in order:
        for later in dependents[op]:
            if later in depths:
                depths[later] = max(depths[later], depths[op] + 1)
    return depths


def batched(
    order: list[Any], dependents: dict[Any, list[Any]], written: set[Any], joins: Callable[[Any], bool]
) -> tuple[list[Any], Layout]:
    """The operators in an order that their dependences allow, equal ones as one, and where their signals are. `joins`: whether a
    base may be a part of an array."""
    layout = Layout()
    groups: dict[Any, list[Any]] = {}
    depths = _depths(order, dependents)
    for op in sorted(order, key=lambda op: depths[op]):
        signals = _signals(op)
        if signals is None or any(s.sparse for s in signals.values()):
            groups[op] = [op]
            continue
        form = tuple((s.shape, s.base.shape, s.base in written) for s in signals.values())
        groups.setdefault((depths[op], type(op), _kept(op), tuple(signals), form), []).append(op)
    _join_signals([ops for ops in groups.values() if len(ops) > 1 and type(ops[0]) is not operator.Reset], layout, joins)
    result = []
    for ops in groups.values():
        result += [ops[0]] if len(ops) == 1 else _batches(ops, layout)
    return result, layout


def _join_signals(groups: list[list[Any]], layout: Layout, joins: Callable[[Any], bool]) -> None:
    """Sorts each group's operators by what has places already, parts of larger signals or joined ones, and joins what its other
    signals are in that order. Groups that write parts of larger signals come first, since these cannot be moved."""

    def is_placed(signal: Any) -> bool:
        return signal.size < signal.base.size or layout.is_joined(signal.base)

    def rank(ops: list[Any]) -> tuple[int, int]:
        op = ops[0]
        outs = {id(s) for s in (*op.sets, *op.incs, *op.updates)}
        placed = [id(s) in outs for s in _signals(op).values() if is_placed(s)]
        return (2 if any(placed) else 1 if placed else 0), len(ops)

    left = list(groups)
    while left:
        ops = max(left, key=rank)
        left = [other for other in left if other is not ops]
        names = list(_signals(ops[0]))
        signals = {name: [_signals(op)[name] for op in ops] for name in names}
        outs = {id(s) for s in (*ops[0].sets, *ops[0].incs, *ops[0].updates)}
        placed = [name for name in names if all(is_placed(s) for s in signals[name])]
        if placed:
            anchor = max(placed, key=lambda name: (id(signals[name][0]) in outs, len(set(signals[name]))))
            numbers: dict[Any, int] = {}
            keys = []
            for signal in signals[anchor]:
                base, where = layout.place(signal)
                keys.append((numbers.setdefault(base, len(numbers)), int(where.reshape(-1)[0]) if where.size else 0))
            order = sorted(range(len(ops)), key=lambda i: keys[i])
            ops[:] = [ops[i] for i in order]
            signals = {name: [of_name[i] for i in order] for name, of_name in signals.items()}
        for of_name in signals.values():
            bases = [s.base for s in of_name]
            if len(set(bases)) == len(bases) and all(not is_placed(s) and joins(s.base) for s in of_name):
                layout.join(bases)


def _batches(ops: list[Any], layout: Layout) -> Iterator[Any]:
    """One for each set of bases, and for each time that one place is written to."""
    sets: dict[Any, list[Any]] = {}
    times: dict[Any, np.ndarray] = {}  # by base and element
    for op in ops:
        signals = _signals(op)
        places = [layout.place(s) for s in (*op.sets, *op.incs, *op.updates)]
        counts = [times.setdefault(base, np.zeros(base.size, dtype=np.int64)) for base, _ in places]
        time = max((int(count[where].max(initial=0)) for count, (_, where) in zip(counts, places, strict=True)), default=0)
        for count, (_, where) in zip(counts, places, strict=True):
            count[where] = time + 1
        sets.setdefault((time, tuple(layout.base(s) for s in signals.values())), []).append(op)
    for members in sets.values():
        if len(members) == 1:
            yield members[0]
            continue
        stacks = {}
        for name, first in (_signals(members[0]) or {}).items():
            signals = [_signals(op)[name] for op in members]
            is_written = any(first is s for s in (*members[0].sets, *members[0].incs, *members[0].updates))
            if not is_written and all(signal is first for signal in signals):
                stacks[name] = first
                continue
            places = [layout.place(signal) for signal in signals]
            stacks[name] = Stack(places[0][0], np.stack([where for _, where in places]))
        yield Batch(type(members[0]), len(members), stacks, members[0])
