"""A group as a function on buffers, by `linalg` and upstream: the start of fallbacks.

Bools are stored as bytes. Inside of a kernel they are `i1`, at its boundary `i8`.
"""

from collections.abc import Sequence
from math import prod
from typing import Any, cast

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import arith, bufferization, func, memref
from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    IndexType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    NoneAttr,
    StridedLayoutAttr,
    TensorType,
    UnitAttr,
    i1,
    i8,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.rewriter import InsertPoint, Rewriter

from braid.analysis.storage.strided_storage import Strides, strides_of
from braid.dialects.braid.base import AnyTensor
from braid.dialects.braid.buffer import aligned
from braid.dialects.braid.dtypes import bytes_of
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.regions import FusedOp
from braid.lowering.common.argument_attributes import NOALIAS, argument_attributes
from braid.lowering.common.checked_nests import check_nests
from braid.lowering.common.convert_braid_to_linalg import ConvertBraidToLinalgPass
from braid.lowering.common.element_types import convert, signless_tensor, tensor_type_of
from braid.lowering.common.generic_text import module_text
from braid.lowering.common.linalg_builders import elementwise
from braid.lowering.common.materialize_layouts import materialize_layouts
from braid.lowering.common.parse_upstream import parse_upstream
from braid.lowering.common.unwritten_elements import forget_reading, read_partly_written
from braid.lowering.common.upstream import bufferization_passes, generic_form
from braid.lowering.common.upstream_ops import upstream_ops
from braid.support.errors import BraidError, UnsupportedError


def buffer_type(tensor_type: Attribute, strides: Strides | None = None) -> MemRefType[Attribute]:
    """Return the buffer in which a tensor is passed to a kernel; `strides` if it lies in a larger
    one.
    """
    tensor_type = cast(AnyTensor, tensor_type)
    element_type = i8 if tensor_type.element_type == i1 else tensor_type.element_type
    layout = NoneAttr() if strides is None else StridedLayoutAttr(strides, 0)
    return MemRefType(element_type, tensor_type.get_shape(), layout)


def to_destination_passing(function: func.FuncOp, strides: Sequence[Strides | None]) -> func.FuncOp:
    """Return `function`, from tensors to tensors without layouts, with a kernel's signature.

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


def bufferized_group(group: FusedOp, symbol: str) -> ModuleOp:
    """Return a module whose function has a kernel's signature and computes any group of static
    shapes.

    Its body is loop nests of `linalg` on buffers, in the layouts of the group's types; copies are
    nests, too. Raises UnsupportedError for an op without code or an open dim, and BraidError where
    upstream MLIR rejects the group.
    """
    module = ModuleOp([_function(group, symbol)])
    own = {op for op in module.walk() if isinstance(op, linalg.GenericOp)}
    function = module.body.block.first_op
    assert isinstance(function, FuncOp)
    read_partly_written(function)
    ConvertBraidToLinalgPass().apply(Context(), module)
    expected = tuple(signless_tensor(tensor_type_of(v)) for v in group.outputs)
    assert function.function_type.outputs.data == expected, "a result lost its layout"
    materialize_layouts(module, own)
    kernel = ModuleOp([to_destination_passing(function, strides_of(group))])
    try:
        passes = bufferization_passes(len(group.outputs))
        is_foreign = bool(upstream_ops(group))
        text = generic_form(
            module_text(kernel), (*_GENERALIZATION, *passes) if is_foreign else passes
        )
    except BraidError as error:
        raise BraidError(f"kernel '{symbol}': {error.message}") from error
    lowered = parse_upstream(text)
    if is_foreign:
        for op in lowered.ops:
            if isinstance(op, FuncOp):
                forget_reading(op)
                check_nests(op)
    return lowered


_GENERALIZATION = ("func.func(linalg-generalize-named-ops)",)
"""Emitters know nests by their maps and bodies."""


def _function(group: FusedOp, symbol: str) -> FuncOp:
    """Return the group as a function from its operands to its results."""
    block = Block(arg_types=group.inputs.types)
    values: dict[SSAValue, SSAValue] = dict(zip(group.body.block.args, block.args, strict=True))
    for op in group.body.block.ops:
        if op is not group.terminator:
            block.add_op(op.clone(values))
    block.add_op(ReturnOp(*(values.get(v, v) for v in group.terminator.arguments)))
    return FuncOp(symbol, (group.inputs.types, group.outputs.types), Region(block))


def copies_as_nests(function: FuncOp) -> None:
    """Replace copies by nests: LLVM would call a runtime library for strided buffers."""
    for op in [op for op in function.walk() if isinstance(op, memref.CopyOp)]:
        buffer_type = cast(MemRefType[Any], op.destination.type)
        rank = buffer_type.get_num_dims()
        block = Block(arg_types=[buffer_type.element_type] * 2)
        block.add_op(linalg.YieldOp(block.args[0]))
        identity = AffineMapAttr(AffineMap.identity(rank))
        copy = linalg.GenericOp(
            [op.source],
            [op.destination],
            Region(block),
            [identity, identity],
            [IteratorTypeAttr.parallel()] * rank,
        )
        Rewriter.replace_op(op, copy, [])


def move_to_scratch(function: FuncOp) -> int:
    """Turn allocations into views of a scratch argument, and return its size in bytes."""
    allocations = [op for op in function.walk() if isinstance(op, memref.AllocOp)]
    if not allocations:
        return 0
    offsets: list[int] = []
    size = 0
    for op in allocations:
        offsets.append(size)
        size += aligned(_bytes(op))
    block = function.body.block
    scratch = block.insert_arg(MemRefType(i8, [size]), len(block.args) - 2)
    for op, offset in zip(allocations, offsets, strict=True):
        builder = Builder(InsertPoint.before(op))
        start = builder.insert(arith.ConstantOp(IntegerAttr(offset, IndexType()))).result
        view = memref.ViewOp(scratch, start, (), cast(MemRefType[Any], op.memref.type))
        Rewriter.replace_op(op, view)
    attributes = list(function.arg_attrs or ())
    attributes.insert(len(attributes) - 2, NOALIAS)
    function.arg_attrs = ArrayAttr(attributes)
    function.update_function_type()
    return size


def _bytes(op: memref.AllocOp) -> int:
    buffer_type = cast(MemRefType[Any], op.memref.type)
    if DYNAMIC in buffer_type.get_shape():
        raise UnsupportedError(f"a kernel needs a buffer of open size, {buffer_type}")
    return prod(buffer_type.get_shape()) * bytes_of(buffer_type.element_type)
