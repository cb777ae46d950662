"""Sequential loops over tensors, for the few ops that are not loop nests of `linalg`."""

from collections.abc import Callable, Sequence
from math import prod
from typing import cast

from xdsl.builder import Builder
from xdsl.dialects import affine, arith, scf, tensor
from xdsl.dialects.builtin import AffineMapAttr, IndexType, IntegerAttr
from xdsl.ir import Block, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.rewriter import InsertPoint

from braid.dialects.braid.base import AnyTensor

LoopBody = Callable[[Builder, SSAValue, Sequence[SSAValue]], Sequence[SSAValue]]
"""Gets the index and the values carried so far; returns the values carried on."""


def index_constant(builder: Builder, value: int) -> SSAValue:
    """Return a constant of type index."""
    return builder.insert(arith.ConstantOp(IntegerAttr(value, IndexType()))).result


def for_loop(
    builder: Builder, extent: int, carried: Sequence[SSAValue], body: LoopBody
) -> Sequence[SSAValue]:
    """Emit a loop of `body` from 0 to `extent` - 1, and return the values carried out."""
    start, stop, step = (index_constant(builder, n) for n in (0, extent, 1))
    block = Block(arg_types=[IndexType(), *(value.type for value in carried)])
    inside = Builder(InsertPoint.at_end(block))
    inside.insert(scf.YieldOp(*body(inside, block.args[0], block.args[1:])))
    return builder.insert(scf.ForOp(start, stop, step, carried, block)).results


def apply_map(builder: Builder, expr: AffineExpr, dims: Sequence[SSAValue]) -> SSAValue:
    """Return the value of an affine expression of index values."""
    map = AffineMapAttr(AffineMap(len(dims), 0, (expr,)))
    return builder.insert(affine.ApplyOp(dims, map)).result


def delinearized(builder: Builder, index: SSAValue, extents: Sequence[int]) -> list[SSAValue]:
    """Return the indices of dims of these extents at number `index` in row-major order."""
    result: list[SSAValue] = []
    for position, extent in enumerate(extents):
        expr: AffineExpr = AffineExpr.dimension(0)
        if (step := prod(extents[position + 1 :])) > 1:
            expr = expr // step
        if position > 0:
            expr = expr % extent
        result.append(apply_map(builder, expr, [index]))
    return result


def element(builder: Builder, source: SSAValue, index: Sequence[SSAValue]) -> SSAValue:
    """Return the element of a tensor at `index`."""
    element_type = cast(AnyTensor, source.type).element_type
    return builder.insert(tensor.ExtractOp(source, index, element_type)).result


def with_element(
    builder: Builder, target: SSAValue, index: Sequence[SSAValue], value: SSAValue
) -> SSAValue:
    """Return `target` with `value` at `index`."""
    return builder.insert(tensor.InsertOp(value, target, index)).result
