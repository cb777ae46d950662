"""Provide the parts that entries of kernels are made of, whoever makes them."""

from collections.abc import Sequence
from typing import Any, cast

from xdsl.builder import Builder
from xdsl.dialects import arith, gpu, llvm, math, scf
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    IntegerAttr,
    MemRefType,
    StringAttr,
    SymbolRefAttr,
    UnregisteredAttr,
    i32,
    i64,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region
from xdsl.rewriter import InsertPoint, Rewriter

from braid.analysis.storage.tensor_storage import storage_bytes
from braid.dialects.braid.dtypes import bytes_of
from braid.lowering.common.element_types import constant

MODULE = "kernels"
"""The symbol of the `gpu.module`."""


def gpu_module(ops: Sequence[Operation]) -> gpu.ModuleOp:
    """Return a module of code for the device."""
    module = gpu.ModuleOp(SymbolRefAttr(MODULE), Region(Block(ops)))
    module.properties["sym_name"] = StringAttr(MODULE)
    return module


TENSOR_MAP_ALIGNMENT = 64


def gpu_function(
    symbol: str,
    arguments: Sequence[Attribute],
    threads: int,
    tensor_maps: int = 0,
    single: bool = False,
) -> gpu.FuncOp:
    """Return an empty entry for blocks of this many threads, with addresses of tensor maps at the
    end.

    If `single`, a thread may have as many registers as if there were one block: warps that give
    registers to others must declare their number.
    """
    types = [*arguments, *[llvm.LLVMPointerType()] * tensor_maps]
    function = gpu.FuncOp(symbol, (types, []), kernel=True)
    function.attributes["known_block_size"] = DenseArrayBase.from_list(i32, [threads, 1, 1])
    if tensor_maps:
        aligned = DictionaryAttr({"llvm.align": IntegerAttr(TENSOR_MAP_ALIGNMENT, i64)})
        plain = [DictionaryAttr({})] * len(arguments)
        function.properties["arg_attrs"] = ArrayAttr([*plain, *[aligned] * tensor_maps])
    if single:
        limit_blocks(function, 1)
    return function


READING_BLOCKS = 4
"""Blocks of a multiprocessor with which threads that read much keep registers for it."""


LOOP_ANNOTATION = "llvm.loop_annotation"


def keep_rolled(loop: scf.ForOp) -> None:
    """Keep both LLVM and the assembler from unrolling the loop."""
    kind = UnregisteredAttr.with_name_and_type(LOOP_ANNOTATION, False)
    loop_annotation = kind(LOOP_ANNOTATION, False, False, "unroll = <disable = true>")
    loop.attributes[LOOP_ANNOTATION] = loop_annotation


def limit_blocks(function: gpu.FuncOp, blocks: int) -> None:
    """Leave a thread the registers that it may have with this many blocks on a multiprocessor.

    The assembler gives no more than as many blocks leave as there can be at all, and then reads one
    element after the other where several could be on their way.
    """
    function.attributes["nvvm.minctasm"] = IntegerAttr(blocks, i32)


def buffer_bytes(buffer: BlockArgument, outside: Attribute) -> int:
    """Return the bytes from the first of a buffer to the end of the last that the kernel
    may use.
    """
    type = cast(MemRefType[Any], buffer.type)
    strides = type.get_strides()
    shape = type.get_shape()
    if strides is None or not all(shape):
        return storage_bytes(outside)
    last = sum((extent - 1) * int(s or 0) for extent, s in zip(shape, strides, strict=True))
    return (last + 1) * bytes_of(type.element_type)


def expand_magnitudes(code: FuncOp | Block) -> None:
    """Expand absolute values of integers: upstream lowers only those of i32 for GPUs."""
    for op in [op for op in code.walk() if isinstance(op, math.AbsIOp)]:
        builder = Builder(InsertPoint.before(op))
        negated = builder.insert(arith.SubiOp(constant(builder, 0, op.result.type), op.operands[0]))
        Rewriter.replace_op(op, arith.MaxSIOp(op.operands[0], negated.result))
