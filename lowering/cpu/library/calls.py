"""Calls of a C interface as data: made once by a kernel, or right here to ask the library.

A call returns a status, 0 for success, or a pointer. Calls create pointers in slots, which later
calls read.
"""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True)
class Slot:
    """The pointer that the slot of this number holds."""

    number: int


@dataclass(frozen=True)
class Out:
    """The address of a slot, which the call fills."""

    slot: Slot


@dataclass(frozen=True)
class Size:
    """A `size_t`."""

    value: int


Argument: TypeAlias = "Slot | Out | Size | int | float | bytes | None"
"""An `int` is a C int, a `float` a C float, `bytes` the address of constant data, None is NULL."""


@dataclass(frozen=True)
class Call:
    """One call; `result` is the slot of the pointer that it returns, None for a status."""

    function: str
    arguments: tuple[Argument, ...]
    result: Slot | None = None


class CallFailedError(Exception):
    """A function returned another status than success."""


def make_calls(library: ctypes.CDLL, calls: Sequence[Call], slots: int) -> list[int | None]:
    """Make the calls in this process, and return the final contents of the slots.

    Raises:
        CallFailedError: a function did not succeed.

    """
    values: list[Any] = [ctypes.c_void_p() for _ in range(slots)]
    for call in calls:
        function = library[call.function]  # without types that others have set
        function.restype = ctypes.c_int if call.result is None else ctypes.c_void_p
        answer = function(*(_converted(each, values) for each in call.arguments))
        if call.result is not None:
            values[call.result.number] = ctypes.c_void_p(answer)
        elif answer != 0:
            raise CallFailedError(f"{call.function} returned status {answer}")
    return [value.value for value in values]


def _converted(argument: Argument, values: Sequence[Any]) -> Any:
    match argument:
        case Slot(number):
            return values[number]
        case Out(slot):
            return ctypes.byref(values[slot.number])
        case Size(value):
            return ctypes.c_size_t(value)
        case float():
            return ctypes.c_float(argument)
        case int():
            return ctypes.c_int(argument)
        case bytes():
            return ctypes.c_char_p(argument)
        case None:
            return None
