"""The plan of a GPU's functions: what each launches, as data that the device plugin reads.

The format is described in the runtime's `src/cuda/plan.h`.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import func
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from braid.analysis.diagnostics.locations import source_location
from braid.analysis.storage.strided_storage import is_only_storage
from braid.analysis.storage.tensor_storage import is_view, storage_bytes
from braid.dialects.braid.attribute_names import BUFFERS, SCRATCH_BUFFER
from braid.dialects.braid.buffer import BufferAttr
from braid.dialects.braid.constants import ConstantOp, ParameterOp
from braid.lowering.gpu.launch.launches import Launch, Launches
from braid.lowering.host.values import buffers_of
from braid.support.errors import UnsupportedError

MAGIC = b"RAIDPLAN"
VERSION = 2
_LAUNCH, _COPY = 0, 1
_ADDRESS, _TENSOR_MAP = 0, 1
_NUMBERS = {"u8": 0, "s8": 0, "s32": 3, "f16": 6, "f32": 7, "bf16": 9, "tf32": 11}
"""The numbers of `CUtensorMapDataType`; bytes have no sign there."""
_SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}
"""The numbers of `CUtensorMapSwizzle`."""
_SPACES = {"arena": 0, "weights": 1, "input": 2, "output": 3}


@dataclass(frozen=True)
class Place:
    """An address in a memory of the function: buffer `number` of its space."""

    space: int
    number: int
    offset: int

    @staticmethod
    def of(buffer: BufferAttr, function: FuncOp) -> "Place":
        """Return where a buffer is. The device aligns inputs and outputs, and has one arena.

        Raises UnsupportedError for a memory that the device has not.
        """
        space, _, number = buffer.space.data.partition(":")
        if space == "arena" and number:
            raise UnsupportedError(
                f"a GPU has no memory '{number}'", location=source_location(function)
            )
        index = int(number.partition(":")[0]) if number else 0
        return Place(_SPACES[space], index, buffer.offset.data)

    def words(self) -> tuple[int, ...]:
        """Return the words as they stand in the plan."""
        return self.space, self.number, self.offset


def plan_bytes(functions: Sequence[FuncOp], kernels: Mapping[str, Launches]) -> bytes:
    """Return the plan of functions whose memory is planned; `kernels` are those they call, by
    symbol.

    Raises UnsupportedError for a function with control flow, which only the host can run.
    """
    parts = [MAGIC, _words(VERSION, len(functions))]
    for function in functions:
        steps = list(_Steps(function, kernels))
        parts += [_name(function.sym_name.data), _words(len(steps)), *steps]
    return b"".join(parts)


class _Steps:
    """The steps of a function, each as it stands in the plan."""

    def __init__(self, function: FuncOp, kernels: Mapping[str, Launches]) -> None:
        self._function = function
        self._kernels = kernels
        self._places: dict[SSAValue, Place] = {}

    def __iter__(self) -> Iterator[bytes]:
        block = self._function.body.block
        for index, argument in enumerate(block.args):
            self._places[argument] = Place(_SPACES["input"], index, 0)
        for op in block.ops:
            yield from self._step(op)

    def _step(self, op: Operation) -> Iterator[bytes]:
        match op:
            case ConstantOp() | ParameterOp():
                self._bind(op)
            case func.CallOp():
                self._bind(op)
                yield from self._calls(op)
            case func.ReturnOp():
                yield from self._returns(op)
            case _ if is_only_storage(op):
                self._bind(op)
            case _ if is_view(op):
                self._places[op.results[0]] = self._places[op.operands[0]]
            case _:
                raise UnsupportedError(
                    f"'{op.name}' cannot be part of a function that a GPU runs",
                    location=source_location(op),
                    hint="let the host run it: it runs the control flow around launches",
                )

    def _bind(self, op: Operation) -> None:
        """Bind results to where the memory plan places them."""
        for value, buffer in zip(op.results, buffers_of(op, BUFFERS, len(op.results)), strict=True):
            if buffer is not None:
                self._places[value] = Place.of(buffer, self._function)

    def _calls(self, op: func.CallOp) -> Iterator[bytes]:
        places = [self._places[value] for value in (*op.operands, *op.results)]
        scratch = op.attributes.get(SCRATCH_BUFFER)
        if isinstance(scratch, BufferAttr):
            places.append(Place.of(scratch, self._function))
        kernel = self._kernels[op.callee.root_reference.data]
        for launch in kernel.launches:
            yield _launch(launch, kernel, places)

    def _returns(self, op: func.ReturnOp) -> Iterator[bytes]:
        """Copy results that are not where the caller wants them."""
        for index, value in enumerate(op.operands):
            target, source = Place(_SPACES["output"], index, 0), self._places[value]
            if source != target:
                size = storage_bytes(value.type)
                yield _words(_COPY, *target.words(), *source.words(), size)


def _launch(launch: Launch, kernel: Launches, places: Sequence[Place]) -> bytes:
    arguments = [
        word
        for number in launch.arguments
        for word in (_ADDRESS, *places[number].words(), kernel.buffer_bytes[number])
    ]
    for map in launch.tensor_maps:
        place, size = places[map.argument], kernel.buffer_bytes[map.argument]
        dims = (*map.extents, *map.strides, *map.box)
        about = (_NUMBERS[map.number], len(map.extents), _SWIZZLES[map.swizzle])
        arguments += [_TENSOR_MAP, *place.words(), size, *about, *dims]
    count = len(launch.arguments) + len(launch.tensor_maps)
    return b"".join(
        [
            _words(_LAUNCH),
            _name(launch.entry),
            _name(launch.unaligned_entry or launch.entry),
            _words(launch.blocks, launch.threads, launch.shared_bytes, count),
            _words(*arguments),
        ]
    )


def _name(text: str) -> bytes:
    data = text.encode()
    return _words(len(data)) + data + b"\0" * (-len(data) % 8)


def _words(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}q", *values)
