"""Compute ops in parts, in MLIR's terms, for tiled kernels and for splitting.

As with MLIR's `TilingInterface`, an op has an iteration domain; a tile, a box of that domain, needs
a slice of every operand, and an op of the same kind on these slices computes it. `TensorOp` has the
methods; here are their results, and how they follow from a structure.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from xdsl.ir import Attribute
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
)

from braid.dialects.braid.boxes import Box, Range, hull, sizes, whole
from braid.dialects.braid.scalar import Load, Position, walk
from braid.dialects.braid.structure import Access, OperandSource, Stage, Structure

Pads = tuple[tuple[int, int], ...]
"""Elements of padding before and after, per dim of an operand."""


@dataclass(frozen=True)
class IterationDim:
    """A dim of an op's iteration domain: `extent` iterations, cut between whole `unit`s only.

    `combine` names the elementwise op that joins the partial results of a reduced dim; it is None
    for a dim of the result.
    """

    extent: int
    unit: int = 1
    combine: str | None = None


@dataclass(frozen=True)
class Tile:
    """The computation of a box of an op's iteration domain.

    It takes an op of the same kind on a box of each operand (None: not read), with `attributes` in
    place of the op's. If these depend on the position of the tile, `alike` has the attributes
    without it: tiles at other positions may be computed by the same code.
    """

    operands: tuple[Box | None, ...]
    attributes: Mapping[str, Attribute] = field(default_factory=dict[str, Attribute])
    alike: Hashable = None

    @property
    def key(self) -> Hashable:
        """Equal for tiles that the same code computes."""
        extents = tuple(None if box is None else sizes(box) for box in self.operands)
        return extents, self.alike or tuple(self.attributes.items())


@dataclass
class Reads:
    """The reads of a box: a box of every operand that is read, and the padding around it.

    `iterations` are those of each stage that is needed.
    """

    operands: dict[int, Box] = field(default_factory=dict[int, Box])
    pads: dict[int, Pads] = field(default_factory=dict[int, Pads])
    iterations: dict[int, Box] = field(default_factory=dict[int, Box])


def domain_of(structure: Structure) -> list[IterationDim]:
    """Return the dims of the result, then those that are reduced.

    A reduced dim can be cut only in an op with a single stage that indexes operands by the dim
    itself: otherwise no single op joins the partial results.
    """
    stage = structure.stages[structure.results[0]]
    rank = len(stage.result_shape)
    dims = [IterationDim(extent) for extent in stage.extents[:rank]]
    for dim, extent in enumerate(stage.extents[rank:], rank):
        joins = len(structure.stages) == 1 and _indexes_plainly(stage, dim)
        dims.append(IterationDim(extent, 1 if joins else extent, stage.combine))
    return dims


def _indexes_plainly(stage: Stage, dim: int) -> bool:
    indices = [expr for access in stage.reads for expr in access.map.results]
    return all(expr == AffineDimExpr(dim) for expr in indices if dim in expr.used_dims())


def structured_reads(
    structure: Structure, shapes: Sequence[Sequence[int]], box: Box
) -> Reads | None:
    """Return the reads of the iterations `box` of the last stage; `shapes` are the operands'.

    Dims after those of `box` are whole. Operands that are indexed only by whole dims are needed
    whole.

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
        ranges = (*needed[number], *whole(stage.extents[len(needed[number]) :]))
        reads.iterations[number] = ranges
        cut = {dim for dim, extent in enumerate(stage.extents) if ranges[dim] != (0, extent)}
        if not _is_movable(stage, cut):
            return None
        for access in stage.reads:
            index = access.source.index
            is_operand = isinstance(access.source, OperandSource)
            shape = shapes[index] if is_operand else structure.stages[index].result_shape
            found = _slice(access, ranges, cut, shape)
            boxes = reads.operands if is_operand else needed
            if found is None or (access.padding and (not is_operand or index in boxes)):
                return None
            boxes[index] = hull(boxes[index], found[0]) if index in boxes else found[0]
            if access.padding:
                reads.pads[index] = found[1]
    return reads


def _is_movable(stage: Stage, cut: set[int]) -> bool:
    """Return whether the body is the same wherever the box lies."""
    return not any(
        isinstance(node, Load) or (isinstance(node, Position) and node.dim in cut)
        for node in walk(stage.body)
    )


def _slice(
    access: Access, ranges: Box, cut: set[int], shape: Sequence[int]
) -> tuple[Box, Pads] | None:
    """Return the box of a source of this shape that is read, and the padding on either side."""
    first = [start for start, _ in ranges]
    last = [start + size - 1 for start, size in ranges]
    lows = access.padding.low if access.padding else (0,) * len(shape)
    highs = access.padding.high if access.padding else (0,) * len(shape)
    box: list[Range] = []
    pads: list[tuple[int, int]] = []
    for expr, low, high, extent in zip(access.map.results, lows, highs, shape, strict=True):
        if cut.isdisjoint(_used_dims(expr)):
            box.append((0, extent))
            pads.append((low, high))
            continue
        begin, end = expr.eval(first, ()) - low, expr.eval(last, ()) + 1 - low
        inner = max(begin, 0), min(end, extent)
        if not _is_monotone(expr) or inner[0] >= inner[1]:
            return None
        box.append((inner[0], inner[1] - inner[0]))
        pads.append((inner[0] - begin, end - inner[1]))
    return tuple(box), tuple(pads)


@lru_cache(maxsize=4096)
def _used_dims(expr: AffineExpr) -> frozenset[int]:
    return frozenset(expr.used_dims())


@lru_cache(maxsize=4096)
def _is_monotone(expr: AffineExpr) -> bool:
    """Return whether the index never falls when an iteration number grows."""
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
