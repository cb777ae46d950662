"""Options as attributes; only existing ones may be set."""

import operator
from collections.abc import Iterator
from typing import Any, cast

from braid.onnxruntime.errors import (
    NotImplementedStatus,
    WrongAttributeError,
    WrongTypeError,
    WrongUseError,
)
from braid.onnxruntime.numbers import NamedNumber
from braid.support.errors import did_you_mean


class GraphOptimizationLevel(NamedNumber):
    """The level to which ONNX Runtime optimizes; braid always does all that keeps results."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(NamedNumber):
    """The mode in which kernels that do not need each other run: in sequence or side by side."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(NamedNumber):
    """The order of kernels in ONNX Runtime; braid orders them by the memory that they need."""

    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


class CheckedOptions:
    """Attributes with defaults, which alone may be set, to values of the same type; and entries.

    Values that ONNX Runtime converts are converted: numpy's numbers, truth values, and bytes as
    text.
    """

    def __init__(self) -> None:
        """Begin with the defaults, and without entries."""
        vars(self)["_entries"] = {}

    def __setattr__(self, name: str, value: object) -> None:
        known = self._defaults()
        if name not in known:
            raise WrongAttributeError(
                f"{type(self).__name__} has no option '{name}'",
                hint=did_you_mean(name, known) or f"the options are {', '.join(known)}",
            )
        expected = type(cast(object, known[name]))
        taken = _as_kind(expected, value)
        if taken is None:
            raise WrongTypeError(
                f"{type(self).__name__}.{name} is {value!r:.200}, expected {_KINDS[expected]}"
            )
        super().__setattr__(name, taken)

    @property
    def entries(self) -> dict[str, str]:
        """The configuration entries that were added."""
        return vars(self)["_entries"]

    def entry(self, key: str) -> str:
        """Return the value of an entry. Raises `RuntimeError` where it was not added."""
        if key not in self.entries:
            raise WrongUseError(
                f"{type(self).__name__} does not have configuration with key: {key}"
            )
        return self.entries[key]

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        return {
            name: value
            for name, value in vars(cls).items()
            if not name.startswith("_") and type(value) in _KINDS
        }

    def changed(self) -> Iterator[tuple[str, object]]:
        """Yield the attributes that do not have their defaults."""
        for name, default in self._defaults().items():
            if (value := getattr(self, name)) != default:
                yield name, value


_KINDS: dict[type, str] = {
    bool: "True or False",
    int: "a whole number",
    str: "text",
    GraphOptimizationLevel: "a GraphOptimizationLevel",
    ExecutionMode: "an ExecutionMode",
    ExecutionOrder: "an ExecutionOrder",
}


def whole_number(value: object) -> int | None:
    """Return a whole number of Python or numpy as one of Python, None for anything else."""
    try:
        number = operator.index(cast(Any, value))
    except TypeError:
        return None
    return number if -(2**31) <= number < 2**31 else None


def _as_kind(kind: type, value: object) -> object:
    """Return a value as one of this type, None where ONNX Runtime would not convert it."""
    if kind is bool:
        # Texts and lists have no truth of their own, only a length.
        try:
            return bool(value) if value is None or hasattr(type(value), "__bool__") else None
        except ValueError:  # arrays of more than one element are neither
            return None
    if kind is int:
        return whole_number(value)
    if kind is str and isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return None
    if not isinstance(value, kind):
        return None
    return str(value) if kind is str else value  # numpy has texts of its own type


def check_entry(key: object, value: object, known: frozenset[str], what: str) -> None:
    """Raise an error unless a key is known, and it and its value are texts."""
    for each in (key, value):
        if not isinstance(each, str):
            raise WrongTypeError(f"{each!r:.200} in an entry of {what}, expected text")
    if key not in known:
        raise NotImplementedStatus(
            f"there is no configuration '{key}' of {what}",
            hint=did_you_mean(cast(str, key), known, 0.8)
            or "its keys are those of ONNX Runtime, and 'braid.' with an option of braid.compile, "
            "such as braid.numerics",
        )
