"""What goes wrong, as exceptions that carry the message of the compiler or of the runtime."""

from __future__ import annotations

__all__ = ["Error", "CompileError", "ForkError"]


class Error(RuntimeError):
    """A failure of the runtime or of the system.

    status: name of the C API's code, such as "OCLC_E_BINDING" (`oclc.h` says what each means).
    cl_code: the error code of OpenCL, or 0.
    """

    def __init__(self, message: str, status: str = "OCLC_E_INTERNAL", cl_code: int = 0) -> None:
        super().__init__(message)
        self.status = status
        self.cl_code = cl_code

    def __reduce__(self) -> tuple[type[Error], tuple[str, str, int]]:
        return type(self), (str(self), self.status, self.cl_code)


class ForkError(Error):
    """A handle of the parent process was used after fork()."""

    def __init__(self, message: str, status: str = "OCLC_E_ARGUMENT", cl_code: int = 0) -> None:
        super().__init__(message, status, cl_code)


class CompileError(ValueError):
    """The model, or what was asked for, cannot be compiled.

    The message says what was wanted and found at which node, and what to do. In parts: stage ("import", "passes", ..), node and
    op (of the model, "" if it is none's fault), wanted, found, advice. causes: the lines of the message, one a cause where
    there are several (every operator that is not supported, say).
    """

    def __init__(self, message: str, parts: dict[str, str] | None = None) -> None:
        super().__init__(message)
        parts = parts or {}
        self.stage = parts.get("stage", "")
        self.node = parts.get("node", "")
        self.op = parts.get("op", "")
        self.wanted = parts.get("wanted", "")
        self.found = parts.get("found", "")
        self.advice = parts.get("advice", "")
        self.causes = [line.strip() for line in message.splitlines() if line.strip()]

    def __reduce__(self) -> tuple[type[CompileError], tuple[str, dict[str, str]]]:
        names = ("stage", "node", "op", "wanted", "found", "advice")
        return type(self), (str(self), {name: getattr(self, name) for name in names})
