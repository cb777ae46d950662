"""The dims along which an op may be split, the operands of its parts, and the bytes of the
largest."""

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from xdsl.ir import Operation, SSAValue

from braid.analysis.storage.memory_graph import value_bytes
from braid.analysis.storage.strided_storage import has_storage
from braid.analysis.tiles.op_tiles import iteration_domain, op_tile
from braid.dialects.braid.attributes import layout_of
from braid.dialects.braid.base import StructuredOp, element_type_of, shape_of
from braid.dialects.braid.boxes import Box, whole
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.dtypes import bytes_of
from braid.dialects.braid.movement import TransposeOp
from braid.dialects.braid.pooling import PoolOp
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.resize import ResizeOp
from braid.dialects.braid.tiling import IterationDim, Tile
from braid.dialects.braid.transposed_convolution import ConvTransposeOp

IN_ORDER = ConvOp | ConvTransposeOp | PoolOp | ResizeOp
"""Ops that are split along batch, channels, and then spatial dims."""

_FEW = 8
"""Parts that are all looked at."""


@dataclass(frozen=True)
class Part:
    """Elements `start` to `start + size` of dim `dim` of a tensor."""

    dim: int
    start: int
    size: int


@dataclass(frozen=True)
class PartTile:
    """A part of an op as a tile, with what it has of the operands that are cut."""

    box: Box
    tile: Tile
    operands: Mapping[int, Part]


@dataclass(frozen=True)
class Largest:
    """Extents that no part exceeds: of the result, and of operands by (index, dim)."""

    made: int
    operands: Mapping[tuple[int, int], int]


