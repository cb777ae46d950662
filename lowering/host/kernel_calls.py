"""Calling kernels: directly, or in parallel through the runtime."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from xdsl.dialects import arith, llvm
from xdsl.dialects.builtin import ModuleOp, i64
from xdsl.ir import Block, SSAValue
from xdsl.rewriter import InsertPoint

from braid.lowering.host.environment import (
    PARALLEL_FOR_OFFSET,
    Environment,
)
from braid.lowering.host.kernel_grids import KernelGrid, Workers
from braid.lowering.host.pointers import (
    POINTER,
    POINTER_BYTES,
    PointerBuilder,
    external_function,
    kernel_arguments,
    parallel_body,
)


@dataclass(frozen=True)
class Iterations:
    """The iterations [begin, end) of a kernel's grid; with `workers`, all of the grid."""

    begin: int
    end: int
    workers: Workers | None = None

    @property
    def count(self) -> int:
        """How many there are."""
        return self.end - self.begin


class KernelCalls:
    """Declares each kernel once, with a thunk for parallel calls where it has a grid."""

    def __init__(self, module: ModuleOp, environment: Environment, entry: PointerBuilder) -> None:
        self._module = module
        self._environment = environment
        self._entry = entry
        self._declared: set[str] = set()
        # What calls share is computed once at the entry.
        self._slots: dict[int, list[SSAValue]] = {}
        self._constants: dict[int, SSAValue] = {}
        self._parallel_for: SSAValue | None = None

    def call(
        self,
        builder: PointerBuilder,
        symbol: str,
        buffers: Sequence[SSAValue],
        grid: KernelGrid,
    ) -> None:
        """Runs all iterations of the kernel's grid on `buffers`."""
        self._declare_kernel(symbol, len(buffers))
        for begin, end in pairwise((0, *grid.barriers, grid.iterations)):
            self._run(builder, symbol, buffers, Iterations(begin, end, grid.workers))

    def _run(
        self, builder: PointerBuilder, symbol: str, buffers: Sequence[SSAValue], part: Iterations
    ) -> None:
        """Runs a part of the grid, whose iterations do not depend on each other."""
        if part.count == 1:
            builder.call(symbol, *buffers, *map(self._constant, (part.begin, part.end)))
            return
        thunk = f"{symbol}_iterations" + (f"_{part.begin}" if part.begin else "")
        self._declare(thunk, lambda: thunk_function(thunk, symbol, len(buffers), part))
        slots = self._slots_for(len(buffers))
        for buffer, slot in zip(buffers, slots, strict=True):
            builder.store(buffer, slot)
        if self._parallel_for is None:
            self._parallel_for = self._environment.service(self._entry, PARALLEL_FOR_OFFSET)
        body = builder.function_address(thunk)
        count = self._constant(part.workers.count if part.workers else part.count)
        arguments = [self._environment.env, body, slots[0], count]
        builder.call_pointer(self._parallel_for, arguments)

    def call_whole(
        self,
        builder: PointerBuilder,
        symbol: str,
        buffers: Sequence[SSAValue],
        grid: KernelGrid,
    ) -> None:
        """Runs all iterations of the kernel's grid on this thread, as its first worker."""
        self._declare_kernel(symbol, len(buffers))
        for begin, end in pairwise((0, *grid.barriers, grid.iterations)):
            builder.call(symbol, *buffers, builder.constant(begin), builder.constant(end))

    def _declare_kernel(self, symbol: str, buffers: int) -> None:
        self._declare(symbol, lambda: external_function(symbol, kernel_arguments(buffers)))

    def _slots_for(self, count: int) -> list[SSAValue]:
        """Room on the stack, shared by all calls of that many buffers: one runs at a time."""
        if count not in self._slots:
            room = self._entry.stack_slots(count)
            places = (self._entry.address(room, n * POINTER_BYTES) for n in range(count))
            self._slots[count] = list(places)
        return self._slots[count]

    def _constant(self, value: int) -> SSAValue:
        if value not in self._constants:
            self._constants[value] = self._entry.constant(value)
        return self._constants[value]

    def _declare(self, symbol: str, make: Callable[[], llvm.FuncOp]) -> None:
        """Puts a function into the module once: equal calls, as of equal layers, are many."""
        if symbol not in self._declared:
            self._declared.add(symbol)
            self._module.body.block.add_op(make())


def thunk_function(thunk: str, symbol: str, buffers: int, part: Iterations) -> llvm.FuncOp:
    """`void thunk(slots, begin, end)`: the kernel on the buffers whose addresses `slots` holds.

    The range counts iterations from the first of `part` on, or workers, each of which takes an
    equal share. A range of workers needs the scratch memory of its first one only.
    """
    block = Block(arg_types=[POINTER, i64, i64])
    builder = PointerBuilder(InsertPoint.at_end(block))
    slots, begin, end = block.args
    pointers = [builder.load_pointer(slots, place) for place in range(buffers)]
    workers = part.workers
    if workers is not None:
        *tensors, scratch = pointers
        offset = builder.emit(arith.MuliOp(begin, builder.constant(workers.scratch_bytes)))
        own = builder.address_at(scratch, offset)
        shares = [_share(builder, number, part.count, workers.count) for number in (begin, end)]
        builder.call(symbol, *tensors, own, *shares)
    elif part.begin:
        first = builder.constant(part.begin)
        bounds = [builder.emit(arith.AddiOp(number, first)) for number in (begin, end)]
        builder.call(symbol, *pointers, *bounds)
    else:
        builder.call(symbol, *pointers, begin, end)
    builder.insert(llvm.ReturnOp())
    return parallel_body(thunk, block)


def _share(builder: PointerBuilder, worker: SSAValue, grid: int, workers: int) -> SSAValue:
    """The first iteration of a worker."""
    product = builder.emit(arith.MuliOp(worker, builder.constant(grid)))
    return builder.emit(arith.DivUIOp(product, builder.constant(workers)))
