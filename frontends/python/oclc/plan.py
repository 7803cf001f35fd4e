"""Compiling models, and plans: what a compilation gives and a session runs."""

from __future__ import annotations

import dataclasses
import json
import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _core, _opencl
from .devices import as_context

if TYPE_CHECKING:
    from .session import Session

__all__ = ["compile", "load", "Plan", "Entry", "Tensor", "Train", "ReportRow"]

Dimension = int | str


@dataclasses.dataclass(frozen=True)
class Tensor:
    """An input, an output or a variable. Dimensions are numbers or expressions of the plan's symbols ("N", "2*N + 1")."""

    dtype: str
    shape: tuple[Dimension, ...]
    open: bool = False  # an output whose size the run finds
    limit: int = 0  # where > 0: values lie in [0, limit) or are among `also`
    also: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True)
class Entry:
    """An entry point: what a run takes and gives, in order."""

    name: str
    inputs: dict[str, Tensor]
    outputs: dict[str, Tensor]
    launches: int  # kernels of a run; those inside a loop count once


@dataclasses.dataclass(frozen=True)
class ReportRow:
    """What became of a node of the model."""

    node: str
    operators: str  # core operators it was read as
    fate: str  # "kernel K", "fused into K", "folded", ..
    why_not: str  # why it was not fused further, or ""


@dataclasses.dataclass(frozen=True)
class Train:
    """What adds the entries train_step and eval_step to a plan; the words are those of `oclc --train`.

    loss: cross_entropy, nll, mse, l1, huber, bce_with_logits, with numbers as in "cross_entropy,label_smoothing=0.1", or output:
    the model's own output, one number, is the loss.
    optimizer: sgd, adam, adamw, nadam, adagrad, rmsprop, lion. lr and further numbers (momentum=0.9) are the optimizer's.
    output: the output that the loss reads (default: the first). frozen: prefixes of parameters that keep their values.
    mixed: None, "f16" or "bf16": activations and their gradients in 16 bits. recompute: elementwise values are computed again
    for the backward pass instead of kept. accumulate, init: add the entries accumulate_step and init.
    """

    loss: str = "cross_entropy"
    optimizer: str = "sgd"
    lr: float | None = None
    output: str = ""
    frozen: Sequence[str] = ()
    seed: int = 0
    accumulate: bool = False
    init: bool = False
    mixed: str | None = None
    recompute: bool = False
    numbers: Mapping[str, float] = dataclasses.field(default_factory=dict)

    def _optimizer_text(self) -> str:
        numbers = dict(self.numbers)
        if self.lr is not None:
            numbers["lr"] = self.lr
        return ",".join([self.optimizer, *(f"{name}={value!r}" for name, value in numbers.items())])


class Plan:
    """A compiled model. Outlives the process by save(); oclc.load() takes it back, and so do oclrun and the C and C++ APIs."""

    def __init__(self, handle: _core.Plan, rows: Iterable[tuple[str, str, str, str]] = (), reported: bool = False) -> None:
        self._handle = handle
        self._rows = [ReportRow(*row) for row in rows] if reported else None
        self._entries = {
            name: Entry(name, _tensors(inputs), _tensors(outputs), launches)
            for name, inputs, outputs, launches in handle.entries()
        }

    @property
    def entries(self) -> dict[str, Entry]:
        return dict(self._entries)

    @property
    def symbols(self) -> dict[str, tuple[int, int]]:
        """Named dimensions with the smallest and the largest value that the plan was compiled for."""
        return {name: (low, high) for name, low, high in self._handle.symbols()}

    @property
    def variables(self) -> dict[str, Tensor]:
        """State: parameters, statistics, the optimizer's; see Session.state."""
        return {name: Tensor(dtype, shape) for name, dtype, shape in self._handle.variables()}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the plan's file: at every moment `path` is the old file or the whole new one."""
        self._handle.save(os.fspath(path))

    def __bytes__(self) -> bytes:
        return self._handle.bytes()

    def sources(self) -> dict[str, str]:
        """OpenCL C of each program by its name."""
        return self._handle.sources()

    def report(self) -> list[ReportRow]:
        """A row a node of the model. Only of plans from oclc.compile(.., report=True)."""
        if self._rows is None:
            raise ValueError("the plan was compiled without its report; compile with report=True")
        return list(self._rows)

    def info(self, **dims: int) -> dict[str, Any]:
        """What `oclc info PLAN --json` prints, with these values of symbols (others: 1 or the smallest allowed)."""
        result: dict[str, Any] = json.loads(_core.plan_json(bytes(self), dims))
        return result

    def memory(self, entry: str | None = None, **dims: int) -> dict[str, int]:
        """Bytes on the device that an entry takes with these values of symbols, before anything is allocated."""
        return self._handle.memory(self._index(entry), dims)

    def session(self, device: Any = None, *, profile: bool = False) -> Session:
        """The plan on a device: a selection ("cpu", "gpu", "0", a part of a name), an oclc.Context, or a pair of pyopencl's
        context and queue (or of their addresses). Builds or loads the programs, and uploads the constants."""
        from .session import Session

        return Session(self, as_context(device), profile=profile)

    def _index(self, entry: str | None) -> int:
        names = list(self._entries)
        if entry is None:
            return names.index("predict") if "predict" in names else 0
        if entry not in names:
            raise KeyError(f"the plan has no entry '{entry}'; it has: {', '.join(names)}")
        return names.index(entry)

    def __repr__(self) -> str:
        info = self._handle.info()
        return f"<oclc.Plan of {info['model']!r} for target {info['target']}: {', '.join(self._entries)}>"


