"""The kernel that calls oneDNN: makes its primitive when it first runs, once in a process.

The code refers to the library's functions by name, as linked code does: whoever loads it loads
the library before. A primitive runs on the calling thread alone, whatever OpenMP is set to.
"""

from collections.abc import Sequence
from typing import Any

from xdsl.dialects import arith, func, llvm, scf
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    ModuleOp,
    TensorType,
    f32,
    i8,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from braid.analysis.storage.strided_storage import stored_choice
from braid.dialects.braid.regions import FusedOp
from braid.lowering.common.argument_attributes import argument_attributes
from braid.lowering.common.emitted_dialects import memref
from braid.lowering.cpu.library.calls import Argument, Call, Out, Size, Slot
from braid.lowering.cpu.library.primitives import SCRATCHPAD_ARGUMENT, Program
from braid.lowering.cpu.unit.kernel_function import stored_type
from braid.support.shared_objects import ONEDNN, OPENMP
from braid.targets.kernels.kernel_family import Kernel

_POINTER = llvm.LLVMPointerType()
_SLOTS, _ONCE, _MAKE = "library_slots", "library_once", "make_primitive"
_ALLOCATE = -1
"""The address of memory that the library allocates."""


def library_kernel(
    group: FusedOp, symbol: str, program: Program, buffers: Sequence[int | None]
) -> Kernel:
    """Return a kernel of `group` that runs the primitive of `program`.

    `buffers` are, for each argument of the program, the number of the operand or result of the
    group that it is, counted through; None for the scratchpad.
    """
    module = _Module(program)
    values: list[SSAValue] = [*group.inputs, *group.outputs]
    choice = stored_choice(group)
    layouts = (*choice.operands, *choice.results)
    types = [stored_type(v.type, layout) for v, layout in zip(values, layouts, strict=True)]
    entry = Block(arg_types=[*types, IndexType(), IndexType()])
    module.fill(entry, buffers)
    function = func.FuncOp(
        symbol,
        ([argument.type for argument in entry.args], []),
        Region(entry),
        arg_attrs=argument_attributes(len(group.inputs), len(group.outputs), ()),
    )
    made = module.finished(function)
    return Kernel(symbol, made, libraries=(ONEDNN, OPENMP))


class _Code:
    """Ops at the end of a block, in the `llvm` dialect."""

    def __init__(self, module: "_Module", block: Block) -> None:
        self._module, self._block = module, block

    def add(self, op: Operation) -> SSAValue:
        """Return the result of an op that is added."""
        self._block.add_op(op)
        return op.results[0]

    def effect(self, op: Operation) -> None:
        """Add an op without a result."""
        self._block.add_op(op)

    def integer(self, value: int, type: Any = i32) -> SSAValue:
        return self.add(llvm.ConstantOp(IntegerAttr(value, type), type))

    def address(self, symbol: str) -> SSAValue:
        return self.add(llvm.AddressOfOp(symbol, _POINTER))

    def allocate(self, type: Attribute, count: int) -> SSAValue:
        """Allocate memory for `count` elements on the stack."""
        return self.add(llvm.AllocaOp(self.integer(count, i64), type))

    def at(self, address: SSAValue, offset: int) -> SSAValue:
        """Return the address some bytes after another."""
        return self.add(llvm.GEPOp(address, [offset], pointee_type=i8))

    def load(self, address: SSAValue) -> SSAValue:
        return self.add(llvm.LoadOp(address, _POINTER))

    def store(self, value: SSAValue, address: SSAValue) -> None:
        self.effect(llvm.StoreOp(value, address))

    def slot(self, slot: Slot) -> SSAValue:
        return self.at(self.address(_SLOTS), 8 * slot.number)

    def call(self, name: str, arguments: Sequence[SSAValue], result: Attribute | None) -> SSAValue:
        """Return the result, or the last argument if there is none."""
        types = [argument.type for argument in arguments]
        self._module.declare(name, types, result)
        results = [] if result is None else [result]
        op = func.CallOp(name, arguments, results)
        self.effect(op)
        return op.results[0] if op.results else arguments[-1]

    def converted(self, argument: Argument) -> SSAValue:
        match argument:
            case Slot():
                return self.load(self.slot(argument))
            case Out(slot):
                return self.slot(slot)
            case Size(value):
                return self.integer(value, i64)
            case float():
                return self.add(llvm.ConstantOp(FloatAttr(argument, f32), f32))
            case int():
                return self.integer(argument)
            case bytes():
                return self.address(self._module.constant(argument))
            case None:
                return self.add(llvm.ZeroOp.build(result_types=[_POINTER]))


