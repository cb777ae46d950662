"""A group as a function on buffers, by `linalg` and upstream: what fallbacks begin with."""

from math import prod
from typing import Any, cast

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    IndexType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    i8,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.ir import Block, Region, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.rewriter import InsertPoint, Rewriter

from braid.analysis.storage.strided_storage import strides_of
from braid.dialects.braid.buffer import aligned
from braid.dialects.braid.dtypes import bytes_of
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.regions import FusedOp
from braid.lowering.common.argument_attributes import NOALIAS
from braid.lowering.common.bufferization_passes import BUFFERIZATION_PASSES
from braid.lowering.common.convert_braid_to_linalg import ConvertBraidToLinalgPass
from braid.lowering.common.destination_passing import to_destination_passing
from braid.lowering.common.element_types import signless_tensor, tensor_type_of
from braid.lowering.common.materialize_layouts import MaterializeLayoutsPass
from braid.lowering.common.module_text import module_text
from braid.lowering.common.upstream import generic_form
from braid.lowering.common.upstream_parsing import parse_upstream
from braid.support.errors import BraidError, UnsupportedError


def bufferized_group(group: FusedOp, symbol: str) -> ModuleOp:
    """A module whose function has a kernel's signature and computes any group of static shapes.

    Its body is loop nests of `linalg` on buffers, in the layouts of the group's types; copies are
    nests, too. Raises UnsupportedError for an op without code or an open dim, and BraidError where
    upstream MLIR rejects the group.
    """
    module = ModuleOp([_function(group, symbol)])
    context = Context()
    ConvertBraidToLinalgPass().apply(context, module)
    function = module.body.block.first_op
    assert isinstance(function, FuncOp)
    expected = tuple(signless_tensor(tensor_type_of(v)) for v in group.outputs)
    assert function.function_type.outputs.data == expected, "a result lost its layout"
    MaterializeLayoutsPass().apply(context, module)
    kernel = ModuleOp([to_destination_passing(function, strides_of(group))])
    try:
        text = generic_form(module_text(kernel), BUFFERIZATION_PASSES)
    except BraidError as error:
        raise BraidError(f"kernel '{symbol}': {error.message}") from error
    return parse_upstream(text)


def _function(group: FusedOp, symbol: str) -> FuncOp:
    """The group as a function from its operands to its results."""
    block = Block(arg_types=group.inputs.types)
    values: dict[SSAValue, SSAValue] = dict(zip(group.body.block.args, block.args, strict=True))
    for op in group.body.block.ops:
        if op is not group.terminator:
            block.add_op(op.clone(values))
    block.add_op(ReturnOp(*(values.get(v, v) for v in group.terminator.arguments)))
    return FuncOp(symbol, (group.inputs.types, group.outputs.types), Region(block))


def copies_as_nests(function: FuncOp) -> None:
    """LLVM would call a runtime library for a copy between strided buffers."""
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
    """Turns allocations into views of a scratch argument; returns its size in bytes."""
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
