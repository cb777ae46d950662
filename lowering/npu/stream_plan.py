"""The plan of a chip's functions: what each plays, calls and copies, for the plugin `npu-sim`.

The format is described in the runtime's `src/npu/program.h`.
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
from braid.dialects.braid.attribute_names import BUFFERS
from braid.dialects.braid.buffer import BufferAttr
from braid.dialects.braid.constants import ConstantOp, ParameterOp
from braid.lowering.host.values import buffers_of
from braid.lowering.npu.streamed_group import OWN, StreamedGroup
from braid.support.errors import UnsupportedError
from braid.targets.machines.target import BackendDescription
from braid.targets.simulator.instructions import Kind
from braid.targets.simulator.simulate import fetch_seconds

MAGIC = b"BRDNPLAN"
VERSION = 1
_PLAY, _CALL, _COPY = 0, 1, 2
_SPACES = {"arena": 0, "weights": 1, "input": 2, "output": 3}
_OWN_SPACE = 4

Place = tuple[int, int, int]
"""A memory, the number of an input or output, and bytes into it."""


@dataclass(frozen=True)
class Played:
    """Stream number `number` of the device, and the names of results' kernels there."""

    number: int
    group: StreamedGroup
    names: Mapping[str, str]


def plan_bytes(
    functions: Sequence[FuncOp], chip: BackendDescription, streams: Mapping[str, Played]
) -> bytes:
    """Return the plan of functions whose memory is planned.

    `streams` are those of the kernels that are streams, by symbol; other kernels are the host's.
    Raises UnsupportedError for a function with control flow, which only the host can run.
    """
    parts = [MAGIC, _words(VERSION), _chip(chip), _words(len(functions))]
    for function in functions:
        steps = list(_Steps(function, streams))
        parts += [_name(function.sym_name.data), _words(len(steps)), *steps]
    return b"".join(parts)


def _chip(chip: BackendDescription) -> bytes:
    ports = [port.name for port in chip.ports]
    parts = [_words(chip.memories[0].bytes), _doubles(fetch_seconds(chip)), _words(len(chip.units))]
    for number, unit in enumerate(chip.units):
        executes = sum(1 << Kind.named(kind) for kind in chip.executes(number))
        port = ports.index(unit.port) if unit.port else -1
        parts += [_words(executes), _doubles(unit.rate, unit.startup_seconds), _words(port)]
    return b"".join(
        (*parts, _words(len(ports)), _doubles(*(port.bandwidth for port in chip.ports)))
    )


class _Steps:
    """The steps of a function, each as it stands in the plan."""

    def __init__(self, function: FuncOp, streams: Mapping[str, Played]) -> None:
        self._function, self._streams = function, streams
        self._places: dict[SSAValue, Place] = {}

    def __iter__(self) -> Iterator[bytes]:
        block = self._function.body.block
        for index, argument in enumerate(block.args):
            self._places[argument] = (_SPACES["input"], index, 0)
        for op in block.ops:
            yield from self._step(op)

    def _step(self, op: Operation) -> Iterator[bytes]:
        match op:
            case func.CallOp():
                self._bind(op)
                yield self._call(op)
            case func.ReturnOp():
                yield from self._returns(op)
            case ConstantOp() | ParameterOp():
                self._bind(op)
            case _ if is_only_storage(op):
                self._bind(op)
            case _ if is_view(op):
                self._places[op.results[0]] = self._places[op.operands[0]]
            case _:
                raise UnsupportedError(
                    f"'{op.name}' cannot be part of a function that a chip runs",
                    location=source_location(op),
                    hint="let the host run it: it runs the control flow around launches",
                )

    def _bind(self, op: Operation) -> None:
        """Bind results to where the memory plan places them."""
        for value, buffer in zip(op.results, buffers_of(op, BUFFERS, len(op.results)), strict=True):
            if isinstance(buffer, BufferAttr):
                space, _, number = buffer.space.data.partition(":")
                index = int(number.partition(":")[0]) if number else 0
                self._places[value] = (_SPACES[space], index, buffer.offset.data)

    def _call(self, op: func.CallOp) -> bytes:
        symbol = op.callee.root_reference.data
        operands = [self._places[value] for value in op.operands]
        results = [self._places[value] for value in op.results]
        played = self._streams.get(symbol)
        if played is None:
            places = [*operands, *results]
            flat = (word for place in places for word in place)
            return _words(_CALL) + _name(symbol) + _words(len(places), *flat)
        about = played.group
        tensors = [(_OWN_SPACE, 0, 0) if n == OWN else operands[n] for n in about.tensors]
        flat = (word for place in tensors for word in place)
        parts = [_words(_PLAY, played.number, len(tensors), *flat, len(results))]
        for (kernel, numbers), place in zip(about.results, results, strict=True):
            parts.append(_name(played.names[kernel] if kernel else ""))
            parts.append(_words(len(numbers), *numbers, *place))
        return b"".join(parts)

    def _returns(self, op: func.ReturnOp) -> Iterator[bytes]:
        """Copy results that are not where the caller wants them."""
        for index, value in enumerate(op.operands):
            target, source = (_SPACES["output"], index, 0), self._places[value]
            if source != target:
                yield _words(_COPY, *target, *source, storage_bytes(value.type))


def _name(text: str) -> bytes:
    data = text.encode()
    return _words(len(data)) + data + b"\0" * (-len(data) % 8)


def _words(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}q", *values)


def _doubles(*values: float) -> bytes:
    return struct.pack(f"<{len(values)}d", *values)
