"""Apply elementwise nests on the result to the sums of a product before they are stored.

Sums lie in shared memory, row by row; a thread takes as many neighbours in a row as make 16 bytes,
reads the other operands of the nests there, and writes the results.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects import memref
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from braid.analysis.nests.stage_steps import Part
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.dtypes import bytes_of
from braid.lowering.common.loop_nest import index_at
from braid.lowering.common.pointwise_body import pointwise_body
from braid.lowering.gpu.contraction.code import Code, Value
from braid.lowering.gpu.contraction.problem import ProductMatch
from braid.lowering.gpu.launch.entries import expand_magnitudes
from braid.lowering.gpu.nests.placement import Access, Placed, Placement
from braid.lowering.gpu.nests.wide_access import (
    ACCESS_BYTES,
    compute,
    element_of,
    load_vector,
    store_vector,
)
from braid.targets.kernels.kernel_family import InPlace

NUMBER_OF = {"f32": "f32", "bf16": "bf16", "f16": "f16", "i32": "s32"}
"""PTX's names of types of results."""
Lanes = list[SSAValue]
Point = dict[int, Value]
"""The index of each dim of the product, where it is not 0."""


@dataclass(frozen=True)
class Epilogue:
    """What is computed of each sum of a product, at the sum's point.

    The arguments of `body` are a sum, then an element of each leaf; it yields what is stored in
    each result. `rank` dims of the product are dims of the results. `body` uses `constants`.
    """

    body: Block
    leaves: tuple[Access, ...]
    results: tuple[Access, ...]
    constants: tuple[Operation, ...]
    rank: int

    @staticmethod
    def of(match: ProductMatch, placement: Placement) -> "Epilogue":
        """Return the epilogue of a group that is a product; see `at`."""
        results = list(zip(match.results, placement.results, strict=True))
        return Epilogue.at(match, placement.operands, results)

    @staticmethod
    def at(
        match: ProductMatch,
        places: Mapping[SSAValue, Placed],
        results: Sequence[tuple[SSAValue, Placed]],
    ) -> "Epilogue":
        """Return the epilogue of a product whose operands and results lie at these places.

        Raises UnsupportedError for an op without code.
        """
        product = match.op.output
        made = pointwise_body(match.after, product, [value for value, _ in results])
        expand_magnitudes(made.block)
        rank = len(shape_of(product))
        points = AffineMap.identity(rank)
        return Epilogue(
            made.block,
            tuple(
                places[leaf].access(map) for leaf, map in zip(made.leaves, made.maps, strict=True)
            ),
            tuple(place.access(points) for _, place in results),
            made.constants,
            rank,
        )

    @property
    def inner(self) -> int | None:
        """The dim along which neighbours in the first result lie."""
        return _last(self.results[0].map)

    @property
    def stored(self) -> tuple[SSAValue, ...]:
        """The values of the body that results get."""
        end = self.body.last_op
        assert isinstance(end, linalg.YieldOp)
        return tuple(end.arguments)

    def width(self, columns: Sequence[Part]) -> int:
        """Return how many neighbours among these columns a thread handles at once."""
        if not columns or columns[-1].factor != 1:
            return 1
        if any(_last(result.map) != columns[-1].dim for result in self.results):
            return 1
        if any(result.strides[-1] != 1 for result in self.results):
            return 1
        narrowest = min(bytes_of(result.element_type) for result in self.results)
        whole = [columns[-1].extent]
        whole += [stride for result in self.results for stride in result.strides[:-1]]
        fits = (w for w in (16, 8, 4, 2) if w * narrowest <= ACCESS_BYTES)
        return next((w for w in fits if all(n % w == 0 for n in whole)), 1)

    def in_place(
        self, buffers: Sequence[BlockArgument], read_elsewhere: Sequence[SSAValue]
    ) -> tuple[InPlace, ...]:
        """Return the pairs of an operand and a result of a kernel that may be one buffer.

        Each element of such an operand is read where the same one of the result is written, and
        not among what is `read_elsewhere`.
        """
        first = buffers.index(self.results[0].buffer)
        return tuple(
            (buffers.index(leaf.buffer), buffers.index(result.buffer) - first)
            for leaf in self.leaves
            if leaf.buffer not in read_elsewhere
            for result in self.results
            if (leaf.map, leaf.stored) == (result.map, result.stored)
        )

    def emit(
        self,
        code: Code,
        sums: Lanes,
        point: Point,
        lane_dim: int | None,
        values: Mapping[SSAValue, SSAValue],
    ) -> None:
        """Compute with sums that are neighbours along `lane_dim` from `point` on, and store them.

        `values` are the entry's buffers.
        """
        made = self.compute(code, sums, point, lane_dim, values)
        place = self._place(code, point)
        for lanes, result in zip(made, self.results, strict=True):
            buffer, index = values[result.buffer], index_at(code.builder, result.map, place)
            if len(lanes) == 1:
                code.builder.insert(memref.StoreOp.get(lanes[0], buffer, index))
            else:
                store_vector(code.builder, lanes, buffer, index)

    def compute(
        self,
        code: Code,
        sums: Lanes,
        point: Point,
        lane_dim: int | None,
        values: Mapping[SSAValue, SSAValue],
    ) -> list[Lanes]:
        """Compute what `emit` stores: the values of each result."""
        place = self._place(code, point)
        columns = [_read(code, leaf, values, place, lane_dim, len(sums)) for leaf in self.leaves]
        made = [
            compute(
                code.builder, self.body, {**values, **dict(zip(self.body.args, lane, strict=True))}
            )
            for lane in zip(sums, *columns, strict=True)
        ]
        return [list(lanes) for lanes in zip(*made, strict=True)]

    def _place(self, code: Code, point: Point) -> list[SSAValue]:
        """Return the index of each dim of the results."""
        zero = code.index(code.number(0))
        known = {dim: code.index(value) for dim, value in point.items()}
        return [known.get(dim, zero) for dim in range(self.rank)]

    def steps_of(self, result: Access) -> dict[int, int]:
        """Return the elements from one index of each dim of the product to the next."""
        dims = [dim for expr in result.map.results for dim in expr.used_dims()]
        return dict(zip(dims, result.strides, strict=True))

    def number_of(self, result: Access) -> tuple[str | None, int]:
        """Return PTX's name of the type of a result's elements, if it has one, and their bytes."""
        return NUMBER_OF.get(str(result.element_type)), bytes_of(result.element_type)


