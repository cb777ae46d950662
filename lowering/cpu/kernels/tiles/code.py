"""The function of a tiled kernel: a loop over tiles that calls the members' code on each."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, MemRefType
from xdsl.ir import Attribute, Operation, SSAValue

from braid.analysis.nests.dims import row_major_strides
from braid.analysis.storage.strided_storage import span
from braid.analysis.tiles.tile_classes import TileClass
from braid.dialects.braid.attribute_names import BUFFERS, SCRATCH_BUFFER
from braid.dialects.braid.base import element_type_of
from braid.dialects.braid.boxes import count
from braid.dialects.braid.buffer import BufferAttr, aligned
from braid.dialects.braid.dtypes import bytes_of
from braid.lowering.cpu.kernels.copies.strided import Strided, copy_elements
from braid.lowering.cpu.kernels.tiles.members import Members
from braid.lowering.cpu.kernels.tiles.memory import Notes, Place
from braid.lowering.cpu.kernels.tiles.program import Port
from braid.lowering.emit.emitter import Emitter, Index


@dataclass(frozen=True)
class TileCode:
    """Tiles with the same code: their program's ports, and its members' code.

    In the scratch memory, copies of inputs come first, then that of the output, then the arena.
    """

    tiles: TileClass
    inputs: tuple[Port, ...]
    output: Port
    members: Members

    @property
    def copied(self) -> tuple[Port, ...]:
        """The ports with copies in the scratch memory, in the order in which they lie there."""
        return tuple(port for port in (*self.inputs, self.output) if port.is_copied)

    def copy_offset(self, port: Port) -> int:
        """Return where the copy of a port begins."""
        before = self.copied[: self.copied.index(port)]
        return sum(aligned(_bytes(other)) for other in before)

    @property
    def arena_offset(self) -> int:
        """The byte of the scratch memory at which the arena begins."""
        return sum(aligned(_bytes(port)) for port in self.copied)

    @property
    def scratch_bytes(self) -> int:
        """Bytes of copies and arena."""
        return self.arena_offset + aligned(self.members.arena_bytes)


def _bytes(port: Port) -> int:
    return count(port.box) * _element(port)


def _element(port: Port) -> int:
    return bytes_of(element_type_of(port.value))


class TileEmitter:
    """Emits one tile of a class; `arguments` are the kernel's buffers by value outside."""

    def __init__(
        self,
        e: Emitter,
        code: TileCode,
        arguments: dict[SSAValue, SSAValue],
        scratch: Place,
        notes: Notes | None,
    ) -> None:
        self._e = e
        self._code = code
        self._arguments = arguments
        self._scratch = scratch
        self._notes = notes

    def emit(self, numbers: Sequence[Index]) -> None:
        """Copy what must be copied, call the members, and copy the result out."""
        e, code = self._e, self._code
        moves = [e.sub(n, first) for n, first in zip(numbers, code.tiles.first, strict=True)]
        starts = {port: self._start(port, moves) for port in (*code.inputs, code.output)}
        places = {port: self._place(port, start) for port, start in starts.items()}
        for slot, port in enumerate(code.copied):
            if port is not code.output:
                assert self._notes is not None
                self._notes.when_new(
                    slot + 1, starts[port], lambda port=port: self._copy(port, starts[port], True)
                )
        for op in code.members.function.body.block.ops:
            if isinstance(op, func.CallOp):
                self._call(op, places)
        self._return(places)
        if code.output.is_copied:
            self._copy(code.output, starts[code.output], False)

    def _return(self, places: dict[Port, Place]) -> None:
        """Copy the result if no member computed it: it is an input."""
        last = self._code.members.function.body.block.last_op
        assert isinstance(last, func.ReturnOp)
        buffer = self._buffer_of(last.arguments[0])
        if buffer.space.data.startswith("output"):
            return
        e, port = self._e, self._code.output
        elements, bytes = count(port.box), _element(port)
        source = self._resolve(buffer, places).elements(e, bytes, elements)
        target = places[port].elements(e, bytes, elements)
        copy_elements(e, Strided(source, (1,)), Strided(target, (1,)), [elements])

    def _start(self, port: Port, moves: Sequence[Index]) -> Index:
        """Return the number of the port's first element in the value outside."""
        e, tiles = self._e, self._code.tiles
        rank = len(port.box)
        inputs = tiles.tile.inputs
        number = port.number if port.number >= 0 else len(inputs)
        first = sum(len(box) for _, box in inputs[:number])

        def elements(numbers: Sequence[int]) -> int:
            part = numbers[first : first + rank]
            return sum(n * stride for n, stride in zip(part, port.strides, strict=True))

        steps = [elements(step) for step in tiles.steps]
        return e.add(elements(tiles.tile.starts), e.dot(moves, steps))

    def _place(self, port: Port, start: Index) -> Place:
        e = self._e
        if port.is_copied:
            return self._scratch.plus(e, self._code.copy_offset(port))
        return Place(self._arguments[port.value], e.mul(start, _element(port)))

    def _copy(self, port: Port, start: Index, inward: bool) -> None:
        e, bytes = self._e, _element(port)
        strides = tuple(port.strides[dim] for dim in port.order)
        first = Place(self._arguments[port.value], e.mul(start, bytes))
        there = Strided(first.elements(e, bytes, span(port.shape, strides)), strides)
        inside = self._scratch.plus(e, self._code.copy_offset(port))
        here = Strided(inside.elements(e, bytes, count(port.box)), row_major_strides(port.shape))
        source, target = (there, here) if inward else (here, there)
        copy_elements(e, source, target, port.shape)

    def _call(self, call: func.CallOp, places: dict[Port, Place]) -> None:
        e, symbol = self._e, call.callee.root_reference.data
        code = self._code.members.kernels[symbol]
        buffers = [self._buffer_of(operand) for operand in call.operands]
        buffers += _buffers(call)
        scratch = call.attributes.get(SCRATCH_BUFFER)
        if isinstance(scratch, BufferAttr):
            buffers.append(scratch)
        types = code.function_type.inputs.data[: len(buffers)]
        views = [
            self._resolve(buffer, places).view(e, cast(MemRefType[Any], type))
            for buffer, type in zip(buffers, types, strict=True)
        ]
        grid = self._code.members.grids[symbol]
        e.effect(func.CallOp(code.sym_name.data, [*views, e.index(0), e.index(grid)], []))

    def _buffer_of(self, value: SSAValue) -> BufferAttr:
        if isinstance(value.owner, Operation):
            return _buffers(value.owner)[0]
        arguments = self._code.members.function.body.block.args
        return BufferAttr.input(list(arguments).index(cast(Any, value)))

    def _resolve(self, buffer: BufferAttr, places: dict[Port, Place]) -> Place:
        e, offset = self._e, buffer.offset.data
        space, _, number = buffer.space.data.partition(":")
        if space == "input":
            return places[self._code.inputs[int(number)]].plus(e, offset)
        if space == "output":
            return places[self._code.output].plus(e, offset)
        assert space == "arena", "a tile has no weights of its own"
        return self._scratch.plus(e, self._code.arena_offset + offset)


def _buffers(op: Operation) -> list[BufferAttr]:
    attribute = op.attributes[BUFFERS]
    assert isinstance(attribute, ArrayAttr)
    entries = cast(ArrayAttr[Attribute], attribute).data
    return [entry for entry in entries if isinstance(entry, BufferAttr)]