def _tensors(rows: list[Any]) -> dict[str, Tensor]:
    return {name: Tensor(dtype, shape, is_open, limit, tuple(also)) for name, dtype, shape, is_open, limit, also in rows}


def load(plan: str | os.PathLike[str] | bytes) -> Plan:
    """A plan from a file, whose constants stay in the mapped file, or from a file's bytes."""
    if isinstance(plan, bytes):
        return Plan(_core.Plan.of_bytes(plan))
    return Plan(_core.Plan.of_file(os.fspath(plan)))


def compile(
    model: Any,
    *,
    dims: Mapping[str, int] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    lengths: Mapping[str, int | None] | None = None,
    values: Mapping[str, float | Sequence[float]] | None = None,
    typical: Mapping[str, int] | None = None,
    carry: Mapping[str, str] | None = None,
    ops: Sequence[str | os.PathLike[str]] = (),
    target: str | None = None,
    device: str | None = None,
    precision: str = "fp32",
    subnormals: str = "keep",
    train: Train | None = None,
    disable: Sequence[str] = (),
    conv: str = "auto",
    gemm: str = "own",
    tuned: str | os.PathLike[str] | None = None,
    external_data_dir: str | os.PathLike[str] | None = None,
    allow_symlinks: bool = False,
    allow_newer_opset: bool = False,
    report: bool = False,
    progress: Callable[[str], None] | bool = False,
) -> Plan:
    """Compiles a model; the options are those of the program `oclc`.

    model: path of a file (ONNX, or `.pt2` of torch.export.save), the bytes of an ONNX model, or an onnx.ModelProto.
    dims: values of symbolic dimensions by name, others stay symbolic. shapes: shapes of inputs by name. lengths: elements of
      inputs that are sequences (None: an empty optional). values: inputs of numbers that are the same in each run, by name.
    typical: usual values of dimensions that stay symbolic, for which kernels are chosen.
    carry: names of outputs and of the inputs that they are in the next run; both stay on the device, see Session.run_steps. Such an
      input is state: Session.state reads and sets it, zeros at first. "h,state" for an input h: the output is no output then.
    ops: files of operators for nodes outside of ONNX.
    target: a row of device facts, no device is needed; device: compile for this device. Neither: the device found, else "cpu".
    precision: strict, fp32, fast, tf32, bf16.
    subnormals: "flush": numbers below 1.2e-38 may be 0; for values that decay from run to run, which are slow on some processors.
    train: an oclc.Train.
    progress: a function that is called with the name of each stage, or True for tqdm's bar (if it is installed).

    Raises CompileError, which names the node and says what to do; warnings of the compiler are Python's. The GIL is released.
    """
    path, data = _model(model)
    train_options: dict[str, Any] = {}
    if train is not None:
        train_options = {
            "loss": train.loss, "optimizer": train._optimizer_text(), "prediction": train.output, "frozen": list(train.frozen),
            "seed": train.seed, "accumulate": train.accumulate, "init": train.init, "mixed": train.mixed or "",
            "recompute": train.recompute,
        }  # fmt: skip
    options = request(
        path=path,
        bytes=data,
        dims=[f"{name}={value}" for name, value in (dims or {}).items()],
        # An input without axes needs none said.
        shapes=[f"{name}={'x'.join(map(str, shape))}" for name, shape in (shapes or {}).items() if len(shape) > 0],
        lengths=[f"{name}={'none' if value is None else value}" for name, value in (lengths or {}).items()],
        values=[f"{name}={_numbers(value)}" for name, value in (values or {}).items()],
        typical=[f"{name}={value}" for name, value in (typical or {}).items()],
        carries=[f"{output}={value}" for output, value in (carry or {}).items()],
        ops=[os.fspath(file) for file in ops],
        external_data_dir=os.fspath(external_data_dir or ""),
        allow_symlinks=allow_symlinks,
        allow_newer_opset=allow_newer_opset,
        target=target or "",
        device=device or "",
        disable=list(disable),
        tuned=os.fspath(tuned or ""),
        conv=conv,
        gemm=gemm,
        precision=precision,
        subnormals=subnormals,
        report=report,
        **train_options,
    )
    if target is None:
        _opencl.find_loader()
    with _Stages(progress) as stages:
        handle, rows = _core.compile(options, stages.at, lambda text: warnings.warn(text, stacklevel=4))
    return Plan(handle, rows, report)


