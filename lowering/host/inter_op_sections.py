"""Kernels on streams: the ops between two ops that run alone form a separate function.

`section(slots, begin, end)` runs the calls of the streams [begin, end) in the order of the program.
The runtime's `run_inter_op` hands each thread a range of streams. With fewer threads than streams a
thread runs the calls of several, still in the order of the program. So the first call that is not
done never waits for another one, and no number of threads can lead to a deadlock.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, llvm, scf
from xdsl.dialects.builtin import ModuleOp, i64
from xdsl.ir import Block, Region, SSAValue
from xdsl.rewriter import InsertPoint

from braid.analysis.execution.inter_op_streams import InterOpOrder, InterOpStep
from braid.lowering.host.environment import (
    POST_OFFSET,
    RUN_INTER_OP_OFFSET,
    WAIT_OFFSET,
    Environment,
)
from braid.lowering.host.kernel_calls import KernelCalls
from braid.lowering.host.kernel_grids import KernelGrid
from braid.lowering.host.pointers import (
    POINTER,
    POINTER_BYTES,
    PointerBuilder,
    parallel_body,
)

COUNTER_BYTES = 64
"""A cache line for the counter of each stream, so that streams do not slow down each other."""


@dataclass(frozen=True)
class InterOpCall:
    """A kernel on `buffers`, addresses in the function around the section, run by one stream."""

    step: InterOpStep
    symbol: str
    buffers: tuple[SSAValue, ...]
    grid: KernelGrid


class InterOpSections:
    """Collects calls on streams and emits them as sections of one program."""

    def __init__(
        self,
        module: ModuleOp,
        symbol: str,
        order: InterOpOrder,
        environment: Environment,
        kernels: KernelCalls,
        entry: PointerBuilder,
    ) -> None:
        """Take the program's `symbol`, and a builder `entry` that stands before everything else."""
        self._module = module
        self._symbol = symbol
        self._streams = order.streams
        self._awaited = order.awaited()
        self._environment = environment
        self._kernels = kernels
        self._entry = entry
        self._counters: SSAValue | None = None
        self._count = 0

    def emit(self, calls: Sequence[InterOpCall], builder: PointerBuilder) -> None:
        """Run `calls` on their streams; all are done when the section ends."""
        self._count += 1
        symbol = f"{self._symbol}_inter_op_{self._count}"
        environment = self._environment
        values = dict.fromkeys([environment.env, self._counters_of_streams()])
        values |= dict.fromkeys(buffer for call in calls for buffer in call.buffers)
        slots = self._entry.stack_slots(len(values))
        builder.store_pointers(values, slots)
        places = {value: place for place, value in enumerate(values)}
        self._module.body.block.add_op(self._section(symbol, calls, places))
        run_inter_op = environment.service(builder, RUN_INTER_OP_OFFSET)
        body, streams = builder.function_address(symbol), builder.constant(self._streams)
        builder.call_pointer(run_inter_op, [environment.env, body, slots, streams])

    def _counters_of_streams(self) -> SSAValue:
        """Return the counters of all streams, which only grow while the program runs."""
        if self._counters is None:
            size = self._entry.constant(self._streams * COUNTER_BYTES // POINTER_BYTES)
            room = llvm.AllocaOp(size, i64, alignment=COUNTER_BYTES)
            self._counters = self._entry.emit(room)
            zero = self._entry.constant(0)
            for place in range(0, self._streams * COUNTER_BYTES, POINTER_BYTES):
                self._entry.store(zero, self._entry.address(self._counters, place))
        return self._counters

    def _section(
        self, symbol: str, calls: Sequence[InterOpCall], places: dict[SSAValue, int]
    ) -> llvm.FuncOp:
        block = Block(arg_types=[POINTER, i64, i64])
        builder = PointerBuilder(InsertPoint.at_end(block))
        slots, begin, end = block.args
        env, counters = (builder.load_pointer(slots, place) for place in range(2))
        services = Environment(env, slots, slots, slots, slots)
        post = services.service(builder, POST_OFFSET)
        wait = services.service(builder, WAIT_OFFSET)
        own = [_is_within(builder, stream, begin, end) for stream in range(self._streams)]
        for call in calls:
            assert call.step.stream is not None
            inner = Block()
            body = PointerBuilder(InsertPoint.at_end(inner))
            for stream, number in call.step.waits:
                counter = body.address(counters, stream * COUNTER_BYTES)
                body.call_pointer(wait, [counter, body.constant(number)])
            buffers = [body.load_pointer(slots, places[buffer]) for buffer in call.buffers]
            self._kernels.call_whole(body, call.symbol, buffers, call.grid)
            if (call.step.stream, call.step.number) in self._awaited:
                counter = body.address(counters, call.step.stream * COUNTER_BYTES)
                body.call_pointer(post, [counter, body.constant(call.step.number)])
            body.insert(scf.YieldOp())
            builder.insert(scf.IfOp(own[call.step.stream], [], Region(inner)))
        builder.insert(llvm.ReturnOp())
        return parallel_body(symbol, block)


def _is_within(builder: PointerBuilder, stream: int, begin: SSAValue, end: SSAValue) -> SSAValue:
    """Emit whether a stream is in [begin, end)."""
    number = builder.constant(stream)
    first = builder.emit(arith.CmpiOp(begin, number, "sle"))
    return builder.emit(arith.AndIOp(first, builder.emit(arith.CmpiOp(number, end, "slt"))))
