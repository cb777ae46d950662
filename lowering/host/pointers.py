"""Building pointer code: addresses, loads, stores, copies and calls in the `llvm` dialect."""

from collections.abc import Iterable, Sequence

from xdsl.builder import Builder
from xdsl.dialects import arith, llvm
from xdsl.dialects.builtin import IntegerType, SymbolRefAttr, i1, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

POINTER = llvm.LLVMPointerType()
POINTER_BYTES = 8
I8 = IntegerType(8)
LARGEST_STATIC_OFFSET = 2**31 - 1
"""Constant indices of `llvm.getelementptr` have 32 bits."""


class PointerBuilder(Builder):
    """A builder with names for the parts of programs on raw pointers."""

    def emit(self, op: Operation) -> SSAValue:
        """Insert `op` and return its first result."""
        return self.insert(op).results[0]

    def constant(self, value: int) -> SSAValue:
        """Return a constant i64."""
        return self.emit(arith.ConstantOp.from_int_and_width(value, 64))

    def address(self, base: SSAValue, offset: int) -> SSAValue:
        """Return `base` plus a constant number of bytes."""
        if offset == 0:
            return base
        if offset > LARGEST_STATIC_OFFSET:
            return self.address_at(base, self.constant(offset))
        return self.emit(llvm.GEPOp.from_mixed_indices(base, [offset], I8, inbounds=True))

    def address_at(self, base: SSAValue, offset: SSAValue) -> SSAValue:
        """Return `base` plus an i64 number of bytes."""
        return self.emit(llvm.GEPOp.from_mixed_indices(base, [offset], I8, inbounds=True))

    def load(self, pointer: SSAValue, type: Attribute) -> SSAValue:
        """Load a scalar; a bool is stored as a byte."""
        if type == i1:
            byte = self.emit(llvm.LoadOp(pointer, I8))
            zero = self.emit(arith.ConstantOp.from_int_and_width(0, 8))
            return self.emit(arith.CmpiOp(byte, zero, "ne"))
        return self.emit(llvm.LoadOp(pointer, type))

    def store(self, value: SSAValue, pointer: SSAValue) -> None:
        """Store a scalar; a bool is stored as a byte, an index as an i64."""
        if value.type == i1:
            value = self.emit(arith.ExtUIOp(value, I8))
        self.insert(llvm.StoreOp(value, pointer))

    def load_pointer(self, slots: SSAValue, place: int) -> SSAValue:
        """Load pointer number `place` of the consecutive pointers at `slots`."""
        return self.load(self.address(slots, place * POINTER_BYTES), POINTER)

    def store_pointers(self, pointers: Iterable[SSAValue], slots: SSAValue) -> None:
        """Write pointers one after the other to `slots`."""
        for place, pointer in enumerate(pointers):
            self.store(pointer, self.address(slots, place * POINTER_BYTES))

    def copy(self, target: SSAValue, source: SSAValue, size: SSAValue) -> None:
        """Copy `size` bytes between buffers that do not overlap."""
        self.insert(llvm.CallOp("memcpy", target, source, size, return_type=POINTER))

    def copy_unless_same(self, target: SSAValue, source: SSAValue, size: SSAValue) -> None:
        """Copy `size` bytes between buffers that are the same or do not overlap."""
        written, read = (self.emit(llvm.PtrToIntOp(place, i64)) for place in (target, source))
        same = self.emit(arith.CmpiOp(written, read, "eq"))
        self.copy(target, source, self.emit(arith.SelectOp(same, self.constant(0), size)))

    def call(self, symbol: str, *arguments: SSAValue) -> None:
        """Call a function without result."""
        self.insert(llvm.CallOp(symbol, *arguments))

    def call_pointer(
        self, function: SSAValue, arguments: Sequence[SSAValue], result: Attribute | None = None
    ) -> SSAValue | None:
        """Call a function by its address."""
        call = llvm.CallOp("indirect", function, *arguments, return_type=result)
        del call.properties["callee"]
        self.insert(call)
        return call.results[0] if result is not None else None

    def function_address(self, symbol: str) -> SSAValue:
        """Return the address of a function of the module."""
        return self.emit(llvm.AddressOfOp(SymbolRefAttr(symbol), POINTER))

    def stack_slots(self, count: int) -> SSAValue:
        """Return memory for `count` pointers on the stack."""
        size = self.constant(count)
        return self.emit(llvm.AllocaOp(size, POINTER, alignment=8))


def external_function(
    symbol: str, arguments: Sequence[Attribute], result: Attribute | None = None
) -> llvm.FuncOp:
    """Return the declaration of a function that another object defines."""
    signature = llvm.LLVMFunctionType(list(arguments), result)
    return llvm.FuncOp(symbol, signature, llvm.LinkageAttr("external"))


def parallel_body(symbol: str, block: Block) -> llvm.FuncOp:
    """Return `void symbol(slots, begin, end)`, as `parallel_for` calls it, made of `block`."""
    signature = llvm.LLVMFunctionType([POINTER, i64, i64])
    return llvm.FuncOp(symbol, signature, llvm.LinkageAttr("internal"), body=Region(block))


def kernel_arguments(pointers: int, sizes: int = 0) -> list[Attribute]:
    """Return the argument types of a kernel: buffers, `begin` and `end`, then values of sizes."""
    return [*[POINTER] * pointers, i64, i64, *[i64] * sizes]
