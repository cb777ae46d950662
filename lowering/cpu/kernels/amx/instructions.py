"""The tile registers of AMX, by LLVM's intrinsics that name them.

Intel 64 and IA-32 Architectures Software Developer's Manual, vol. 1, chapter 18: eight registers,
each of up to 16 rows of up to 64 bytes, in shapes that are configured for all of them at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    IntegerType,
    VectorType,
    f32,
    i32,
    i64,
)
from xdsl.dialects.llvm import CallIntrinsicOp

from braid.dialects.braid.base import element_type_of
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.dtypes import bytes_of, is_unsigned
from braid.dialects.braid.matmul import MatmulOp
from braid.lowering.common.emitted_dialects import vector
from braid.lowering.cpu.kernels.contraction.arithmetic import adds_bytes, adds_halves
from braid.lowering.emit.buffer import Buffer
from braid.lowering.emit.emitter import Emitter, Index, Value
from braid.targets.machines.machine import Machine

REGISTERS = 8
ROWS = 16
"""The most rows of a register."""

STEP_BYTES = 4
"""The bytes of A and of every column of B that are multiplied and added up for one element of the
result."""

STEPS = 16
"""The most steps in a row of A; each is a row of B."""

COLUMNS = 16
"""The columns of the result, 32 bits each."""

_CONFIGURATION_BYTES = 64
_PALETTE = 1

_BYTE_PRODUCTS = {
    (False, False): "llvm.x86.tdpbssd",
    (False, True): "llvm.x86.tdpbsud",
    (True, False): "llvm.x86.tdpbusd",
    (True, True): "llvm.x86.tdpbuud",
}
"""The intrinsics, by whether A and B are unsigned."""

i8 = IntegerType(8)


@dataclass(frozen=True)
class TileProduct:
    """The instruction that adds a product of two tiles to a third, of `group` elements a step."""

    instruction: str
    group: int
    is_float: bool

    @property
    def features(self) -> tuple[str, str]:
        """The CPU features of the instruction and of the tile registers."""
        return ("amx-bf16" if self.is_float else "amx-int8", "amx-tile")

    @staticmethod
    def of(op: ConvOp | MatmulOp, machine: Machine) -> "TileProduct | None":
        """Return the instructions for an int8 or bf16 matmul; None for other types, or if the
        machine has none.
        """
        features = set(machine.enabled_features)
        if machine.architecture != "x86_64" or "amx-tile" not in features:
            return None
        if adds_halves(op):
            return TileProduct("llvm.x86.tdpbf16ps", 2, True) if "amx-bf16" in features else None
        if not adds_bytes(op) or "amx-int8" not in features:
            return None
        left, right = (is_unsigned(element_type_of(value)) for value in op.operands)
        return TileProduct(_BYTE_PRODUCTS[left, right], STEP_BYTES, False)


def configure(e: Emitter, scratch: Buffer, at: int, shapes: Sequence[tuple[int, int]]) -> None:
    """Give the registers their (rows, bytes of a row); by 64 bytes from element `at` on.

    All registers are zero then. It takes about a third of a microsecond with `release`.
    """
    rows = [0] * ROWS
    row_bytes = [0] * ROWS
    for number, (count, size) in enumerate(shapes):
        rows[number], row_bytes[number] = count, size
    header = [_PALETTE, *[0] * 15]
    widths = [byte for size in row_bytes for byte in size.to_bytes(2, "little")]
    words = [
        int.from_bytes(bytes(chunk), "little", signed=True)
        for chunk in _quads([*header, *widths, *rows])
    ]
    type = VectorType(i32, [_CONFIGURATION_BYTES // 4])
    value = e.insert(arith.ConstantOp(DenseIntOrFPElementsAttr.from_list(type, words), type))
    scratch.store(e, e.insert(vector.BitcastOp(value, e.vector_type(f32))), at)
    _call(e, "llvm.x86.ldtilecfg", scratch.pointer(e, at))


def release(e: Emitter) -> None:
    """Give the registers back, so that nothing has to be saved for them."""
    _call(e, "llvm.x86.tilerelease")


def zero(e: Emitter, register: int) -> None:
    """Fill a register with zeros."""
    _call(e, "llvm.x86.tilezero", _number(e, register))


def load(e: Emitter, register: int, source: Buffer, at: Index, row_stride: int) -> None:
    """Fill a register with rows that begin `row_stride` elements apart, the first at `at`."""
    stride = e.constant(row_stride * bytes_of(source.element_type), i64)
    _call(e, "llvm.x86.tileloadd64", _number(e, register), source.pointer(e, at), stride)


def store(e: Emitter, register: int, target: Buffer, at: Index, row_stride: int) -> None:
    """Write a register to rows that begin `row_stride` elements apart, the first at `at`."""
    stride = e.constant(row_stride * bytes_of(target.element_type), i64)
    _call(e, "llvm.x86.tilestored64", _number(e, register), target.pointer(e, at), stride)


def multiply_add(e: Emitter, product: TileProduct, sum: int, a: int, b: int) -> None:
    """Add the product of registers `a` and `b` to register `sum`."""
    _call(e, product.instruction, *(_number(e, register) for register in (sum, a, b)))


def _call(e: Emitter, name: str, *operands: Value) -> None:
    e.effect(CallIntrinsicOp(name, list(operands), []))


def _number(e: Emitter, register: int) -> Value:
    return e.constant(register, i8)


def _quads(values: Sequence[int]) -> list[Sequence[int]]:
    return [values[place : place + 4] for place in range(0, len(values), 4)]
