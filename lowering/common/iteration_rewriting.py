"""Rewrites the loops of a `linalg.generic` to go over the storage of its operands."""

from collections.abc import Sequence
from typing import cast

from xdsl.builder import Builder
from xdsl.dialects import affine, arith, tensor
from xdsl.dialects.builtin import AffineMapAttr, IndexType, IntegerAttr
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.ir import Block, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap
from xdsl.rewriter import InsertPoint, Rewriter

from braid.dialects.braid.attributes import layout_of
from braid.dialects.braid.base import AnyTensor
from braid.lowering.common.element_types import constant
from braid.lowering.common.linalg_builders import extents_operand
from braid.lowering.common.physical_iteration import (
    Operand,
    PhysicalIteration,
    physical_iteration,
)

_PARALLEL = IteratorTypeAttr.parallel()


def rewrite_iteration(op: linalg.GenericOp) -> None:
    """Replace `op` by one that iterates over storage, given the layouts in its types."""
    operands = [
        Operand(map.data, layout_of(value.type), cast(AnyTensor, value.type).get_shape())
        for map, value in zip(op.indexing_maps, op.operands, strict=True)
    ]
    kinds = list(op.iterator_types)
    loops = physical_iteration(operands, _extents(operands), [kind == _PARALLEL for kind in kinds])
    block = op.body.block
    _rewrite_indices(block, loops)
    inputs, maps = list(op.inputs), list(loops.maps)
    for number in reversed(range(len(inputs))):
        if not loops.has_tails[number]:
            builder = Builder(InsertPoint.at_start(block))
            load = _clamped_load(builder, inputs[number], operands[number], loops)
            block.args[number].replace_all_uses_with(load)
            block.erase_arg(block.args[number])
            del inputs[number], maps[number]
    _zero_tails(block, loops)
    missing = extents_operand(Builder(InsertPoint.before(op)), maps, loops.extents)
    if missing is not None:
        block.insert_arg(cast(AnyTensor, missing[0].type).element_type, len(inputs))
        maps.insert(len(inputs), missing[1])
        inputs.append(missing[0])
    rewritten = linalg.GenericOp(
        inputs,
        list(op.outputs),
        op.detach_region(op.body),
        [AffineMapAttr(map) for map in maps],
        [kinds[origin] for origin in loops.origins],
        list(op.result_types),
    )
    Rewriter.replace_op(op, rewritten)


def _extents(operands: list[Operand]) -> list[int]:
    """Return the iterations of every dim; some access has each dim alone."""
    known = {
        expr.position: extent
        for operand in operands
        for expr, extent in zip(operand.map.results, operand.shape, strict=True)
        if isinstance(expr, AffineDimExpr)
    }
    return [known[dim] for dim in range(operands[0].map.num_dims)]


def _applied(builder: Builder, loops: PhysicalIteration, expr: AffineExpr) -> SSAValue:
    """Return the value of an index expression on the new loops."""
    used = sorted(expr.used_dims())
    indices = [builder.insert(linalg.IndexOp(dim)).result for dim in used]
    if isinstance(expr, AffineDimExpr):
        return indices[0]
    return _composed(builder, used, indices, expr)


def _composed(
    builder: Builder, dims: Sequence[int], indices: Sequence[SSAValue], expr: AffineExpr
) -> SSAValue:
    """Return `expr` for the values `indices` of its dims `dims`."""
    position = {dim: AffineExpr.dimension(i) for i, dim in enumerate(dims)}
    unused = AffineExpr.constant(0)
    local = expr.replace_dims_and_symbols(
        [position.get(dim, unused) for dim in range(max(dims, default=-1) + 1)], ()
    )
    map = AffineMapAttr(AffineMap(len(dims), 0, (local,)))
    return builder.insert(affine.ApplyOp(indices, map)).result


def _rewrite_indices(block: Block, loops: PhysicalIteration) -> None:
    """Compute the `linalg.index` of each old dim from the new ones."""
    for index in [op for op in block.walk() if isinstance(op, linalg.IndexOp)]:
        builder = Builder(InsertPoint.before(index))
        value = _applied(builder, loops, loops.logical[index.dim.value.data])
        index.result.replace_all_uses_with(value)
        index.detach()
        index.erase()


def _clamped_load(
    builder: Builder, source: SSAValue, operand: Operand, loops: PhysicalIteration
) -> SSAValue:
    """Return a read at the last index instead of one in a tail.

    The value does not matter, since the tail becomes zero, but the address must be good.
    """
    indices: list[SSAValue] = []
    for expr, bound in zip(loops.logical, loops.bounds, strict=True):
        index = _applied(builder, loops, expr)
        if bound is not None:
            last = builder.insert(arith.ConstantOp(IntegerAttr(bound - 1, IndexType()))).result
            index = builder.insert(arith.MinUIOp(index, last)).result
        indices.append(index)
    storage = operand.layout.storage_index(operand.map.results)
    position = [_composed(builder, range(len(indices)), indices, expr) for expr in storage]
    element_type = cast(AnyTensor, source.type).element_type
    return builder.insert(tensor.ExtractOp(source, position, element_type)).result


def _zero_tails(block: Block, loops: PhysicalIteration) -> None:
    """Make the yielded value zero in the tails of padded dims."""
    terminator = block.last_op
    assert isinstance(terminator, linalg.YieldOp)
    builder = Builder(InsertPoint.before(terminator))
    value = terminator.arguments[0]
    for expr, bound in zip(loops.logical, loops.bounds, strict=True):
        if bound is None:
            continue
        zero = constant(builder, 0, value.type)
        limit = builder.insert(arith.ConstantOp(IntegerAttr(bound, IndexType()))).result
        index = _applied(builder, loops, expr)
        is_inside = builder.insert(arith.CmpiOp(index, limit, "ult")).result
        value = builder.insert(arith.SelectOp(is_inside, value, zero)).result
    terminator.operands = (value,)
