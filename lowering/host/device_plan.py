"""The plan of a device's functions, as data that a device plugin reads.

A plan consists of little-endian words of 8 bytes; the runtime's `src/plan_reader.h` has what the
plans of all devices have in common.
"""

import struct
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from xdsl.dialects import func
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from braid.analysis.diagnostics.locations import source_location
from braid.analysis.storage.strided_storage import is_only_storage
from braid.analysis.storage.tensor_storage import is_view, storage_bytes
from braid.dialects.braid.attribute_names import BUFFERS
from braid.dialects.braid.buffer import BufferAttr
from braid.dialects.braid.constants import ConstantOp, ParameterOp
from braid.lowering.host.values import buffers_of
from braid.support.errors import UnsupportedError

_SPACES = {"arena": 0, "weights": 1, "input": 2, "output": 3}


class Place(NamedTuple):
    """An address in a memory of the function: buffer `number` of its space. Three words."""

    space: int
    number: int
    offset: int


class PlannedFunction(ABC):
    """A function whose memory is planned, and the steps of its plan.

    Args:
        function: the function to plan; all its ops are calls or take no time.
        device: its device, for messages.
        copy: the word that begins a copy.

    """

    def __init__(self, function: FuncOp, *, device: str, copy: int) -> None:
        self.function = function
        self._device, self._copy = device, copy
        arguments = enumerate(function.body.block.args)
        self.places: dict[SSAValue, Place] = {
            value: Place(_SPACES["input"], n, 0) for n, value in arguments
        }
        """Where values are that were reached so far."""

    @abstractmethod
    def calls(self, op: func.CallOp) -> Iterator[bytes]:
        """Yield the steps of a call, whose operands and results are placed."""

    def plan(self) -> bytes:
        """Return its name and its steps.

        Raises UnsupportedError for control flow, which only the host can run.
        """
        steps = [step for op in self.function.body.block.ops for step in self._steps(op)]
        return b"".join((text(self.function.sym_name.data), words(len(steps)), *steps))

    def place_of(self, buffer: BufferAttr) -> Place:
        """Return where a buffer is. The device aligns inputs and outputs, and has one arena.

        Raises UnsupportedError for a memory that the device does not have.
        """
        space, _, number = buffer.space.data.partition(":")
        if space == "arena" and number:
            raise UnsupportedError(
                f"a {self._device} has no memory '{number}'",
                location=source_location(self.function),
            )
        index = int(number.partition(":")[0]) if number else 0
        return Place(_SPACES[space], index, buffer.offset.data)

    def _steps(self, op: Operation) -> Iterator[bytes]:
        match op:
            case func.ReturnOp():
                yield from self._returns(op)
            case func.CallOp():
                self._bind(op)
                yield from self.calls(op)
            case ConstantOp() | ParameterOp():
                self._bind(op)
            case _ if is_only_storage(op):
                self._bind(op)
            case _ if is_view(op):
                self.places[op.results[0]] = self.places[op.operands[0]]
            case _:
                raise UnsupportedError(
                    f"'{op.name}' cannot be part of a function that a {self._device} runs",
                    location=source_location(op),
                    hint="let the host run it: it runs the control flow around launches",
                )

    def _bind(self, op: Operation) -> None:
        """Bind results to where the memory plan places them."""
        for value, buffer in zip(op.results, buffers_of(op, BUFFERS, len(op.results)), strict=True):
            if buffer is not None:
                self.places[value] = self.place_of(buffer)

    def _returns(self, op: func.ReturnOp) -> Iterator[bytes]:
        """Copy results that are not where the caller wants them."""
        for index, value in enumerate(op.operands):
            target, source = Place(_SPACES["output"], index, 0), self.places[value]
            if source != target:
                yield words(self._copy, *target, *source, storage_bytes(value.type))


def flat(places: Iterable[Place]) -> Iterator[int]:
    """Yield the words of operands in order."""
    return (word for place in places for word in place)


def text(name: str) -> bytes:
    """Return a name: its length, and its bytes up to the next word."""
    data = name.encode()
    return words(len(data)) + data + b"\0" * (-len(data) % 8)


def words(*values: int) -> bytes:
    """Return signed words."""
    return struct.pack(f"<{len(values)}q", *values)


def doubles(*values: float) -> bytes:
    """Return floating-point words."""
    return struct.pack(f"<{len(values)}d", *values)
