"""Sums and maxima of many elements that few threads would compute: parts of them first.

A mean over the points of an image, channels last, has a thread for a few channels, which would go
over all points alone. Where there are fewer points of the result than threads of a GPU, the
outermost reduced dim becomes two: parts are reduced into scratch memory, `(part, …)`, by as many
times the threads, and another nest reduces the parts.
"""

from collections.abc import Sequence
from typing import Any, cast

from xdsl.builder import Builder
from xdsl.dialects import memref
from xdsl.dialects.builtin import (
    AffineMapAttr,
    MemRefType,
)
from xdsl.dialects.func import FuncOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap
from xdsl.rewriter import InsertPoint, Rewriter

from braid.lowering.common.element_types import constant
from braid.lowering.gpu.fallback.split_dims import Access, split_access
from braid.lowering.gpu.nests.row_program import combiner, neutral
from braid.lowering.gpu.nests.thread_nests import ThreadNest

_ENOUGH_POINTS = 2**19
"""The number of points of results and their parts: more gain nothing. A thread computes up to 8 of
them, and some 60 thousand threads have as many bytes on their way as memory takes."""
_MOST_PARTS = 128
_LEAST_DEPTH = 256
"""Elements that a thread reduces without trouble."""


def split_sums(function: FuncOp, innermost: bool = False) -> bool:
    """Rewrite the nests that reduce many elements to few, and return whether there were any.

    Parts lie next to each other, `(…, part)`, if the reduced dims are the `innermost` ones.
    """
    found = False
    for nest in [op for op in function.body.block.ops if isinstance(op, linalg.GenericOp)]:
        own = ThreadNest.of(nest)
        if own.reduced and (parts := _parts(own)) > 1:
            found |= _split(nest, own, parts, innermost)
    return found


def _parts(own: ThreadNest) -> int:
    """Return into how many parts of equal size the outermost reduced dim is cut."""
    depth = 1
    for dim in own.reduced:
        depth *= own.extents[dim]
    if not 0 < own.points < _ENOUGH_POINTS or depth < _LEAST_DEPTH:
        return 1
    extent = own.extents[own.reduced[0]]
    most = min(_MOST_PARTS, _ENOUGH_POINTS // own.points, depth // 8)
    return next(n for n in range(min(most, extent), 0, -1) if extent % n == 0)


def _split(nest: linalg.GenericOp, own: ThreadNest, parts: int, innermost: bool) -> bool:
    combine = combiner(nest) if len(nest.outputs) == 1 else None
    places = own.maps[-1].results
    is_plain = all(isinstance(expr, AffineDimExpr) for expr in places)
    if combine is None or not is_plain:
        return False
    dim, rank = own.reduced[0], len(own.extents)
    place = {n: n + (n > dim) for n in range(rank)}
    sizes = {dim: own.extents[dim] // parts}
    found = [
        split_access(nest, value, map, sizes, place, rank + 1)
        for value, map in zip(nest.inputs, own.maps, strict=False)
    ]
    inputs = [access for access in found if access is not None]
    if len(inputs) < len(found) or any(isinstance(o, linalg.IndexOp) for o in nest.body.walk()):
        return False
    output = nest.outputs[0]
    type = cast(MemRefType[Any], output.type)
    shape = type.get_shape()
    extents = [*shape, parts] if innermost else [parts, *shape]
    scratch = memref.AllocOp.get(type.element_type, 64, extents)
    before = Builder(InsertPoint.before(nest))
    before.insert(scratch)
    none = constant(before, neutral(combine), type.element_type)
    before.insert(linalg.FillOp([none], [scratch.memref], []))
    written = [AffineExpr.dimension(place[_position(expr)]) for expr in places]
    kinds = list(nest.iterator_types)
    kinds.insert(dim, IteratorTypeAttr.parallel())
    body = Region(_cloned(nest.body.block))
    part = AffineExpr.dimension(dim)
    made = (*written, part) if innermost else (part, *written)
    partial = AffineMap(rank + 1, 0, made)
    before.insert(_generic(inputs, (scratch.memref, partial), body, kinds))
    _reduce_parts(nest, scratch.memref, output, combine, innermost)
    return True


def _move_start(nest: linalg.GenericOp) -> None:
    """Put the fill that a nest starts from right before it, where nothing else is between."""
    output, op = nest.outputs[0], nest.prev_op
    while op is not None and output not in [value for each in op.walk() for value in each.operands]:
        op = op.prev_op
    if isinstance(op, linalg.FillOp) and op.outputs[0] is output:
        op.detach()
        Rewriter.insert_op(op, InsertPoint.before(nest))


def _position(expr: AffineExpr) -> int:
    assert isinstance(expr, AffineDimExpr)
    return expr.position


def _cloned(block: Block) -> Block:
    made = Block(arg_types=[argument.type for argument in block.args])
    values: dict[SSAValue, SSAValue] = dict(zip(block.args, made.args, strict=True))
    for op in block.ops:
        made.add_op(op.clone(values))
    return made


def _generic(
    inputs: Sequence[Access], output: Access, body: Region, kinds: Sequence[IteratorTypeAttr]
) -> linalg.GenericOp:
    maps = [AffineMapAttr(map) for _, map in (*inputs, output)]
    return linalg.GenericOp([value for value, _ in inputs], [output[0]], body, maps, list(kinds))


def _reduce_parts(
    nest: linalg.GenericOp,
    scratch: SSAValue,
    output: SSAValue,
    combine: Operation,
    innermost: bool,
) -> None:
    """Replace the nest by one that combines the parts of each of its points."""
    type = cast(MemRefType[Any], output.type)
    rank = type.get_num_dims()
    block = Block(arg_types=[type.element_type] * 2)
    part, total = block.args
    before = nest.body.block.args[-1]
    values: dict[SSAValue, SSAValue] = {
        value: total if value is before else part for value in combine.operands
    }
    made = combine.clone(values)
    block.add_ops([made, linalg.YieldOp(made.results[0])])
    dims = [AffineExpr.dimension(dim) for dim in range(rank)]
    own = AffineExpr.dimension(rank)
    read = AffineMap(rank + 1, 0, (*dims, own) if innermost else (own, *dims))
    kinds = [*[IteratorTypeAttr.parallel()] * rank, IteratorTypeAttr.reduction()]
    joined = _generic(
        [(scratch, read)], (output, AffineMap(rank + 1, 0, tuple(dims))), Region(block), kinds
    )
    _move_start(nest)
    Builder(InsertPoint.before(nest)).insert(joined)
    nest.detach()
    nest.erase()
