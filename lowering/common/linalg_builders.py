"""Small builders of `linalg` and `tensor` ops on tensors that may carry a layout."""

from collections.abc import Callable, Sequence

from xdsl.builder import Builder
from xdsl.dialects import tensor
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import (
    AffineMapAttr,
    DenseIntOrFPElementsAttr,
    IndexType,
    TensorType,
    i8,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.ir import Block, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap
from xdsl.rewriter import InsertPoint

from braid.dialects.braid.attributes import layout_of
from braid.dialects.braid.base import AnyTensor
from braid.dialects.braid.structure import IteratorKind
from braid.lowering.common.element_types import constant, tensor_type_of
from braid.lowering.common.physical_iteration import is_sliceable

BodyFunction = Callable[[Builder, Sequence[SSAValue]], SSAValue]
"""Emits a body: takes the block arguments (inputs, then the output), returns the yielded values."""

_ITERATORS = {
    IteratorKind.PARALLEL: IteratorTypeAttr.parallel(),
    IteratorKind.REDUCTION: IteratorTypeAttr.reduction(),
}


def empty(builder: Builder, tensor_type: AnyTensor) -> SSAValue:
    """Return a tensor of unspecified elements."""
    return builder.insert(tensor.EmptyOp((), tensor_type)).tensor


def filled(builder: Builder, value: float | int | bool, tensor_type: AnyTensor) -> SSAValue:
    """Return a tensor of equal elements."""
    number = constant(builder, value, tensor_type.element_type)
    destination = empty(builder, tensor_type)
    return builder.insert(linalg.FillOp([number], [destination], [tensor_type])).results[0]


def generic(
    builder: Builder,
    inputs: Sequence[SSAValue],
    output: SSAValue,
    maps: Sequence[AffineMap],
    kinds: Sequence[IteratorKind],
    body: BodyFunction,
) -> SSAValue:
    """Return a `linalg.generic` into `output`; `maps` are those of the inputs and of the output."""
    operands = (*inputs, output)
    block = Block(arg_types=[tensor_type_of(operand).element_type for operand in operands])
    inside = Builder(InsertPoint.at_end(block))
    inside.insert(linalg.YieldOp(body(inside, block.args)))
    op = linalg.GenericOp(
        inputs,
        [output],
        Region(block),
        [AffineMapAttr(map) for map in maps],
        [_ITERATORS[kind] for kind in kinds],
        [output.type],
    )
    return builder.insert(op).results[0]


def elementwise(
    builder: Builder, source: SSAValue, result_type: AnyTensor, body: BodyFunction
) -> SSAValue:
    """Return the tensor of `result_type` of `body` on every element of `source`."""
    rank = result_type.get_num_dims()
    identity = AffineMap.identity(rank)
    kinds = (IteratorKind.PARALLEL,) * rank
    output = empty(builder, result_type)
    return generic(builder, [source], output, [identity, identity], kinds, body)


def copied(builder: Builder, source: SSAValue, result_type: AnyTensor) -> SSAValue:
    """Return the elements of `source` in the layout of `result_type`; `source` itself if it
    has it.
    """
    if source.type == result_type:
        return source
    return elementwise(builder, source, result_type, lambda _, arguments: arguments[0])


def row_major(value: SSAValue) -> AnyTensor:
    """Return the type of `value` without its layout."""
    tensor_type = tensor_type_of(value)
    return TensorType(tensor_type.element_type, tensor_type.get_shape())


def padded(
    builder: Builder,
    source: SSAValue,
    low: Sequence[int],
    high: Sequence[int],
    value: float | int | bool,
) -> SSAValue:
    """Return `source` with elements equal to `value` around it, in the same layout."""
    source_type = tensor_type_of(source)
    number = constant(builder, value, source_type.element_type)
    shape = [a + n + b for a, n, b in zip(low, source_type.get_shape(), high, strict=True)]
    block = Block(arg_types=[IndexType()] * len(shape))
    block.add_op(tensor.YieldOp(number))
    result_type = TensorType(source_type.element_type, shape, source_type.encoding)
    pad = tensor.PadOp(source, (), (), Region(block), low, high, result_type)
    return builder.insert(pad).result


def dense_constant(builder: Builder, value: DenseIntOrFPElementsAttr) -> SSAValue:
    """Return a constant tensor."""
    return builder.insert(ConstantOp(value)).result


def leading(builder: Builder, source: SSAValue, sizes: Sequence[int]) -> SSAValue:
    """Return the first elements of `source` along every dim; in row-major if blocks are in
    the way.
    """
    source_type = tensor_type_of(source)
    if tuple(sizes) == source_type.get_shape():
        return source
    offsets = [0] * len(sizes)
    if not is_sliceable(layout_of(source_type), source_type.get_shape(), offsets, sizes):
        source = copied(builder, source, row_major(source))
    result_type = TensorType(source_type.element_type, sizes, tensor_type_of(source).encoding)
    slice = tensor.ExtractSliceOp(source, offsets, sizes, [1] * len(sizes), result_type)
    return builder.insert(slice).result


def extents_operand(
    builder: Builder, maps: Sequence[AffineMap], extents: Sequence[int]
) -> tuple[SSAValue, AffineMap] | None:
    """Return a tensor and its map that give extents to the dims that no map of `maps` has alone.

    linalg infers the extents of an iteration space from the operands' shapes. The elements of
    this tensor are not looked at, and no memory is left of it. None if no dim needs it.
    """
    known = {e.position for map in maps for e in map.results if isinstance(e, AffineDimExpr)}
    dims = [dim for dim in range(len(extents)) if dim not in known]
    if not dims:
        return None
    shape = empty(builder, TensorType(i8, [extents[dim] for dim in dims]))
    results = tuple(AffineExpr.dimension(dim) for dim in dims)
    return shape, AffineMap(len(extents), 0, results)
