"""Apply elementwise nests on the result to the sums of a product before they are stored.

Sums lie in shared memory, row by row; a thread takes as many neighbours in a row as make 16 bytes,
reads the other operands of the nests there, and writes the results.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, cast

from xdsl.dialects import memref
from xdsl.dialects.builtin import IntegerType, MemRefType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from braid.dialects.braid.dtypes import bytes_of
from braid.lowering.common.loop_nest import loops_of
from braid.lowering.common.tensor_loops import apply_map
from braid.lowering.gpu.contraction.code import Code, Value
from braid.lowering.gpu.contraction.problem import Part
from braid.lowering.gpu.nests.wide_access import (
    ACCESS_BYTES,
    compute,
    element_of,
    load_vector,
    store_vector,
)

NUMBER_OF = {"f32": "f32", "bf16": "bf16", "f16": "f16", "i32": "s32"}
"""PTX's names of types of results."""
Lanes = list[SSAValue]
Point = dict[int, Value]
"""The index of each dim of the contraction's nest, where it is not 0."""


@dataclass(frozen=True)
class EpilogueNest:
    """An elementwise nest; `dims` are the contraction's dims for its own."""

    nest: linalg.GenericOp
    dims: tuple[int, ...]


@dataclass(frozen=True)
class Epilogue:
    """Elementwise nests in order after a contraction, and the values that are written.

    `dims` are the contraction's dims for those of each buffer that is made.
    """

    steps: tuple[EpilogueNest, ...]
    dims: Mapping[SSAValue, tuple[int, ...]]
    results: tuple[SSAValue, ...]

    @staticmethod
    def of(
        product: linalg.GenericOp, nests: Sequence[linalg.GenericOp], results: Sequence[SSAValue]
    ) -> "Epilogue | None":
        """Return the epilogue; None unless the nests compute at each element of the product from
        that element.
        """
        start = loops_of(product)
        dims: dict[SSAValue, tuple[int, ...]] = {}
        first = _permutation(start.result)
        if first is None:
            return None
        dims[product.outputs[0]] = first
        steps: list[EpilogueNest] = []
        for nest in nests:
            own = _dims_of(nest, dims)
            loops = loops_of(nest)
            if own is None or loops.extents != tuple(start.extents[dim] for dim in own):
                return None
            for value, map in zip(nest.operands, loops.maps, strict=True):
                order = _permutation(map)
                if value in nest.outputs and order is not None:
                    dims[value] = tuple(own[dim] for dim in order)
                elif value in nest.outputs or (
                    value in dims
                    and (order is None or dims[value] != tuple(own[dim] for dim in order))
                ):
                    return None
            steps.append(EpilogueNest(nest, own))
        return Epilogue(tuple(steps), dims, tuple(results)) if dims.keys() >= set(results) else None

    @property
    def inner(self) -> int | None:
        """The dim along which neighbours in the first result lie."""
        dims = self.dims[self.results[0]]
        return dims[-1] if dims else None

    def width(self, columns: Sequence[Part]) -> int:
        """Return how many neighbours among these columns a thread handles at once."""
        if not columns or columns[-1].factor != 1:
            return 1
        if any(self.dims[value][-1] != columns[-1].dim for value in self.results):
            return 1
        types = [cast(MemRefType[Any], v.type) for v in (*self.results, *self.leaves)]
        if any(type.element_type == IntegerType(1) for type in types):
            return 1
        narrowest = min(bytes_of(type.element_type) for type in types[: len(self.results)])
        whole = [columns[-1].extent]
        whole += [s for value in self.results for s in _strides(value)[:-1]]
        if any(_strides(value)[-1] != 1 for value in self.results):
            return 1
        fits = (w for w in (16, 8, 4, 2) if w * narrowest <= ACCESS_BYTES)
        return next((w for w in fits if all(n % w == 0 for n in whole)), 1)

    @property
    def leaves(self) -> list[SSAValue]:
        """Operands that nests read."""
        return [
            value
            for step in self.steps
            for value, argument in zip(step.nest.inputs, step.nest.body.block.args, strict=False)
            if value not in self.dims and argument.uses
        ]

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
        held = self.compute(code, sums, point, lane_dim, values)
        zero = code.index(code.number(0))
        known = {dim: code.index(value) for dim, value in point.items()}
        for result in self.results:
            buffer, place = values[result], [known.get(dim, zero) for dim in self.dims[result]]
            if len(sums) == 1:
                code.builder.insert(memref.StoreOp.get(held[result][0], buffer, place))
            else:
                store_vector(code.builder, held[result], buffer, place)

    def compute(
        self,
        code: Code,
        sums: Lanes,
        point: Point,
        lane_dim: int | None,
        values: Mapping[SSAValue, SSAValue],
    ) -> Mapping[SSAValue, Lanes]:
        """Compute what `emit` stores: the values that each buffer gets."""
        (product,) = list(self.dims)[:1]
        held: dict[SSAValue, Lanes] = {product: sums}
        zero = code.index(code.number(0))
        known = {dim: code.index(value) for dim, value in point.items()}
        for step in self.steps:
            nest = step.nest
            columns: dict[SSAValue, Lanes] = {}
            maps = loops_of(nest).maps
            place = [known.get(dim, zero) for dim in step.dims]
            lane = step.dims.index(lane_dim) if lane_dim in step.dims else None
            for value, argument, map in zip(nest.inputs, nest.body.block.args, maps, strict=False):
                if argument.uses and value in held:
                    columns[argument] = held[value]
                elif argument.uses:
                    read = values[value]
                    columns[argument] = _read(code, read, map, place, lane, len(sums))
            lanes: list[list[SSAValue]] = []
            for number in range(len(sums)):
                own = {argument: column[number] for argument, column in columns.items()}
                lanes.append(compute(code.builder, nest, {**values, **own}))
            for number, output in enumerate(nest.outputs):
                held[output] = [lane[number] for lane in lanes]
        return held

    def steps_of(self, result: SSAValue) -> dict[int, int]:
        """Return the elements from one index of each dim of the contraction to the next, in a
        result.
        """
        return dict(zip(self.dims[result], _strides(result), strict=True))

    def number_of(self, result: SSAValue) -> tuple[str | None, int]:
        """Return PTX's name of the type of a result's elements, if it has one, and their bytes."""
        type = cast(MemRefType[Any], result.type).element_type
        return NUMBER_OF.get(str(type)), bytes_of(type)