def _last(map: AffineMap) -> int | None:
    """Return the dim that the last index of a result is."""
    last = map.results[-1] if map.results else None
    return last.position if isinstance(last, AffineDimExpr) else None


def _read(
    code: Code,
    leaf: Access,
    values: Mapping[SSAValue, SSAValue],
    place: Sequence[SSAValue],
    lane: int | None,
    width: int,
) -> Lanes:
    """Return the elements of a leaf that are neighbours along dim `lane` of the product.

    One that is repeated, a vector, or one by one.
    """
    b, buffer = code.builder, values[leaf.buffer]
    if lane is None or width == 1 or all(lane not in e.used_dims() for e in leaf.map.results):
        return [b.insert(memref.LoadOp.get(buffer, index_at(b, leaf.map, place))).res] * width
    if _is_vector(leaf, lane, width):
        loaded = load_vector(b, buffer, index_at(b, leaf.map, place), width)
        return [element_of(b, loaded, n) for n in range(width)]
    lanes: Lanes = []
    for n in range(width):
        own = list(place)
        own[lane] = code.add(own[lane], code.index(code.number(n))) if n else own[lane]
        lanes.append(b.insert(memref.LoadOp.get(buffer, index_at(b, leaf.map, own))).res)
    return lanes


def point_of(code: Code, parts: Sequence[Part], number: Value) -> Point:
    """Return the indices of dims at number `number` of the parts, row-major."""
    point: Point = {}
    size = prod(part.extent for part in parts)
    for position, part in enumerate(parts):
        size //= part.extent
        own = code.div(number, size)
        if position > 0:
            own = code.rem(own, part.extent)
        own = code.mul(own, part.factor)
        point[part.dim] = code.add(point[part.dim], own) if part.dim in point else own
    return point


def merge_points(code: Code, *points: Point) -> Point:
    """Return indices of dims in which every point has a part."""
    merged: Point = {}
    for point in points:
        for dim, value in point.items():
            merged[dim] = code.add(merged[dim], value) if dim in merged else value
    return merged


def _is_vector(leaf: Access, lane: int, width: int) -> bool:
    """Return whether neighbours along a dim are neighbours in memory, at aligned places."""
    *outer, inner = leaf.map.results
    *apart, step = leaf.strides
    follows = isinstance(inner, AffineDimExpr) and inner.position == lane and step == 1
    aligned = all(stride % width == 0 for stride in apart)
    return follows and aligned and all(lane not in expr.used_dims() for expr in outer)
