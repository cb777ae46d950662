"""`tensor.generate` as `linalg.generic`, which reads its operands by maps where it can."""

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects import tensor
from xdsl.dialects.builtin import AffineMapAttr, TensorType
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.dialects.linalg.ops import GenericOp, IndexOp, YieldOp
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.rewriter import Rewriter

from braid.analysis.structure.loop_nests import op_name
from braid.dialects.braid.base import AnyTensor, shape_of
from braid.dialects.braid.layout import DYNAMIC

GENERATE = "tensor.generate"


def generate_by_nest(op: Operation) -> None:
    """Replace a `tensor.generate` by a nest of parallel loops that writes each element once.

    A `tensor.extract` at loop indices, of a tensor as long as the loops, is an operand with a map.
    """
    type = cast(AnyTensor, op.results[0].type)
    body = op.regions[0].block
    loops = len(type.get_shape())
    reads = [inner for inner in body.ops if _is_mapped(inner, body, type.get_shape())]
    sources = [read.operands[0] for read in reads]
    element_types = [cast(AnyTensor, value.type).element_type for value in sources]
    block = Block(arg_types=[*element_types, type.element_type])
    indices = [IndexOp(dim) for dim in range(loops)]
    block.add_ops(indices)
    values: dict[SSAValue, SSAValue] = {
        argument: index.result for argument, index in zip(body.args, indices, strict=True)
    }
    values |= {read.results[0]: arg for read, arg in zip(reads, block.args, strict=False)}
    for inner in body.ops:
        if inner in reads:
            continue
        if inner is body.last_op:
            block.add_op(YieldOp(*(values.get(value, value) for value in inner.operands)))
        else:
            block.add_op(inner.clone(values))
    empty = tensor.EmptyOp(list(op.operands), type)
    maps = [_map_of(read, loops) for read in reads]
    nest = GenericOp(
        sources,
        [empty.tensor],
        Region(block),
        [AffineMapAttr(map) for map in (*maps, AffineMap.identity(loops))],
        [IteratorTypeAttr.parallel()] * loops,
        [type],
    )
    Rewriter.replace_op(op, [empty, nest], nest.results)


def _is_mapped(op: Operation, body: Block, shape: Sequence[int]) -> bool:
    """Return whether `op` reads a tensor from outside at loops that are as long as its dims."""
    if op_name(op) != "tensor.extract":
        return False
    source, *indices = op.operands
    if not isinstance(source.type, TensorType) or source in body.args or _is_inside(source, body):
        return False
    loops = [i.index for i in indices if isinstance(i, BlockArgument) and i.owner is body]
    extents = [shape[loop] for loop in loops]
    return (
        len(loops) == len(indices)
        and len(set(loops)) == len(loops)
        and DYNAMIC not in extents
        and list(shape_of(source)) == extents
    )


def _is_inside(value: SSAValue, body: Block) -> bool:
    owner = value.owner
    return isinstance(owner, Operation) and owner.parent is body


def _map_of(read: Operation, loops: int) -> AffineMap:
    indices = [cast(BlockArgument[Any], index).index for index in read.operands[1:]]
    return AffineMap(loops, 0, tuple(AffineExpr.dimension(index) for index in indices))
