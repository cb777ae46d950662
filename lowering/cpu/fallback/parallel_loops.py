"""Splits a kernel that computes one result into independent iterations."""

from collections.abc import Sequence
from math import prod

from xdsl.builder import Builder
from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import IndexType, i64
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.llvm import InlineAsmOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr
from xdsl.rewriter import InsertPoint
from xdsl.traits import is_side_effect_free

from braid.lowering.common.loop_nest import (
    Loops,
    Nest,
    emit_nest,
    loops_of,
)
from braid.lowering.common.tensor_loops import delinearized, index_constant
from braid.lowering.cpu.fallback.long_sums import emit_long_sum, has_long_sum

_ENOUGH = 64
"""The iterations that suffice; more would not spread better over the cores of one machine."""


def parallelize(function: FuncOp) -> int | None:
    """Make one loop over [begin, end) of the kernel's nests, and return the grid.

    Possible where all nests write the same argument, so that every iteration can run all of
    them on its own part of it. None, and the kernel is unchanged, where that is not so.
    """
    nests = _nests(function)
    if not nests:
        return None
    loops = [loops_of(nest) for nest in nests]
    dims = _leading_dims(loops)
    extents = [loops[0].extents[dim] for dim in dims[0]]
    if (grid := prod(extents)) <= 1:
        return None
    block = function.body.block
    last = block.last_op
    assert isinstance(last, ReturnOp)
    builder = Builder(InsertPoint.before(last))
    *_, begin, end = block.args
    stop = scf.YieldOp()
    body = Block([stop], arg_types=[IndexType()])
    step = index_constant(builder, 1)
    builder.insert(scf.ForOp(begin, end, step, (), body))
    inside = Builder(InsertPoint.before(stop))
    at = body.args[0]
    indices = delinearized(inside, _opaque(inside, at) if _gathers(nests) else at, extents)
    for nest, leading in zip(nests, dims, strict=True):
        own = dict(zip(leading, indices, strict=True))
        if has_long_sum(nest):
            emit_long_sum(inside, nest, own)
        else:
            emit_nest(inside, nest, own)
        nest.detach()
        nest.erase()
    for op in [op for op in block.ops if isinstance(op, memref.AllocOp)]:
        op.detach()
        op.erase()
    return grid


def _nests(function: FuncOp) -> list[Nest]:
    """Return the nests of the kernel, or none if there is anything else that has an effect."""
    ops = list(function.body.block.ops)[:-1]
    nests: list[Nest] = [op for op in ops if isinstance(op, linalg.GenericOp | linalg.FillOp)]
    if not nests:
        return []
    result = nests[0].outputs[0]
    only_written = all(use.operation in nests for use in result.uses) and all(
        nest.outputs[0] is result and result not in nest.inputs for nest in nests
    )
    rest = [op for op in ops if op not in nests]
    if not only_written or result not in function.args or not all(map(_is_harmless, rest)):
        return []
    return nests


def _gathers(nests: Sequence[Nest]) -> bool:
    """Return whether elements are read at places that other elements name."""
    return any(isinstance(op, memref.LoadOp) for nest in nests for op in nest.walk())


def _opaque(builder: Builder, index: SSAValue) -> SSAValue:
    """Return the index in a form from which LLVM makes no vectors.

    It would unroll short loops inside, and write neighbouring rows by scattered vectors.
    """
    bits = builder.insert(arith.IndexCastOp(index, i64)).result
    (same,) = builder.insert(InlineAsmOp("", "=r,0", [bits], [i64])).results
    return builder.insert(arith.IndexCastOp(same, IndexType())).result


def _is_harmless(op: Operation) -> bool:
    """Return whether an op is a constant, or an allocation of which only the shape is looked at."""
    if isinstance(op, memref.AllocOp):
        return all(
            isinstance(use.operation, linalg.GenericOp)
            and not use.operation.body.block.args[use.index].uses
            for use in op.memref.uses
        )
    return isinstance(op, memref.GetGlobalOp) or is_side_effect_free(op)


def _leading_dims(loops: Sequence[Loops]) -> list[list[int]]:
    """Return for each nest its dims that are the outermost dims of the result.

    The last dim of the result stays serial, and so does the innermost loop of a nest.
    """
    rank = len(loops[0].result.results)
    count, total = 0, 1
    while count < rank - 1 and total < _ENOUGH and all(_is_outer(nest, count) for nest in loops):
        total *= loops[0].extents[_position(loops[0], count)]
        count += 1
    return [[_position(nest, i) for i in range(count)] for nest in loops]


def _is_outer(nest: Loops, storage_dim: int) -> bool:
    """Return whether one loop runs over this dim of the result, with others inside of it."""
    expr = nest.result.results[storage_dim]
    return isinstance(expr, AffineDimExpr) and expr.position != len(nest.extents) - 1


def _position(nest: Loops, storage_dim: int) -> int:
    expr = nest.result.results[storage_dim]
    assert isinstance(expr, AffineDimExpr)
    return expr.position
