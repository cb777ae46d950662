"""Padding as one loop nest that reads where there are elements, and writes everything once.

`tensor.pad` becomes a fill and a copy, which write the inside twice. It is
still the better form if the padded value is computed in place in the same kernel.
"""

from collections.abc import Sequence

from xdsl.builder import Builder
from xdsl.dialects import arith, scf, tensor
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, BlockArgument, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.rewriter import InsertPoint

from braid.dialects.braid.attributes import layout_of
from braid.dialects.braid.base import AnyTensor
from braid.dialects.braid.dtypes import i1
from braid.dialects.braid.structure import Padding, parallel
from braid.lowering.common.element_types import constant, tensor_type_of
from braid.lowering.common.linalg_builders import empty, generic
from braid.lowering.common.tensor_loops import index_constant


def is_guardable(source: SSAValue, result_type: AnyTensor) -> bool:
    """Return whether `source` is in memory, and rows of both are in a row there."""
    layouts = (layout_of(source.type), layout_of(result_type))
    return isinstance(source, BlockArgument) and all(each.is_permutation for each in layouts)


def guarded_padding(
    builder: Builder, source: SSAValue, padding: Padding, result_type: AnyTensor
) -> SSAValue:
    """Return `source` with `padding` around it, as a tensor of `result_type`."""
    element_type = result_type.element_type
    rank = result_type.get_num_dims()

    def body(inside: Builder, _: Sequence[SSAValue]) -> SSAValue:
        index, is_inside = _source_index(inside, source, padding)
        value = Block()
        load = tensor.ExtractOp(source, index, element_type)
        value.add_ops([load, scf.YieldOp(load.result)])
        around = Block()
        number = constant(Builder(InsertPoint.at_end(around)), padding.value, element_type)
        around.add_op(scf.YieldOp(number))
        return inside.insert(scf.IfOp(is_inside, [element_type], [value], [around])).results[0]

    output = empty(builder, result_type)
    return generic(builder, [], output, [AffineMap.identity(rank)], parallel(rank), body)


def _source_index(
    builder: Builder, source: SSAValue, padding: Padding
) -> tuple[list[SSAValue], SSAValue]:
    """Return where the element at the loops' indices comes from, and whether there is one."""
    is_inside = constant(builder, 1, i1)
    index: list[SSAValue] = []
    shape = tensor_type_of(source).get_shape()
    for dim, (extent, low, high) in enumerate(zip(shape, padding.low, padding.high, strict=True)):
        position = builder.insert(linalg.IndexOp(dim)).result
        if low:
            position = builder.insert(arith.SubiOp(position, index_constant(builder, low))).result
        if low or high:
            # Before the first element the unsigned position is a large number.
            limit = index_constant(builder, extent)
            exists = builder.insert(arith.CmpiOp(position, limit, "ult")).result
            is_inside = builder.insert(arith.AndIOp(is_inside, exists)).result
        index.append(position)
    return index, is_inside
