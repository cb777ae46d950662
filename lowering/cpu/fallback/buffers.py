"""What is left to do on a kernel after bufferization: its scratch memory and its grid."""

from math import prod
from typing import Any, cast

from xdsl.builder import Builder
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
from xdsl.dialects.func import FuncOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.ir import Block, Region
from xdsl.ir.affine import AffineMap
from xdsl.rewriter import InsertPoint, Rewriter

from braid.dialects.braid.buffer import aligned
from braid.dialects.braid.dtypes import bytes_of
from braid.dialects.braid.layout import DYNAMIC
from braid.lowering.common.argument_attributes import NOALIAS, argument_attributes
from braid.lowering.cpu.fallback.in_place_nests import in_place_arguments
from braid.lowering.cpu.fallback.parallel_loops import parallelize
from braid.support.errors import UnsupportedError
from braid.targets.kernels.kernel_family import Kernel


def finish_buffers(symbol: str, module: ModuleOp, operands: int) -> Kernel:
    """The kernel made of a bufferized module, whose first `operands` arguments are only read.

    A kernel that only computes its one result is split into independent iterations. Otherwise
    its buffers become views of one scratch argument.
    """
    function = next(op for op in module.ops if isinstance(op, FuncOp))
    for op in [op for op in function.walk() if isinstance(op, memref.CopyOp)]:
        _copy_by_loops(op)
    in_place = in_place_arguments(function, operands)
    results = len(function.body.block.args) - 2 - operands
    function.arg_attrs = argument_attributes(operands, results, in_place)
    grid = parallelize(function)
    if grid is not None:
        return Kernel(symbol, module, grid, in_place=in_place)
    scratch_bytes = _move_to_scratch(function)
    return Kernel(symbol, module, 1, scratch_bytes, in_place)


def _copy_by_loops(op: memref.CopyOp) -> None:
    """LLVM would call a runtime library for a copy between strided buffers."""
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


def _move_to_scratch(function: FuncOp) -> int:
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
