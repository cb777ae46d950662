"""`linalg.generic` and `linalg.fill` on buffers as loops, and the operands that these may
overwrite."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from xdsl.builder import Builder
from xdsl.dialects import memref, scf
from xdsl.dialects.builtin import IndexType, MemRefType
from xdsl.dialects.func import FuncOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.ir import Attribute, Block, BlockArgument, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.rewriter import InsertPoint

from braid.dialects.braid.dtypes import bytes_of
from braid.lowering.common.tensor_loops import apply_map, index_constant
from braid.targets.kernels.kernel_family import InPlace

Nest: TypeAlias = linalg.GenericOp | linalg.FillOp


@dataclass(frozen=True)
class Loops:
    """The iteration space of a nest: extents, and the access maps of its memref operands."""

    extents: tuple[int, ...]
    is_parallel: tuple[bool, ...]
    maps: tuple[AffineMap, ...]

    @property
    def result(self) -> AffineMap:
        """The map of the output."""
        return self.maps[-1]


def loops_of(op: Nest) -> Loops:
    """Return the loops of a nest; a fill iterates over its output."""
    if isinstance(op, linalg.FillOp):
        shape = _shape(op.outputs[0])
        return Loops(shape, (True,) * len(shape), (AffineMap.identity(len(shape)),))
    maps = tuple(attribute.data for attribute in op.indexing_maps)
    known = {
        expr.position: extent
        for map, operand in zip(maps, op.operands, strict=True)
        for expr, extent in zip(map.results, _shape(operand), strict=True)
        if isinstance(expr, AffineDimExpr)
    }
    parallel = IteratorTypeAttr.parallel()
    kinds = tuple(kind == parallel for kind in op.iterator_types)
    return Loops(tuple(known[dim] for dim in range(len(kinds))), kinds, maps)


def emit_nest(builder: Builder, op: Nest, fixed: Mapping[int, SSAValue]) -> None:
    """Emit the loops of `op`, except for the dims in `fixed`, whose indices are given."""
    loops = loops_of(op)
    indices = dict(fixed)
    for dim, extent in enumerate(loops.extents):
        if dim not in indices:
            builder, indices[dim] = counting_loop(builder, 0, extent)
    point = [indices[dim] for dim in range(len(loops.extents))]
    if isinstance(op, linalg.FillOp):
        builder.insert(memref.StoreOp.get(op.inputs[0], op.outputs[0], point))
    else:
        place = index_at(builder, loops.result, point)
        emit_point(builder, op, loops, point, (op.outputs[0], place))


Element: TypeAlias = tuple[SSAValue, Sequence[SSAValue]]
"""A buffer, and an index into it."""


def emit_point(
    builder: Builder, op: linalg.GenericOp, loops: Loops, point: Sequence[SSAValue], result: Element
) -> None:
    """Emit the body of `op` at one point of its loops, and keep its result in `result`."""
    values: dict[SSAValue, SSAValue] = {}
    block = op.body.block
    for argument, operand, map in zip(block.args, op.operands, loops.maps, strict=True):
        if argument.uses:
            is_result = argument is block.args[-1]
            place = result if is_result else (operand, index_at(builder, map, point))
            values[argument] = builder.insert(memref.LoadOp.get(*place)).res
    for inner in block.ops:
        if isinstance(inner, linalg.IndexOp):
            values[inner.result] = point[inner.dim.value.data]
        elif isinstance(inner, linalg.YieldOp):
            stored = values.get(inner.arguments[0], inner.arguments[0])
            builder.insert(memref.StoreOp.get(stored, *result))
        else:
            builder.insert(inner.clone(values))


def index_at(builder: Builder, map: AffineMap, point: Sequence[SSAValue]) -> list[SSAValue]:
    """Return the index that `map` gives for a point of the loops."""
    return [
        point[expr.position] if isinstance(expr, AffineDimExpr) else apply_map(builder, expr, point)
        for expr in map.results
    ]


def counting_loop(
    builder: Builder, lower: int | SSAValue, upper: int | SSAValue, step: int = 1
) -> tuple[Builder, SSAValue]:
    """Return a loop from `lower` to `upper`: a builder at its body, and its index."""
    start, stop = (index_constant(builder, n) if isinstance(n, int) else n for n in (lower, upper))
    end = scf.YieldOp()
    body = Block([end], arg_types=[IndexType()])
    builder.insert(scf.ForOp(start, stop, index_constant(builder, step), (), body))
    return Builder(InsertPoint.before(end)), body.args[0]


def _shape(buffer: SSAValue) -> tuple[int, ...]:
    return cast(MemRefType[Any], buffer.type).get_shape()


def in_place_arguments(function: FuncOp, operands: int) -> tuple[InPlace, ...]:
    """Return the pairs (operand, result) of a kernel before its nests become loops.

    The result is written by one parallel nest, which reads the operand at the element that it
    writes; nothing else reads the operand, and nothing else writes the result.
    """
    arguments = function.body.block.args[:-2]
    pairs: list[InPlace] = []
    for number, result in enumerate(arguments[operands:]):
        nest = _only_user(result)
        if not isinstance(nest, linalg.GenericOp) or result in nest.inputs:
            continue
        loops = loops_of(nest)
        if _writes_each_element_once(loops) and not nest.body.block.args[-1].uses:
            pairs += [
                (operand.index, number)
                for operand in arguments[:operands]
                if _read_in_place(operand, nest, loops) and _stored(operand) == _stored(result)
            ]
    return tuple(pairs)


def _only_user(value: SSAValue) -> object:
    users = {use.operation for use in value.uses}
    return users.pop() if len(users) == 1 else None


def _writes_each_element_once(loops: Loops) -> bool:
    return all(loops.is_parallel) and loops.result == AffineMap.identity(len(loops.extents))


def _read_in_place(operand: BlockArgument, nest: Nest, loops: Loops) -> bool:
    if _only_user(operand) is not nest:
        return False
    reads: Sequence[AffineMap] = [
        map for value, map in zip(nest.operands, loops.maps, strict=True) if value is operand
    ]
    shape = cast(MemRefType[Any], operand.type).get_shape()
    return tuple(shape) == loops.extents and all(map == loops.result for map in reads)


def _stored(value: SSAValue) -> tuple[int, Attribute]:
    """Return the width of an element, and the strides."""
    type = cast(MemRefType[Any], value.type)
    return bytes_of(type.element_type), type.layout
