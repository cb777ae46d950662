"""Builds what kernels with tiles consist of: integers of 32 bits, pointers, NVVM's intrinsics."""

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.builder import Builder
from xdsl.dialects import arith, gpu, llvm, memref, scf
from xdsl.dialects.builtin import (
    DenseArrayBase,
    Float32Type,
    IndexType,
    IntAttr,
    IntegerType,
    VectorType,
    i32,
    i64,
)
from xdsl.dialects.vector import ExtractOp
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.rewriter import InsertPoint

from braid.lowering.common.element_types import constant

Value = SSAValue[Any]
GLOBAL = llvm.LLVMPointerType(IntAttr(1))
SHARED = llvm.LLVMPointerType(IntAttr(3))
_i8 = IntegerType(8)


class Code:
    """Inserts ops at one place."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder

    def insert(self, op: Any) -> Value:
        """Return the only result of an op."""
        return self.builder.insert(op).results[0]

    # ---- Integers ----

    def number(self, value: float, type: Attribute = i32) -> Value:
        """Return a constant."""
        return constant(self.builder, value, type)

    def _other(self, a: Value, b: Value | int) -> Value:
        return self.number(b, a.type) if isinstance(b, int) else b

    def add(self, a: Value, b: Value | int) -> Value:
        """Return the sum."""
        return a if b == 0 else self.insert(arith.AddiOp(a, self._other(a, b)))

    def mul(self, a: Value, b: Value | int) -> Value:
        """Return the product."""
        return a if b == 1 else self.insert(arith.MuliOp(a, self._other(a, b)))

    def div(self, a: Value, b: int) -> Value:
        """Return the quotient of unsigned numbers."""
        return a if b == 1 else self.insert(arith.DivUIOp(a, self._other(a, b)))

    def rem(self, a: Value, b: int) -> Value:
        """Return the rest of unsigned numbers."""
        return self.insert(arith.RemUIOp(a, self._other(a, b)))

    def bits(self, a: Value, b: Value | int) -> Value:
        """Return the bits that both have."""
        return self.insert(arith.AndIOp(a, self._other(a, b)))

    def xor(self, a: Value, b: Value | int) -> Value:
        """Return the bits that one has."""
        return self.insert(arith.XOrIOp(a, self._other(a, b)))

    def equal(self, value: Value, number: int) -> Value:
        """Return whether a value is this number."""
        return self.insert(arith.CmpiOp(value, self.number(number), "eq"))

    def below(self, a: Value, b: Value | int) -> Value:
        """Return whether a < b, unsigned."""
        return self.insert(arith.CmpiOp(a, self._other(a, b), "ult"))

    def least(self, a: Value, b: int) -> Value:
        """Return the smaller one, unsigned."""
        return self.insert(arith.MinUIOp(a, self._other(a, b)))

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        """Return `a` where the condition holds, else `b`."""
        return self.insert(arith.SelectOp(condition, a, b))

    def wide(self, a: Value) -> Value:
        """Return an unsigned number in 64 bits."""
        return self.insert(arith.ExtUIOp(a, i64))

    def index(self, a: Value) -> Value:
        """Return an unsigned number as an index."""
        return self.insert(arith.IndexCastOp(self.wide(a), IndexType()))

    def narrow(self, a: Value) -> Value:
        """Return an index in 32 bits."""
        return self.insert(arith.IndexCastOp(a, i32))

    def offset(
        self, index: Value, terms: Sequence[tuple[int, int]], bytes: int, type: Attribute = i64
    ) -> Value:
        """Return the bytes to index `index` of dims with these extents and strides of
        `bytes` each.
        """
        total: Value | None = None
        size = 1
        for position, (extent, stride) in reversed(list(enumerate(terms))):
            own = self.div(index, size)
            if position > 0:
                own = self.rem(own, extent)
            part = self.mul(self.wide(own) if type == i64 else own, stride * bytes)
            total = part if total is None else self.add(total, part)
            size *= extent
        return self.number(0, type) if total is None else total

    # ---- Where a thread is ----

    def thread(self) -> Value:
        """Return the thread's number in the block."""
        return self.narrow(self.insert(gpu.ThreadIdOp(gpu.DimensionAttr(gpu.DimensionEnum.X))))

    def block(self) -> Value:
        """Return the number of its block."""
        return self.narrow(self.insert(gpu.BlockIdOp(gpu.DimensionAttr(gpu.DimensionEnum.X))))

    def barrier(self) -> None:
        """Wait for all threads of the block."""
        self.builder.insert(gpu.BarrierOp())

    def warp_barrier(self) -> None:
        """Wait for all lanes of the warp."""
        self.intrinsic("llvm.nvvm.bar.warp.sync", [self.number(-1)], [])

    def uniform(self, value: Value) -> Value:
        """Return a number that all lanes of the warp have, as the assembler can see then."""
        operands = [self.number(-1), value, self.number(0), self.number(31)]
        return self.intrinsic("llvm.nvvm.shfl.sync.idx.i32", operands, [i32])[0]

    # ---- Memory ----

    def address(self, pointer: Value) -> Value:
        """Return the low 32 bits of a pointer, which suffice for shared memory."""
        return self.insert(llvm.PtrToIntOp(pointer, i32))

    def pointer(self, buffer: Value) -> Value:
        """Return the beginning of a buffer in global memory."""
        address = self.insert(memref.ExtractAlignedPointerAsIndexOp.get(buffer))
        number = self.insert(arith.IndexCastOp(address, i64))
        return self.insert(llvm.IntToPtrOp.create(operands=[number], result_types=[GLOBAL]))

    def at(self, pointer: Value, bytes: Value | int) -> Value:
        """Return the pointer `offset` bytes further on."""
        if isinstance(bytes, int):
            if bytes == 0:
                return pointer
            return self.insert(llvm.GEPOp(pointer, [bytes], _i8, result_type=_pointer(pointer)))
        dynamic = [-(2**31)]
        gep = llvm.GEPOp(pointer, dynamic, _i8, [bytes], result_type=_pointer(pointer))
        return self.insert(gep)

    def load(self, pointer: Value, type: Attribute, alignment: int) -> Value:
        """Return the element there."""
        return self.insert(llvm.LoadOp(pointer, type, alignment))

    def store(self, value: Value, pointer: Value, alignment: int) -> None:
        """Write a value there."""
        self.builder.insert(llvm.StoreOp(value, pointer, alignment))

    # ---- Vectors, structs, intrinsics ----

    def vector(self, values: Sequence[Value]) -> Value:
        """Return a vector of values of one type."""
        type = VectorType(values[0].type, [len(values)])
        whole = self.insert(llvm.UndefOp(type))
        for place, value in enumerate(values):
            own = llvm.InsertElementOp.create(
                operands=[whole, value, self.number(place)], result_types=[type]
            )
            whole = self.insert(own)
        return whole

    def element(self, vector: Value, place: int, type: Attribute) -> Value:
        """Return an element of a vector."""
        return self.insert(ExtractOp(vector, [place], type))

    def intrinsic(
        self, name: str, operands: Sequence[Value], results: Sequence[Attribute]
    ) -> list[Value]:
        """Call one of LLVM; several results come as a struct."""
        if len(results) < 2:
            return list(self.builder.insert(llvm.CallIntrinsicOp(name, operands, results)).results)
        struct = llvm.LLVMStructType.from_type_list(list(results))
        return self.fields(self.insert(llvm.CallIntrinsicOp(name, operands, [struct])), results)

    def assembly(
        self,
        text: str,
        operands: Sequence[Value] = (),
        results: Sequence[Attribute] = (),
        before: Sequence[Value] = (),
    ) -> list[Value]:
        """Emit one instruction of PTX, which may have side effects: `$n` are results, then
        operands.

        Registers of results hold `before` before.
        """
        kinds = [f"={_register(type)}" for type in results]
        kinds += [_register(value.type) for value in operands]
        kinds += [*(str(n) for n in range(len(before))), "~{memory}"]
        types = list(results)
        if len(types) > 1:
            types = [llvm.LLVMStructType.from_type_list(types)]
        given = [*operands, *before]
        op = llvm.InlineAsmOp(text, ",".join(kinds), given, types, has_side_effects=True)
        made = self.builder.insert(op)
        if len(results) < 2:
            return list(made.results)
        return self.fields(made.results[0], results)

    def power_of_two(self, a: Value) -> Value:
        """Return 2^a for f32, within 2 ulp; tiny values give 0 (PTX ISA, "ex2")."""
        text = "ex2.approx.ftz.f32 $0, $1;"
        return self.insert(llvm.InlineAsmOp(text, "=f,f", [a], [a.type]))

    def fields(self, struct: Value, types: Sequence[Attribute]) -> list[Value]:
        """Return the fields of a struct."""
        return [
            self.insert(llvm.ExtractValueOp(DenseArrayBase.from_list(i64, [n]), struct, type))
            for n, type in enumerate(types)
        ]

    # ---- Control flow ----

    def loop(
        self,
        begin: Value,
        end: Value,
        step: Value,
        carried: Sequence[Value],
        body: Callable[["Code", Value, Sequence[Value]], Sequence[Value]],
    ) -> list[Value]:
        """Emit a loop; `body` gets the index and the carried values, and returns the next ones."""
        block = Block(arg_types=[begin.type, *(value.type for value in carried)])
        inside = Code(Builder(InsertPoint.at_end(block)))
        results = body(inside, block.args[0], block.args[1:])
        inside.builder.insert(scf.YieldOp(*results))
        return list(self.builder.insert(scf.ForOp(begin, end, step, carried, block)).results)

    def choose(
        self,
        condition: Value,
        then: Callable[["Code"], None],
        otherwise: Callable[["Code"], None] | None = None,
    ) -> None:
        """Emit one of two pieces of code, by a condition."""
        blocks: list[Block] = []
        for make in (then, otherwise):
            end = scf.YieldOp()
            blocks.append(Block([end]))
            if make is not None:
                make(Code(Builder(InsertPoint.before(end))))
        rest = None if otherwise is None else [blocks[1]]
        self.builder.insert(scf.IfOp(condition, (), [blocks[0]], rest))


def _register(type: Attribute) -> str:
    """Return the constraint of a register for a type."""
    if isinstance(type, llvm.LLVMPointerType) or type == i64:
        return "l"
    return "f" if isinstance(type, Float32Type) else "r"


def f32_vector(lanes: int) -> VectorType[Any]:
    """Return the type of a vector of `count` f32."""
    return VectorType(Float32Type(), [lanes])


def _pointer(value: Value) -> llvm.LLVMPointerType:
    type = value.type
    assert isinstance(type, llvm.LLVMPointerType)
    return type
