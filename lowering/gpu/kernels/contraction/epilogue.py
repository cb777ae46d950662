"""What happens to the sums of a product before they are stored: elementwise nests on the result.

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
from braid.lowering.gpu.kernels.contraction.code import Code, Value
from braid.lowering.gpu.kernels.contraction.problem import Contraction, Part
from braid.lowering.gpu.kernels.wide_nest import (
    ACCESS_BYTES,
    compute,
    element_of,
    load_vector,
    store_vector,
)

Lanes = list[SSAValue]
Point = dict[int, Value]
"""The index of each dim of the contraction's nest, where it is not 0."""


@dataclass(frozen=True)
class Epilogue:
    """Elementwise nests in order, the contraction that they begin with, and what is written."""

    problem: Contraction
    nests: tuple[linalg.GenericOp, ...]
    results: tuple[SSAValue, ...]

    @staticmethod
    def of(
        problem: Contraction, nests: Sequence[linalg.GenericOp], results: Sequence[SSAValue]
    ) -> "Epilogue | None":
        """None unless the nests compute at each element of the result from that element."""
        extents = _shape(problem.result)
        known = {problem.result}
        for nest in nests:
            loops = loops_of(nest)
            identity = AffineMap.identity(len(extents))
            if not all(loops.is_parallel) or loops.extents != extents:
                return None
            if any(isinstance(op, linalg.IndexOp) for op in nest.body.block.ops):
                return None
            first = len(nest.inputs)
            if any(map != identity for map in loops.maps[first:]):
                return None
            if any(argument.uses for argument in nest.body.block.args[first:]):
                return None
            for value, map in zip(nest.inputs, loops.maps, strict=False):
                if value in known and map != identity:
                    return None
            known.update(nest.outputs)
        return Epilogue(problem, tuple(nests), tuple(results)) if known >= set(results) else None

    @property
    def width(self) -> int:
        """How many neighbours a thread takes at once."""
        columns, result = self.problem.columns, self.problem.result
        last = _result_dims(self.problem)[-1] if _shape(result) else None
        if not columns or columns[-1].dim != last or columns[-1].factor != 1:
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
        made = {self.problem.result, *(value for nest in self.nests for value in nest.outputs)}
        return [
            value
            for nest in self.nests
            for value, argument in zip(nest.inputs, nest.body.block.args, strict=False)
            if value not in made and argument.uses
        ]

    def emit(
        self, code: Code, sums: Lanes, point: Point, values: Mapping[SSAValue, SSAValue]
    ) -> None:
        """Computes with neighbouring sums from `point` on; `values` are the entry's buffers."""
        held: dict[SSAValue, Lanes] = {self.problem.result: sums}
        dims = _result_dims(self.problem)
        zero = code.index(code.number(0))
        place = [code.index(point[d]) if d in point else zero for d in dims]
        for nest in self.nests:
            columns: dict[SSAValue, Lanes] = {}
            maps = loops_of(nest).maps
            for value, argument, map in zip(nest.inputs, nest.body.block.args, maps, strict=False):
                if argument.uses and value in held:
                    columns[argument] = held[value]
                elif argument.uses:
                    columns[argument] = self._read(code, values[value], map, place, len(sums))
            lanes: list[list[SSAValue]] = []
            for lane in range(len(sums)):
                own = {argument: column[lane] for argument, column in columns.items()}
                lanes.append(compute(code.builder, nest, {**values, **own}))
            for number, output in enumerate(nest.outputs):
                held[output] = [lane[number] for lane in lanes]
        for result in self.results:
            buffer = values[result]
            if len(sums) == 1:
                code.builder.insert(memref.StoreOp.get(held[result][0], buffer, place))
            else:
                store_vector(code.builder, held[result], buffer, place)

    def _read(
        self, code: Code, buffer: SSAValue, map: AffineMap, place: Sequence[SSAValue], width: int
    ) -> Lanes:
        """Neighbouring elements of an operand: one that is repeated, a vector, or one by one."""
        b = code.builder
        step = _last_step(buffer, map, width)
        if width > 1 and step == 1:
            loaded = load_vector(b, buffer, _index(code, map, place), width)
            return [element_of(b, loaded, n) for n in range(width)]
        lanes: Lanes = []
        for n in range(1 if step == 0 else width):
            *outer, last = place
            own = [*outer, code.add(last, code.index(code.number(n)))] if n else list(place)
            lanes.append(b.insert(memref.LoadOp.get(buffer, _index(code, map, own))).res)
        return lanes * width if step == 0 else lanes


def point_of(code: Code, parts: Sequence[Part], number: Value) -> Point:
    """The indices of dims at number `number` of the parts, row-major."""
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
    """Indices of dims, of which each point has a part."""
    merged: Point = {}
    for point in points:
        for dim, value in point.items():
            merged[dim] = code.add(merged[dim], value) if dim in merged else value
    return merged


def _result_dims(problem: Contraction) -> list[int]:
    """The dim of the contraction's nest for each dim of its result."""
    results = loops_of(problem.nest).result.results
    return [expr.position for expr in results if isinstance(expr, AffineDimExpr)]


def _last_step(buffer: SSAValue, map: AffineMap, width: int) -> int | None:
    """Elements from a point to its neighbour: 0, 1 where vectors are aligned, or None."""
    last = map.num_dims - 1
    if all(last not in expr.used_dims() for expr in map.results):
        return 0
    *outer, inner = map.results
    strides = _strides(buffer)
    follows = isinstance(inner, AffineDimExpr) and inner.position == last and strides[-1] == 1
    aligned = all(stride % width == 0 for stride in strides[:-1])
    return 1 if follows and aligned and all(last not in e.used_dims() for e in outer) else None


def _index(code: Code, map: AffineMap, point: Sequence[SSAValue]) -> list[SSAValue]:
    return [
        point[expr.position]
        if isinstance(expr, AffineDimExpr)
        else apply_map(code.builder, expr, point)
        for expr in map.results
    ]


def _shape(buffer: SSAValue) -> tuple[int, ...]:
    return tuple(cast(MemRefType[Any], buffer.type).get_shape())


def _strides(buffer: SSAValue) -> list[int]:
    strides = cast(MemRefType[Any], buffer.type).get_strides()
    return [] if strides is None else [int(stride or 0) for stride in strides]