def request(**given: Any) -> dict[str, Any]:
    """What _core.compile takes: these options, others by default."""
    options: dict[str, Any] = {
        "path": "", "bytes": None, "graph": False, "dims": [], "shapes": [], "lengths": [], "values": [], "typical": [],
        "carries": [], "ops": [],
        "external_data_dir": "", "allow_symlinks": False, "allow_newer_opset": False, "target": "", "device": "", "disable": [],
        "tuned": "", "conv": "auto", "gemm": "own", "precision": "fp32", "subnormals": "keep", "report": False, "loss": "", "optimizer": "",
        "prediction": "", "frozen": [], "seed": 0, "accumulate": False, "init": False, "mixed": "", "recompute": False,
        "constants": [],
    }  # fmt: skip
    options.update(given)
    return options


def _numbers(value: float | Sequence[float]) -> str:
    numbers = value if isinstance(value, Sequence) else [value]
    return ",".join(f"{int(number) if isinstance(number, bool) else number!r}" for number in numbers)


def _model(model: Any) -> tuple[str, bytes | None]:
    if isinstance(model, (str, os.PathLike)):
        path = os.fspath(model)
        if not path:
            raise ValueError("model: wanted the path of a file, found an empty text")
        return os.path.join(".", path) if path == "-" else path, None
    if isinstance(model, (bytes, bytearray, memoryview)):
        return "", bytes(model)
    if hasattr(model, "SerializeToString"):
        return "", model.SerializeToString()
    raise TypeError(f"model: wanted a path, the bytes of an ONNX model or an onnx.ModelProto, found {type(model).__name__}")


class _Stages:
    """Tells of a compilation's stages: to a function, by tqdm's bar, or not at all."""

    _names = ("device", "graph", "passes", "kernels", "schedule", "codegen", "plan", "write")

    def __init__(self, progress: Callable[[str], None] | bool) -> None:
        self._call = progress if callable(progress) else None
        self._bar: Any = None
        if progress is True:
            try:
                from tqdm.auto import tqdm  # type: ignore[import-not-found, import-untyped, unused-ignore]
            except ImportError:
                return
            self._bar = tqdm(total=len(self._names), unit="stage", leave=False)

    @property
    def at(self) -> Callable[[str], None] | None:
        return self._at if self._call or self._bar is not None else None

    def _at(self, name: str) -> None:
        if self._call:
            self._call(name)
        if self._bar is not None:
            self._bar.set_description(name)
            self._bar.update()

    def __enter__(self) -> _Stages:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()
