"""Calling kernels: directly, or in parallel through the runtime."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, llvm
from xdsl.dialects.builtin import ModuleOp, i64
from xdsl.ir import Block, SSAValue
from xdsl.rewriter import InsertPoint

from braid.lowering.host.environment import (
    PARALLEL_FOR_OFFSET,
    Environment,
)
from braid.lowering.host.kernel_grids import KernelGrid, Workers
from braid.lowering.host.open_sizes import OpenSizes
from braid.lowering.host.pointers import (
    POINTER,
    POINTER_BYTES,
    PointerBuilder,
    external_function,
    kernel_arguments,
    parallel_body,
)
from braid.support.sizes.expression import Extent


@dataclass(frozen=True)
class Iterations:
    """The iterations [begin, end) of a kernel's grid; with `workers`, all of the grid.

    `sizes` are those whose values the kernel takes as arguments.
    """

    begin: int
    end: Extent
    workers: Workers | None = None
    sizes: tuple[Extent, ...] = ()

    @property
    def count(self) -> Extent:
        """Return how many there are."""
        return self.end - self.begin

    @property
    def numbers(self) -> tuple[Extent, ...]:
        """Return the values that calls pass in addition to buffers: sizes, and the open ones of
        `shared`."""
        return (*self.sizes, *(extent for extent in self.shared if not isinstance(extent, int)))

    @property
    def shared(self) -> tuple[Extent, ...]:
        """Return the shared parts of workers, if there are any: iterations, and bytes of scratch
        memory."""
        return () if self.workers is None else (self.count, self.workers.scratch_bytes)


class KernelCalls:
    """Declares each kernel once, with a thunk for parallel calls where it has a grid."""

    def __init__(
        self,
        module: ModuleOp,
        environment: Environment,
        entry: PointerBuilder,
        sizes: OpenSizes,
    ) -> None:
        self._module = module
        self._environment = environment
        self._entry = entry
        self._sizes = sizes
        self._declared: set[str] = set()
        # Values that calls share are computed once at the entry.
        self._slots: dict[int, list[SSAValue]] = {}
        self._parallel_for: SSAValue | None = None

    def call(
        self,
        builder: PointerBuilder,
        symbol: str,
        buffers: Sequence[SSAValue],
        grid: KernelGrid,
    ) -> None:
        """Run all iterations of the kernel's grid on `buffers`."""
        self._declare_kernel(symbol, len(buffers), len(grid.sizes))
        for begin, end in _parts(grid):
            self._run(builder, symbol, buffers, Iterations(begin, end, grid.workers, grid.sizes))

    def _run(
        self, builder: PointerBuilder, symbol: str, buffers: Sequence[SSAValue], part: Iterations
    ) -> None:
        """Run a part of the grid, whose iterations do not depend on each other."""
        if part.count == 1:
            numbers = (part.begin, part.end, *part.sizes)
            builder.call(symbol, *buffers, *map(self._sizes.value, numbers))
            return
        thunk = f"{symbol}_iterations" + (f"_{part.begin}" if part.begin else "")
        self._declare(thunk, lambda: thunk_function(thunk, symbol, len(buffers), part))
        values = [*buffers, *map(self._sizes.value, part.numbers)]
        slots = self._slots_for(len(values))
        for value, slot in zip(values, slots, strict=True):
            builder.store(value, slot)
        if self._parallel_for is None:
            self._parallel_for = self._environment.service(self._entry, PARALLEL_FOR_OFFSET)
        body = builder.function_address(thunk)
        count = self._sizes.value(part.workers.count if part.workers else part.count)
        arguments = [self._environment.env, body, slots[0], count]
        builder.call_pointer(self._parallel_for, arguments)

    def call_whole(
        self,
        builder: PointerBuilder,
        symbol: str,
        buffers: Sequence[SSAValue],
        grid: KernelGrid,
    ) -> None:
        """Run all iterations of the kernel's grid on this thread, as its first worker."""
        self._declare_kernel(symbol, len(buffers))
        for begin, end in _parts(grid):
            assert isinstance(end, int), "streams run code of known sizes"
            builder.call(symbol, *buffers, builder.constant(begin), builder.constant(end))

    def _declare_kernel(self, symbol: str, buffers: int, sizes: int = 0) -> None:
        self._declare(symbol, lambda: external_function(symbol, kernel_arguments(buffers, sizes)))

    def _slots_for(self, count: int) -> list[SSAValue]:
        """Return stack slots, shared by all calls with that many values, since one call runs at a
        time."""
        if count not in self._slots:
            first = self._entry.stack_slots(count)
            places = (self._entry.address(first, n * POINTER_BYTES) for n in range(count))
            self._slots[count] = list(places)
        return self._slots[count]

    def _declare(self, symbol: str, make: Callable[[], llvm.FuncOp]) -> None:
        """Put a function into the module once: equal calls, as of equal layers, are many."""
        if symbol not in self._declared:
            self._declared.add(symbol)
            self._module.body.block.add_op(make())


def _parts(grid: KernelGrid) -> list[tuple[int, Extent]]:
    """Return the ranges of iterations between which all earlier ones have to be finished."""
    return list(zip((0, *grid.barriers), (*grid.barriers, grid.iterations), strict=True))


def thunk_function(thunk: str, symbol: str, buffers: int, part: Iterations) -> llvm.FuncOp:
    """Return `void thunk(slots, begin, end)`, which runs the kernel on the buffers in `slots`.

    The range counts iterations from the first of `part` on, or workers, each of which takes an
    equal share. A range of workers needs the scratch memory of its first one only.
    """
    block = Block(arg_types=[POINTER, i64, i64])
    builder = PointerBuilder(InsertPoint.at_end(block))
    slots, begin, end = block.args
    pointers = [builder.load_pointer(slots, place) for place in range(buffers)]
    numbers = [
        builder.load(builder.address(slots, (buffers + place) * POINTER_BYTES), i64)
        for place in range(len(part.numbers))
    ]
    sizes = numbers[: len(part.sizes)]
    workers = part.workers
    if workers is not None:
        *tensors, scratch = pointers
        handed_on = iter(numbers[len(sizes) :])
        count, bytes_each = (
            builder.constant(extent) if isinstance(extent, int) else next(handed_on)
            for extent in part.shared
        )
        own = builder.address_at(scratch, builder.emit(arith.MuliOp(begin, bytes_each)))
        shares = [_share(builder, number, count, workers.count) for number in (begin, end)]
        builder.call(symbol, *tensors, own, *shares, *sizes)
    elif part.begin:
        first = builder.constant(part.begin)
        bounds = [builder.emit(arith.AddiOp(number, first)) for number in (begin, end)]
        builder.call(symbol, *pointers, *bounds, *sizes)
    else:
        builder.call(symbol, *pointers, begin, end, *sizes)
    builder.insert(llvm.ReturnOp())
    return parallel_body(thunk, block)


def _share(builder: PointerBuilder, worker: SSAValue, grid: SSAValue, workers: int) -> SSAValue:
    """Return the first iteration of a worker."""
    product = builder.emit(arith.MuliOp(worker, grid))
    return builder.emit(arith.DivUIOp(product, builder.constant(workers)))