class _Module:
    """The parts of the kernel's module, beside its function."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._constants: dict[bytes, str] = {}
        self._declared: dict[str, func.FuncOp] = {}

    def declare(self, name: str, types: Sequence[Attribute], result: Attribute | None) -> None:
        """Declare a function of the library or of the system."""
        results = [] if result is None else [result]
        if name not in self._declared:
            self._declared[name] = func.FuncOp.external(name, list(types), results)

    def constant(self, data: bytes) -> str:
        """Return the symbol of constant bytes."""
        return self._constants.setdefault(data, f"library_data_{len(self._constants)}")

    def fill(self, entry: Block, buffers: Sequence[int | None]) -> None:
        """Emit the body of the kernel, which has a single iteration."""
        code = _Code(self, entry)
        arguments = self._program.arguments
        memories, listed = (
            code.allocate(_POINTER, len(arguments)),
            code.allocate(i64, 2 * len(arguments)),
        )
        one = code.add(arith.ConstantOp(IntegerAttr(1, IndexType())))
        body = Block(arg_types=[IndexType()])
        begin, end = entry.args[-2:]
        code.effect(scf.ForOp(begin, end, one, [], body))
        code.effect(func.ReturnOp())
        inner = _Code(self, body)
        threads = inner.call("omp_get_max_threads", (), i32)
        inner.call("omp_set_num_threads", (inner.integer(1),), None)
        once = (inner.address(_ONCE), inner.address(_MAKE))
        inner.call("pthread_once", once, i32)
        self._run(inner, [None if b is None else entry.args[b] for b in buffers], memories, listed)
        inner.call("omp_set_num_threads", (threads,), None)
        inner.effect(scf.YieldOp())

    def _run(
        self,
        code: _Code,
        buffers: Sequence[SSAValue | None],
        memories: SSAValue,
        listed: SSAValue,
    ) -> None:
        program = self._program
        engine = code.load(code.slot(program.engine))
        arguments = list(zip(program.arguments, buffers, strict=True))
        for number, ((argument, descriptor), buffer) in enumerate(arguments):
            assert (buffer is None) == (argument == SCRATCHPAD_ARGUMENT)
            place, entry = code.at(memories, 8 * number), code.at(listed, 16 * number)
            address = code.integer(_ALLOCATE, i64) if buffer is None else _bits(code, buffer)
            handle = code.add(llvm.IntToPtrOp(address))
            parts = (place, code.load(code.slot(descriptor)), engine, handle)
            code.call("dnnl_memory_create", parts, i32)
            code.store(code.integer(argument), entry)
            code.store(code.load(place), code.at(entry, 8))
        primitive, stream = (code.load(code.slot(x)) for x in (program.primitive, program.stream))
        count = code.integer(len(arguments))
        status = code.call("dnnl_primitive_execute", (primitive, stream, count, listed), i32)
        self._require(code, status)
        for number in range(len(arguments)):
            memory = code.load(code.at(memories, 8 * number))
            code.call("dnnl_memory_destroy", (memory,), i32)

    def _require(self, code: _Code, status: SSAValue) -> None:
        """End the process where the library has no memory: a kernel cannot say that it failed."""
        zero = code.integer(0)
        failed = code.add(llvm.ICmpOp(status, zero, IntegerAttr(1, i64)))
        block = Block()
        inner = _Code(self, block)
        self.declare("abort", (), None)
        inner.effect(func.CallOp("abort", [], []))
        inner.effect(scf.YieldOp())
        code.effect(scf.IfOp(failed, [], Region(block), Region(Block([scf.YieldOp()]))))

    def finished(self, function: func.FuncOp) -> ModuleOp:
        """Return the module with `function` and all that it refers to."""
        make = self._make()
        internal = llvm.LinkageAttr("internal")
        slots = max(self._program.slots, 1)
        zeros = DenseIntOrFPElementsAttr.from_list(TensorType(i64, [slots]), [0] * slots)
        array = llvm.LLVMArrayType(slots, i64)
        parts: list[Operation] = [
            llvm.GlobalOp(array, _SLOTS, internal, value=zeros, alignment=8),
            llvm.GlobalOp(i32, _ONCE, internal, value=IntegerAttr(0, i32)),
        ]
        for data, name in self._constants.items():
            signed = [byte - 256 if byte > 127 else byte for byte in data]
            value = DenseIntOrFPElementsAttr.from_list(TensorType(i8, [len(data)]), signed)
            array = llvm.LLVMArrayType(len(data), i8)
            parts.append(
                llvm.GlobalOp(array, name, internal, constant=True, value=value, alignment=8)
            )
        return ModuleOp([*parts, *self._declared.values(), make, function])

    def _make(self) -> llvm.FuncOp:
        block = Block()
        code = _Code(self, block)
        for call in self._program.calls:
            self._emit(code, call)
        code.effect(llvm.ReturnOp())
        return llvm.FuncOp(_MAKE, llvm.LLVMFunctionType([]), body=Region(block))

    def _emit(self, code: _Code, call: Call) -> None:
        arguments = [code.converted(each) for each in call.arguments]
        if call.result is None:
            self._require(code, code.call(call.function, arguments, i32))
        else:
            code.store(code.call(call.function, arguments, _POINTER), code.slot(call.result))


def _bits(code: _Code, buffer: SSAValue) -> SSAValue:
    """Return the address of a buffer, as a number."""
    index = code.add(memref.ExtractAlignedPointerAsIndexOp.get(buffer))
    return code.add(arith.IndexCastOp(index, i64))
