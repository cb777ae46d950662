"""Counting and timing what a program does, through the counters of `braid_env`."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from xdsl.dialects import arith
from xdsl.dialects.builtin import i64
from xdsl.ir import Block, Operation, SSAValue

from braid.analysis.storage.strided_storage import stored_choice
from braid.dialects.braid.names import names_of
from braid.dialects.braid.profile_keys import region_counter
from braid.lowering.host.environment import (
    CLOCK_OFFSET,
    COUNTS_OFFSET,
    RECORD_OFFSET,
    Environment,
)
from braid.lowering.host.pointers import PointerBuilder

COUNTER_BYTES = 8
LAYOUT_MARK = "\t"
"""Between the names of an op and its layouts in the name of a counter."""


class ProfileCounters:
    """One counter per op, named by the op's stable names; emits nothing when not enabled.

    A timed op has a counter for each choice of layouts, after the names.
    `numbers`, by name, are shared by the variants of a model, and grow.
    """

    def __init__(self, environment: Environment, numbers: dict[str, int], *, enabled: bool) -> None:
        self._environment = environment
        self._enabled = enabled
        self._numbers = numbers
        self._clock: tuple[Block, SSAValue] | None = None

    def count(self, op: Operation, builder: PointerBuilder) -> None:
        """Add one to the counter of control flow, if it has a name."""
        self._clock = None
        if self._enabled and names_of(op):
            name = "+".join(names_of(op))
            self._add_one(self._counter(name), builder)

    def enter(self, op: Operation, key: str, builder: PointerBuilder) -> None:
        """Add one to the counter of a region of `op`, which its profile keys name."""
        name = region_counter(op, key)
        if self._enabled and name is not None:
            self._add_one(self._counter(name), builder)

    @contextmanager
    def around(self, op: Operation, builder: PointerBuilder) -> Generator[None]:
        """Count and time the ops that are emitted inside.

        Reading the clock takes as long as a small kernel: an op begins when the one before it
        in its block ended.
        """
        if not self._enabled or not names_of(op):
            self._clock = None
            yield
            return
        name = "+".join(names_of(op)) + LAYOUT_MARK + str(stored_choice(op))
        counter, block = self._counter(name), builder.insertion_point.block
        if self._clock is not None and self._clock[0] is block:
            begin = self._clock[1]
        else:
            begin = self._time(CLOCK_OFFSET, (), builder)
        yield
        end = self._time(RECORD_OFFSET, (builder.constant(counter), begin), builder)
        self._clock = (block, end)

    def _counter(self, name: str) -> int:
        return self._numbers.setdefault(name, len(self._numbers))

    def _time(
        self, offset: int, arguments: Sequence[SSAValue], builder: PointerBuilder
    ) -> SSAValue:
        """Emit a call of the service at `offset`, which returns the time."""
        service = self._environment.service(builder, offset)
        time = builder.call_pointer(service, [self._environment.env, *arguments], i64)
        assert time is not None
        return time

    def _add_one(self, counter: int, builder: PointerBuilder) -> None:
        base = self._environment.service(builder, COUNTS_OFFSET)
        slot = builder.address(base, counter * COUNTER_BYTES)
        total = builder.emit(arith.AddiOp(builder.load(slot, i64), builder.constant(1)))
        builder.store(total, slot)