def _dims_of(
    nest: linalg.GenericOp, known: Mapping[SSAValue, tuple[int, ...]]
) -> tuple[int, ...] | None:
    """Return the contraction's dims for those of an elementwise nest that reads known values."""
    loops = loops_of(nest)
    first = len(nest.inputs)
    if not all(loops.is_parallel) or any(
        isinstance(op, linalg.IndexOp) for op in nest.body.block.ops
    ):
        return None
    if any(argument.uses for argument in nest.body.block.args[first:]):
        return None
    for value, map in zip(nest.inputs, loops.maps, strict=False):
        order = _permutation(map)
        if value in known and order is not None and len(order) == len(loops.extents):
            dims = dict(zip(order, known[value], strict=True))
            return tuple(dims[dim] for dim in range(len(dims)))
    return None


def _permutation(map: AffineMap) -> tuple[int, ...] | None:
    """Return the dims that a map lists, if it lists some or all of them, each once."""
    dims = [expr.position for expr in map.results if isinstance(expr, AffineDimExpr)]
    return tuple(dims) if len(dims) == len(map.results) == len(set(dims)) else None


def _read(
    code: Code,
    buffer: SSAValue,
    map: AffineMap,
    place: Sequence[SSAValue],
    lane: int | None,
    width: int,
) -> Lanes:
    """Return the elements of an operand that are neighbours along dim `lane` of a nest.

    One that is repeated, a vector, or one by one.
    """
    b = code.builder
    if lane is None or width == 1 or all(lane not in e.used_dims() for e in map.results):
        return [b.insert(memref.LoadOp.get(buffer, _index(code, map, place))).res] * width
    if _is_vector(buffer, map, lane, width):
        loaded = load_vector(b, buffer, _index(code, map, place), width)
        return [element_of(b, loaded, n) for n in range(width)]
    lanes: Lanes = []
    for n in range(width):
        own = list(place)
        own[lane] = code.add(own[lane], code.index(code.number(n))) if n else own[lane]
        lanes.append(b.insert(memref.LoadOp.get(buffer, _index(code, map, own))).res)
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


def _is_vector(buffer: SSAValue, map: AffineMap, lane: int, width: int) -> bool:
    """Return whether neighbours along a dim of a nest are neighbours in memory, at aligned
    places.
    """
    *outer, inner = map.results
    strides = _strides(buffer)
    follows = isinstance(inner, AffineDimExpr) and inner.position == lane and strides[-1] == 1
    aligned = all(stride % width == 0 for stride in strides[:-1])
    return follows and aligned and all(lane not in expr.used_dims() for expr in outer)


def _index(code: Code, map: AffineMap, point: Sequence[SSAValue]) -> list[SSAValue]:
    return [
        point[expr.position]
        if isinstance(expr, AffineDimExpr)
        else apply_map(code.builder, expr, point)
        for expr in map.results
    ]


def _strides(buffer: SSAValue) -> list[int]:
    strides = cast(MemRefType[Any], buffer.type).get_strides()
    return [] if strides is None else [int(stride or 0) for stride in strides]
