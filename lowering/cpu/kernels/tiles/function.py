"""The kernel function of tiled groups: tiles in an order that reuses copies, class by class."""

import math
from collections.abc import Sequence

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, IndexType, MemRefType, ModuleOp, i8
from xdsl.ir import Attribute, Block, Region, SSAValue

from braid.analysis.storage.strided_storage import span, stored_choice
from braid.analysis.storage.tensor_storage import storage_bytes
from braid.analysis.tiles.tiles import box_bytes
from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.buffer import aligned
from braid.dialects.braid.dtypes import bytes_of
from braid.dialects.braid.regions import FusedOp
from braid.lowering.common.argument_attributes import NOALIAS, argument_attributes
from braid.lowering.cpu.kernels.tiles.code import TileCode, TileEmitter
from braid.lowering.cpu.kernels.tiles.memory import Notes, Place
from braid.lowering.cpu.unit.vector_unit import VectorUnit
from braid.lowering.emit.emitter import Emitter, Index
from braid.targets.kernels.kernel_family import Kernel

_NOTE_BYTES = 8


def tiled_kernel(
    group: FusedOp, symbol: str, unit: VectorUnit, codes: Sequence[TileCode]
) -> Kernel:
    """Return the kernel that computes the tiles of all classes, one per grid iteration."""
    notes = 1 + max(len(code.copied) for code in codes)
    head = aligned(notes * _NOTE_BYTES)
    scratch_bytes = head + max(code.scratch_bytes for code in codes)
    values = [*group.inputs, *group.outputs]
    buffers = [MemRefType(i8, [bytes]) for bytes in _spanned_bytes(group)]
    types: list[Attribute] = [*buffers, MemRefType(i8, [scratch_bytes]), IndexType(), IndexType()]
    entry = Block(arg_types=types)
    *arguments, scratch, begin, end = entry.args
    outside: dict[SSAValue, SSAValue] = dict(
        zip((*group.body.block.args, *group.terminator.arguments), arguments, strict=True)
    )
    e = Emitter(entry, unit)
    kept = Notes(e, Place(scratch, 0), notes)
    kept.forget()
    emitters = [TileEmitter(e, code, outside, Place(scratch, head), kept) for code in codes]
    counts = [1 + max(code.tiles.last[dim] for code in codes) for dim in _dims(codes)]
    order = sorted(_dims(codes), key=lambda dim: -_moved_bytes(codes[0], dim))

    def tile(index: Index) -> None:
        found = e.coordinates(index, [counts[dim] for dim in order])
        numbers = [found[order.index(dim)] for dim in _dims(codes)]
        _dispatch(e, numbers, list(range(len(codes))), codes, emitters, kept, 0)

    e.loop(begin, end, 1, tile)
    e.effect(func.ReturnOp())
    attributes = list(argument_attributes(len(group.inputs), len(group.outputs)))
    attributes.insert(len(values), NOALIAS)
    function = func.FuncOp(symbol, (types, []), Region(entry), arg_attrs=ArrayAttr(attributes))
    inner = [op for code in codes for op in (*code.members.globals, *code.members.kernels.values())]
    features = sorted({name for code in codes for name in code.members.features})
    return Kernel(
        symbol,
        ModuleOp([*inner, function]),
        math.prod(counts),
        scratch_bytes,
        features=tuple(features),
    )


def _spanned_bytes(group: FusedOp) -> list[int]:
    """Return the bytes from the first to the last element of each operand, then of each result."""
    choice = stored_choice(group)
    layouts = (*choice.operands, *choice.results)
    return [
        storage_bytes(value.type)
        if layout.strides is None
        else span(shape_of(value), layout.strides) * bytes_of(element_type_of(value))
        for value, layout in zip((*group.operands, *group.results), layouts, strict=True)
    ]


def _dims(codes: Sequence[TileCode]) -> range:
    return range(len(codes[0].tiles.first))


def _moved_bytes(code: TileCode, dim: int) -> int:
    """Return the bytes of the inputs that are others in the next tile along `dim`."""
    tile, steps = code.tiles.tile, code.tiles.steps[dim]
    moved, first = 0, 0
    for value, box in tile.inputs:
        if any(steps[first : first + len(box)]):
            moved += box_bytes(value, box)
        first += len(box)
    return moved


def _dispatch(
    e: Emitter,
    numbers: Sequence[Index],
    chosen: Sequence[int],
    codes: Sequence[TileCode],
    emitters: Sequence[TileEmitter],
    notes: Notes,
    dim: int,
) -> None:
    """Find the class of a tile dim by dim, then emit it."""
    if dim == len(numbers):
        (only,) = chosen
        notes.when_new(0, only, lambda: notes.forget(1))
        emitters[only].emit(numbers)
        return
    bound = min(codes[number].tiles.last[dim] for number in chosen) + 1
    below = [number for number in chosen if codes[number].tiles.first[dim] < bound]
    above = [number for number in chosen if codes[number].tiles.first[dim] >= bound]

    def descend(part: Sequence[int], next_dim: int) -> None:
        _dispatch(e, numbers, part, codes, emitters, notes, next_dim)

    if above:
        e.branch(numbers[dim], bound, lambda: descend(below, dim + 1), lambda: descend(above, dim))
    else:
        descend(below, dim + 1)