class SplitDim:
    """Dim number `dim` of an op's iteration domain: its parts, and their needs.

    `extent` elements in whole `unit`s; `combine` names the elementwise op that joins the partial
    results of a reduced dim, and is None for a dim of the result.
    """

    def __init__(self, op: Operation, dim: int, domain: list[IterationDim]) -> None:
        self.op = op
        self.dim = dim
        self.extent = domain[dim].extent
        self.unit = domain[dim].unit
        self.combine = domain[dim].combine
        self._whole = whole([each.extent for each in domain])
        self._tiles: dict[Part, PartTile | None] = {}
        self._largest: dict[int, Largest | None] = {}

    def parts(self, count: int) -> list[Part]:
        """Return `count` parts whose sizes differ by at most one `unit`.

        Twice as many parts are the halves of these parts, and so for every multiple.
        """
        units = self.extent // self.unit
        cuts = [-(-index * units // count) * self.unit for index in range(count + 1)]
        return [Part(self.dim, begin, end - begin) for begin, end in itertools.pairwise(cuts)]

    def tile(self, part: Part) -> PartTile | None:
        """Return how a part is computed; None where it cannot be, or needs an operand cut in two
        dims.
        """
        if part not in self._tiles:
            self._tiles[part] = self._find_tile(part)
        return self._tiles[part]

    def _find_tile(self, part: Part) -> PartTile | None:
        box = (*self._whole[: self.dim], (part.start, part.size), *self._whole[self.dim + 1 :])
        tile = op_tile(self.op, box)
        operands: dict[int, Part] = {}
        for index, needed in enumerate(tile.operands if tile else ()):
            shape = shape_of(self.op.operands[index])
            for dim, range in enumerate(needed or ()):
                if range != (0, shape[dim]):
                    if index in operands:
                        return None
                    operands[index] = Part(dim, *range)
        return tile and PartTile(box, tile, operands)

    @property
    def can_be_cut(self) -> bool:
        """Return whether there are parts, the first one or both halves."""
        if self.extent < 2 * self.unit:
            return False
        return self.tile(self._first) is not None or None not in map(self.tile, self.parts(2))

    @property
    def _first(self) -> Part:
        return Part(self.dim, 0, self.unit)

    @cached_property
    def has_halo(self) -> bool:
        """Return whether what a part needs depends on where it is, not on its size alone.

        For a single op it does not where both ends need as much of the operands as all parts do on
        average. Groups may read other things in between.
        """
        if isinstance(self.op, FusedOp):
            return True
        ends = [self._first, Part(self.dim, self.extent - self.unit, self.unit)]
        return not all(
            tile is not None
            and all(
                need.size * self.extent == self.unit * shape_of(self.op.operands[index])[need.dim]
                for index, need in tile.operands.items()
            )
            for tile in map(self.tile, ends)
        )

    def largest(self, count: int) -> Largest | None:
        """Return the needs of the largest of `count` parts; None if not all of them can be made."""
        if count not in self._largest:
            self._largest[count] = self._find_largest(count)
        return self._largest[count]

    def _find_largest(self, count: int) -> Largest | None:
        made, operands = 0, dict[tuple[int, int], int]()
        if not self.has_halo and (unit := self.tile(self._first)) is not None:
            units = -(-(self.extent // self.unit) // count)
            needs = {(index, need.dim): units * need.size for index, need in unit.operands.items()}
            return Largest(units * self.unit, needs)
        for part in self._typical_parts(count):
            tile = self.tile(part)
            if tile is None:
                return None
            made = max(made, part.size)
            for index, needed in tile.operands.items():
                key = index, needed.dim
                operands[key] = max(operands.get(key, 0), needed.size)
        return Largest(made, operands)

    def _typical_parts(self, count: int) -> list[Part]:
        """Return the part that needs the most.

        Reads by affine indices are smaller at the ends, because of padding, and otherwise as large
        as the part.
        """
        parts = self.parts(count)
        if count <= _FEW or not isinstance(self.op, StructuredOp):
            return parts
        inside = parts[_FEW // 4 : -_FEW // 4]
        most = max(part.size for part in inside)
        largest = [part for part in inside if part.size == most]
        return [*parts[: _FEW // 4], largest[len(largest) // 2], *parts[-_FEW // 4 :]]


def split_dims(
    op: Operation, reductions: bool = False, among: Collection[int] | None = None
) -> list[SplitDim]:
    """Return the dims along which `op` may be split, the most preferred first; empty if it cannot
    be.

    Convolutions, pooling, resizes: batch, channels, then spatial dims. Transposes: first the dims
    that stay in place. Others: outermost in storage first, but those with a halo last. Reduced
    dims come after all others and only with `reductions`, since their parts must be joined.
    None where it is decided where tensors of `op` lie. With `among`, only dims with these numbers.
    """
    if has_storage(op):
        return []
    domain = iteration_domain(op)
    numbers = range(len(domain)) if among is None else [n for n in among if n < len(domain)]
    dims = [SplitDim(op, number, domain) for number in numbers]
    of_result = _preferred(op, [dim for dim in dims if not dim.combine and dim.can_be_cut])
    reduced = [dim for dim in dims if dim.combine and reductions and dim.can_be_cut]
    return [*of_result, *reduced]


def _preferred(op: Operation, dims: list[SplitDim]) -> list[SplitDim]:
    if isinstance(op, IN_ORDER | FusedOp):
        return dims
    if isinstance(op, TransposeOp):
        permutation = op.permutation.get_values()
        return sorted(_outermost_first(op, dims), key=lambda dim: permutation[dim.dim] != dim.dim)
    return sorted(_outermost_first(op, dims), key=lambda dim: dim.has_halo)


def _outermost_first(op: Operation, dims: list[SplitDim]) -> list[SplitDim]:
    layout = layout_of(op.results[0].type)
    if layout.is_abstract:
        return dims
    return sorted(dims, key=lambda dim: layout.permutation.index(dim.dim))


Extents = dict[int, int]
"""The extent of each dim of a value that is cut; other dims are whole."""


def op_bytes(op: Operation) -> int:
    """Return the bytes of all operands, each once, and results. Raises UnsupportedError for open
    dims.
    """
    return sum(value_bytes(value) for value in (*dict.fromkeys(op.operands), *op.results))


def part_bytes(op: Operation, dims: Sequence[SplitDim], counts: Mapping[int, int]) -> float:
    """Return the bytes of the largest of the parts when each dim is split into `counts[dim]` parts.

    The largest parts along every dim are taken together; where a reduced dim is split, adding
    two partial results counts as well. Infinite where a dim cannot be split into this many parts.
    """
    cut: dict[int, Extents] = {}
    made: Extents = {}
    for dim in dims:
        if (count := counts.get(dim.dim, 1)) == 1:
            continue
        if count > dim.extent // dim.unit:
            return math.inf
        largest = dim.largest(count)
        if largest is None:
            return math.inf
        made[dim.dim] = largest.made
        for (index, number), size in largest.operands.items():
            extents = cut.setdefault(index, {})
            extents[number] = max(extents.get(number, 0), size)
    needed = _bytes(op, cut, made)
    accumulates = any(dim.combine and counts.get(dim.dim, 1) > 1 for dim in dims)
    return max(needed, 3 * _value_bytes(op.results[0], made)) if accumulates else needed


def _bytes(op: Operation, cut: Mapping[int, Extents], made: Extents) -> int:
    """Return an operand that is read twice counts once if both reads need the same part."""
    distinct = {
        (operand, tuple(sorted(cut.get(index, {}).items())))
        for index, operand in enumerate(op.operands)
    }
    whole = [value_bytes(operand) for operand, extents in distinct if not extents]
    needed = [(operand, dict(extents)) for operand, extents in distinct if extents]
    needed += [(result, made) for result in op.results]
    return sum(whole) + sum(_value_bytes(value, extents) for value, extents in needed)


def _value_bytes(value: SSAValue, extents: Extents) -> int:
    shape = [extents.get(dim, extent) for dim, extent in enumerate(shape_of(value))]
    storage = layout_of(value.type).storage_shape(shape)
    return math.prod(storage) * bytes_of(element_type_of(value))
