"""From a function on tensors to a kernel's signature: results are written into buffers.

Bools are stored as bytes. Inside of a kernel they are `i1`, at its boundary `i8`.
"""

from collections.abc import Sequence
from typing import cast

from xdsl.builder import Builder
from xdsl.dialects import bufferization, func
from xdsl.dialects.builtin import (
    IndexType,
    MemRefType,
    NoneAttr,
    StridedLayoutAttr,
    TensorType,
    UnitAttr,
    i1,
    i8,
)
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.rewriter import InsertPoint

from braid.analysis.storage.strided_storage import Strides
from braid.dialects.braid.base import AnyTensor
from braid.lowering.common.argument_attributes import argument_attributes
from braid.lowering.common.linalg_builders import elementwise
from braid.lowering.common.scalar_casts import convert


def buffer_type(tensor_type: Attribute, strides: Strides | None = None) -> MemRefType[Attribute]:
    """The buffer in which a tensor is passed to a kernel; `strides` if it lies in a larger one."""
    tensor_type = cast(AnyTensor, tensor_type)
    element_type = i8 if tensor_type.element_type == i1 else tensor_type.element_type
    layout = NoneAttr() if strides is None else StridedLayoutAttr(strides, 0)
    return MemRefType(element_type, tensor_type.get_shape(), layout)


def to_destination_passing(function: func.FuncOp, strides: Sequence[Strides | None]) -> func.FuncOp:
    """`function`, from tensors to tensors without layouts, with a kernel's signature.

    Its body is moved; the arguments are the operands' buffers, the results' buffers and the
    iterations `begin, end`. `strides` are those of operands and results in larger tensors.
    """
    inputs, outputs = function.function_type.inputs, function.function_type.outputs
    buffers = map(buffer_type, (*inputs, *outputs), strides)
    types: list[Attribute] = [*buffers, IndexType(), IndexType()]
    block = Block(arg_types=types)
    builder = Builder(InsertPoint.at_end(block))
    old = function.body.block
    for argument, buffer in zip(list(old.args), block.args, strict=False):
        argument.replace_all_uses_with(_tensor(builder, buffer, cast(AnyTensor, argument.type)))
    for op in list(old.ops):
        op.detach()
        if not isinstance(op, func.ReturnOp):
            block.add_op(op)
            continue
        for result, buffer in zip(op.arguments, block.args[len(inputs) :], strict=False):
            _write(builder, result, buffer)
        op.drop_all_references()
    block.add_op(func.ReturnOp())
    return func.FuncOp(
        function.sym_name.data,
        (types, []),
        Region(block),
        arg_attrs=argument_attributes(len(inputs), len(outputs)),
    )


def _tensor(builder: Builder, buffer: SSAValue, tensor_type: AnyTensor) -> SSAValue:
    value = builder.insert(bufferization.ToTensorOp(buffer, restrict=True)).tensor
    if tensor_type.element_type != i1:
        return value
    return elementwise(builder, value, tensor_type, lambda b, x: convert(b, x[0], i8, i1))


def _write(builder: Builder, value: SSAValue, buffer: SSAValue) -> None:
    tensor_type = cast(AnyTensor, value.type)
    if tensor_type.element_type == i1:
        bytes_type = TensorType(i8, tensor_type.get_shape())
        value = elementwise(builder, value, bytes_type, lambda b, x: convert(b, x[0], i1, i8))
    write = bufferization.MaterializeInDestinationOp.create(
        operands=[value, buffer],
        properties={"restrict": UnitAttr(), "writable": UnitAttr()},
    )
    builder.insert(write)
