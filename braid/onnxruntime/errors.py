"""The exceptions of ONNX Runtime, raised where it raises them.

Each is a `BraidError` too, with a hint where there is one. Its text begins as ONNX Runtime's does,
since programs look for names such as `INVALID_ARGUMENT` in it.
"""

from typing import ClassVar

from braid.support.errors import BraidError, UnsupportedError


class OrtError(BraidError):
    """An error that has a number and a name among ONNX Runtime's statuses."""

    code: ClassVar[int]
    status: ClassVar[str]

    def __str__(self) -> str:
        hint = f"\nhint: {self.hint}" if self.hint else ""
        place = f"{self.location}: " if self.location is not None else ""
        return f"[ONNXRuntimeError] : {self.code} : {self.status} : {place}{self.message}{hint}"


class Fail(OrtError):
    """A run failed, or was ended."""

    code, status = 1, "FAIL"


class InvalidArgument(OrtError):
    """An input or the name of an output does not fit the model."""

    code, status = 2, "INVALID_ARGUMENT"


class NoSuchFile(OrtError):
    """There is no file at the path of the model."""

    code, status = 3, "NO_SUCHFILE"


class NoModel(OrtError):
    """There is no model."""

    code, status = 4, "NO_MODEL"


class EngineError(OrtError):
    """Not raised by braid."""

    code, status = 5, "ENGINE_ERROR"


class RuntimeException(OrtError):
    """Not raised by braid."""

    code, status = 6, "RUNTIME_EXCEPTION"


class InvalidProtobuf(OrtError):
    """The file, or the bytes, of the model cannot be decoded."""

    code, status = 7, "INVALID_PROTOBUF"


class ModelLoaded(OrtError):
    """Not raised by braid."""

    code, status = 8, "MODEL_LOADED"


class NotImplementedStatus(OrtError, UnsupportedError):
    """The model has an op, or the program asks for something, that braid does not have."""

    code, status = 9, "NOT_IMPLEMENTED"


class InvalidGraph(OrtError):
    """The model is not valid."""

    code, status = 10, "INVALID_GRAPH"


class EPFail(OrtError):
    """Not raised by braid, which has no fallback either."""

    code, status = 11, "EP_FAIL"


class ModelLoadCanceled(OrtError):
    """Not raised by braid."""

    code, status = 12, "MODEL_LOAD_CANCELED"


class ModelRequiresCompilation(OrtError):
    """Not raised by braid, whose sessions compile their models."""

    code, status = 13, "MODEL_REQUIRES_COMPILATION"


class NotFound(OrtError):
    """Not raised by braid."""

    code, status = 14, "NOT_FOUND"


class WrongValueError(BraidError, ValueError):
    """The error where ONNX Runtime raises Python's `ValueError`."""


class WrongTypeError(BraidError, TypeError):
    """The error where ONNX Runtime raises Python's `TypeError`."""


class WrongAttributeError(BraidError, AttributeError):
    """The error where ONNX Runtime raises Python's `AttributeError`."""


class WrongUseError(BraidError, RuntimeError):
    """The error where ONNX Runtime raises Python's `RuntimeError`."""
