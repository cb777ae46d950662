"""Which boxes of its operands a box of a structured op's result needs, from access maps."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
)

from braid.analysis.tiles.boxes import Box, Range, hull
from braid.dialects.braid.scalar import Load, Position, walk
from braid.dialects.braid.structure import Access, OperandSource, Padding, Stage, Structure

Pads = tuple[tuple[int, int], ...]
"""Elements of padding before and after, per dim of an operand."""


@dataclass
class Reads:
    """What a box of the result reads: a box of each operand that is read, and its padding."""

    operands: dict[int, Box] = field(default_factory=dict[int, Box])
    pads: dict[int, Pads] = field(default_factory=dict[int, Pads])


def read_boxes(structure: Structure, shapes: Sequence[Sequence[int]], box: Box) -> Reads | None:
    """The boxes that the elements `box` of the one result depend on, padding excluded.

    `shapes` are those of the operands.

    None where a body depends on the position along a dim that is cut, or reads at computed
    indices, where an index is not monotone, and where all that is read is padding.
    """
    if len(structure.results) != 1:
        return None
    reads = Reads()
    needed: dict[int, Box] = {structure.results[0]: box}
    for number in reversed(range(len(structure.stages))):
        if number not in needed:
            continue
        stage = structure.stages[number]
        ranges = _iterations(stage, needed[number])
        if not _is_movable(stage, ranges):
            return None
        for access in stage.reads:
            read = _read(access, ranges)
            if read is None:
                return None
            if isinstance(access.source, OperandSource):
                index = access.source.index
                if not _add_operand(reads, index, access.padding, shapes[index], read):
                    return None
                continue
            source = access.source.index
            needed[source] = hull(needed[source], read) if source in needed else read
    return reads


def _iterations(stage: Stage, box: Box) -> tuple[Range, ...]:
    """The iteration space of a part of the result: its dims come first, reduced ones are whole."""
    rest = stage.extents[len(box) :]
    return (*box, *((0, extent) for extent in rest))


def _is_movable(stage: Stage, ranges: Sequence[Range]) -> bool:
    """Whether the body is the same wherever in the result the part lies."""
    for node in walk(stage.body):
        if isinstance(node, Load):
            return False
        if isinstance(node, Position) and ranges[node.dim] != (0, stage.extents[node.dim]):
            return False
    return True


def _read(access: Access, ranges: Sequence[Range]) -> Box | None:
    """The box of a (padded) source that is read."""
    if not _is_monotone_map(access.map):
        return None
    first = [start for start, _ in ranges]
    last = [start + size - 1 for start, size in ranges]
    lows, highs = access.map.eval(first, ()), access.map.eval(last, ())
    return tuple((low, high - low + 1) for low, high in zip(lows, highs, strict=True))


def _add_operand(
    reads: Reads, index: int, padding: Padding | None, shape: Sequence[int], read: Box
) -> bool:
    """Adds the box that an operand is read at; False if it reads nothing but padding."""
    if padding is not None:
        return index not in reads.operands and _add_padded(reads, index, padding, shape, read)
    known = reads.operands.get(index)
    reads.operands[index] = read if known is None else hull(known, read)
    return True


def _add_padded(
    reads: Reads, index: int, padding: Padding, shape: Sequence[int], read: Box
) -> bool:
    ranges: list[Range] = []
    pads: list[tuple[int, int]] = []
    for (start, size), low, extent in zip(read, padding.low, shape, strict=True):
        begin, end = start - low, start - low + size
        first, last = max(begin, 0), min(end, extent)
        if first >= last:
            return False
        ranges.append((first, last - first))
        pads.append((first - begin, end - last))
    reads.operands[index] = tuple(ranges)
    reads.pads[index] = tuple(pads)
    return True


@lru_cache(maxsize=4096)
def _is_monotone_map(map: AffineMap) -> bool:
    return all(_is_monotone(expr) for expr in map.results)


def _is_monotone(expr: AffineExpr) -> bool:
    """Whether no index falls when an iteration number grows."""
    if isinstance(expr, AffineDimExpr | AffineConstantExpr):
        return True
    if not isinstance(expr, AffineBinaryOpExpr) or not _is_monotone(expr.lhs):
        return False
    match expr.kind:
        case AffineBinaryOpKind.Add:
            return _is_monotone(expr.rhs)
        case AffineBinaryOpKind.Mul:
            return isinstance(expr.rhs, AffineConstantExpr) and expr.rhs.value >= 0
        case AffineBinaryOpKind.FloorDiv:
            return isinstance(expr.rhs, AffineConstantExpr) and expr.rhs.value > 0
        case _:
            return False
