"""Softmax, normalizations and reductions of rows: a row stays in registers.

All nests of a kernel go over the same rows, whose elements lie next to each other. The threads of a
row (a warp, or a block for long rows) read each operand once, 16 bytes at a time; every nest
computes on what they hold. A reduction is a tree over the lanes of a warp by shuffles, and over
warps through shared memory; results are written when all nests are done. Values between the nests
never go to memory. Rows that are too long for the registers of a block are read again for each
reduction, and once more for results that are as long.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import AnyFloat, IntegerType, MemRefType, i1
from xdsl.dialects.func import FuncOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from braid.dialects.braid.dtypes import bytes_of
from braid.lowering.gpu.nests.row_access import Access, RowNest, Rows, row_nest, rows_of
from braid.lowering.gpu.nests.thread_nests import ThreadNest
from braid.lowering.gpu.nests.wide_access import ACCESS_BYTES

WARP = 32
ROWS_PER_BLOCK = 4
"""The rows of a block in which each warp works on a row."""
_MOST_ELEMENTS = 32
"""The most elements of a row that a thread holds, for each buffer."""
_MOST_BYTES = 64
"""The most bytes of a row that a thread holds, where more threads can hold the rest."""
_FEW_ROWS = 64
"""The number of blocks that leaves most of a GPU without work."""
_LONGEST = 2**18
"""Elements of a row that take a block longer than another launch does."""
_THREADS = (WARP, 128, 256, 512)
_LONG_THREADS = 1024
"""The threads for rows that are read again: with fewer rows at once, more stays in the cache."""

_NEUTRAL: dict[type[Operation], float] = {
    arith.AddfOp: 0.0,
    arith.MulfOp: 1.0,
    arith.MaximumfOp: float("-inf"),
    arith.MinimumfOp: float("inf"),
    arith.AddiOp: 0,
    arith.MuliOp: 1,
}
"""The neutral elements, by the op that a reduction combines with; see `neutral` for others."""


@dataclass(frozen=True)
class RowProgram:
    """The nests of a kernel in order, and how many threads work on a row."""

    function: FuncOp
    rows: Rows
    nests: tuple[RowNest, ...]
    operands: int

    @staticmethod
    def of(function: FuncOp, operands: int) -> "RowProgram | None":
        """Return the program of a bufferized kernel before its buffers become scratch; None for
        other kernels.
        """
        ops = list(function.body.block.ops)[:-1]
        nests: list[ThreadNest] = []
        for op in ops:
            if isinstance(op, linalg.GenericOp | linalg.FillOp):
                nests.append(ThreadNest.of(op))
            elif not isinstance(op, arith.ConstantOp | memref.AllocOp):
                return None
        rows = rows_of(nests)
        if rows is None:
            return None
        found = [row_nest(nest, rows) for nest in nests]
        own = tuple(nest for nest in found if nest is not None)
        program = RowProgram(function, rows, own, operands)
        complete = len(own) == len(found) and all(map(_is_known, own))
        if not complete or not program._is_ordered():
            return None
        return None if program.is_long and not program._writes_elements_once() else program

    @property
    def is_long(self) -> bool:
        """Return whether rows do not fit the registers of a block."""
        return self.rows.columns > _THREADS[-1] * _MOST_ELEMENTS

    @property
    def is_starved(self) -> bool:
        """Return whether few blocks would do no more than reduce long rows to a number each."""
        few = self.rows.count <= _FEW_ROWS and self.rows.columns >= _LONGEST
        return few and self._only_reduces

    @property
    def needs_registers(self) -> bool:
        """Return whether more bytes are read, one in each register, than the assembler gives.

        The assembler gives more where the elements of a row are computed, too.
        """
        return self._narrowest == 1 and self._only_reduces

    @property
    def _only_reduces(self) -> bool:
        """Return whether nothing that is as long as a row is made."""
        nests = [nest for nest in self.nests if not isinstance(nest.nest.nest, linalg.FillOp)]
        return not any(nest.over_columns and not nest.reduces for nest in nests)

    @property
    def threads_of_row(self) -> int:
        """Return the number of threads that work on a row together."""
        each = min(_MOST_ELEMENTS, _MOST_BYTES // self._narrowest)
        enough = (n for n in _THREADS if self.rows.columns <= n * each)
        return _LONG_THREADS if self.is_long else next(enough, _THREADS[-1])

    @property
    def rows_of_block(self) -> int:
        """Return the number of rows that a block works on."""
        return ROWS_PER_BLOCK if self.threads_of_row == WARP else 1

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.threads_of_row * self.rows_of_block

    @property
    def blocks(self) -> int:
        """Return the number of blocks."""
        return -(-self.rows.count // self.rows_of_block)

    @property
    def width(self) -> int:
        """Return the elements a thread reads at once: 16 bytes of the narrowest, if rows allow."""
        width = ACCESS_BYTES // self._narrowest
        fits = width > 1 and self.rows.columns % width == 0
        return width if fits else 1

    @property
    def _narrowest(self) -> int:
        """Bytes of an element of a row, as those are in memory."""
        sizes = [
            bytes_of(cast(MemRefType[Any], value.type).element_type)
            for nest in self.nests
            for value, access in zip(nest_buffers(nest), nest.accesses, strict=True)
            if access is Access.ELEMENT
        ]
        return min(sizes, default=ACCESS_BYTES)

    @property
    def reductions(self) -> int:
        """Return the number of nests that reduce."""
        return sum(nest.reduces for nest in self.nests)

    @property
    def arguments(self) -> tuple[BlockArgument, ...]:
        """The operands and results of the kernel."""
        return tuple(self.function.body.block.args[:-2])

    def _writes_elements_once(self) -> bool:
        """Return whether a single nest defines a buffer that is as long as rows, so that it is
        recomputed.
        """
        written = [
            value
            for nest in self.nests
            for value, access in zip(nest_buffers(nest), nest.accesses, strict=True)
            if access is Access.ELEMENT and value in nest.nest.nest.outputs
        ]
        return len(written) == len(set(written))

    def _is_ordered(self) -> bool:
        """Return whether every buffer of the kernel's own is written before it is read, and every
        result.

        An operand is not written, and a buffer always accessed in the same way.
        """
        written: dict[SSAValue, Access] = {}
        arguments = self.arguments
        for nest in self.nests:
            for value, access in zip(nest_buffers(nest), nest.accesses, strict=True):
                is_operand = value in arguments[: self.operands]
                if value in nest.nest.nest.outputs:
                    if is_operand or written.setdefault(value, access) != access:
                        return False
                elif not is_operand and written.get(value) != access:
                    return False
        return all(result in written for result in arguments[self.operands :])


def nest_buffers(nest: RowNest) -> Sequence[SSAValue]:
    """Return the buffers of a nest, in the order of its accesses."""
    op = nest.nest.nest
    return op.outputs if isinstance(op, linalg.FillOp) else op.operands


def combiner(op: linalg.GenericOp) -> Operation | None:
    """Return the op by which a nest that reduces combines a value with what it has so far."""
    *_, total = op.body.block.args
    last = op.body.block.last_op
    assert isinstance(last, linalg.YieldOp)
    combined = last.arguments[0].owner
    uses = [use.operation for use in total.uses]
    if not isinstance(combined, Operation) or uses != [combined] or len(combined.operands) != 2:
        return None
    known = type(combined) in _NEUTRAL or isinstance(combined, arith.MaxSIOp | arith.MinSIOp)
    return combined if known else None


def neutral(op: Operation) -> float:
    """Return the neutral number for `op`, in the type of its result."""
    if not isinstance(op, arith.MaxSIOp | arith.MinSIOp):
        return _NEUTRAL[type(op)]
    least = -(1 << (8 * bytes_of(op.result.type) - 1))
    return least if isinstance(op, arith.MaxSIOp) else -1 - least


def _is_known(nest: RowNest) -> bool:
    op = nest.nest.nest
    if isinstance(op, linalg.FillOp):
        return nest.accesses[0] in (Access.ELEMENT, Access.ROW)
    if any(inner.regions for inner in op.body.block.ops):
        return False
    outputs = nest.accesses[len(op.inputs) :]
    if not nest.reduces:
        reads = any(argument.uses for argument in op.body.block.args[len(op.inputs) :])
        wanted = Access.ELEMENT if nest.over_columns else Access.ROW
        return not reads and all(access is wanted for access in outputs)
    is_row = len(outputs) == 1 and outputs[0] is Access.ROW
    return is_row and combiner(op) is not None and _can_shuffle(op.outputs[0])


def _can_shuffle(buffer: SSAValue) -> bool:
    type: Attribute = cast(MemRefType[Any], buffer.type).element_type
    return isinstance(type, AnyFloat) or (isinstance(type, IntegerType) and type != i1)
