"""Plans for kernels on streams hold however fast each stream is.

As in the tests of `plan-memory`, every byte holds the value last written to it. Kernels take time
here: the results of one that has begun hold nothing until it ends, and what it reads must stay.
"""

from collections.abc import Iterator
from random import Random
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects import func
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.ir import Block, Region

from braid.analysis.execution.inter_op_streams import InterOpOrder, set_inter_op_stream
from braid.dialects.braid.attribute_names import (
    IN_PLACE,
    INTER_OP_STREAMS,
    SCRATCH_BUFFER,
    SCRATCH_BYTES,
)
from braid.dialects.braid.buffer import BufferAttr, in_place_attribute
from braid.passes.infrastructure.decision_checks import WrongClaimError
from braid.passes.storage import plan_memory
from braid.passes.storage.memory_report import memory_report
from braid.passes.verification.memory_claims import arena_sizes
from braid.passes.verification.tagged_run import TaggedRun
from test.unit.passes.storage.test_plan_memory import (
    BYTES,
    TENSOR,
    Execution,
    Generator,
    planned,
    programs,
)

NOTHING = "nothing"

TYPE = "tensor<4xf32>"
PAIR = f"({TYPE}, {TYPE}) -> {TYPE}"
TWO_STREAMS = f"""
func.func @main(%x: {TYPE}) -> {TYPE} attributes {{braid.inter_op_streams = 2 : i64}} {{
  %a = func.call @k(%x, %x) {{braid.inter_op_stream = 0 : i64}} : {PAIR}
  %b = func.call @k(%a, %x) {{braid.inter_op_stream = 0 : i64}} : {PAIR}
  %c = func.call @k(%x, %x) {{braid.inter_op_stream = 1 : i64}} : {PAIR}
  %d = func.call @k(%c, %x) {{braid.inter_op_stream = 1 : i64}} : {PAIR}
  %e = func.call @k(%b, %d) : {PAIR}
  func.return %e : tensor<4xf32>
}}
func.func private @k{PAIR}
"""
"""In program order %a is dead before %c; it may be read later than that."""


class StreamGenerator(Generator):
    """Longer bodies, whose kernels may need scratch memory, on random streams."""

    def program(self) -> ModuleOp:
        block = Block(arg_types=[TENSOR, TENSOR])
        values = list(block.args)
        for _ in range(4):
            values = self.fill(block, values, depth=1)
        picked = [self.pick(values[-4:]) for _ in range(2)]
        block.add_op(func.ReturnOp(*picked))
        main = func.FuncOp("main", ([TENSOR] * 2, [TENSOR] * 2), Region(block))
        kernel = func.FuncOp.external("k", [TENSOR] * 2, [TENSOR])
        kernel.sym_visibility = StringAttr("private")
        pairs = self._draw(st.sampled_from([[], [(0, 0)], [(1, 0), (0, 0)]]))
        kernel.attributes[IN_PLACE] = in_place_attribute(pairs)
        kernel.attributes[SCRATCH_BYTES] = IntegerAttr(self._draw(st.sampled_from([0, BYTES])), i64)
        streams = self._draw(st.integers(2, 4))
        main.attributes[INTER_OP_STREAMS] = IntegerAttr(streams, i64)
        for op in block.ops:
            if isinstance(op, func.CallOp):
                stream = self._draw(st.integers(-1, 3 * streams))
                set_inter_op_stream(op, None if stream < 0 else stream % streams)
        return ModuleOp([main, kernel])


class StreamExecution(Execution):
    """Runs streams at random speeds, each call as two events; what has no stream as one."""

    def __init__(self, main: func.FuncOp, seed: int) -> None:
        self.order = InterOpOrder(main)
        self.main = main
        self.done = [0] * self.order.streams
        self.random = Random(seed)
        super().__init__(main)

    def run(self, block: Block) -> None:
        if block is not self.main.body.block:
            super().run(block)
            return
        section: list[func.CallOp] = []
        for op in block.ops:
            step = self.order.steps.get(op)
            if step is not None and step.stream is not None:
                assert isinstance(op, func.CallOp)
                section.append(op)
            else:
                if step is not None:
                    self.run_side_by_side(section)
                    section = []
                self.step(op)

    def run_side_by_side(self, calls: list[func.CallOp]) -> None:
        streams = {
            stream: self.events([c for c in calls if self.order.steps[c].stream == stream])
            for stream in range(self.order.streams)
        }
        waiting: set[int] = set()
        while streams:
            running = sorted(streams.keys() - waiting)
            assert running, "all streams wait for each other"
            stream = self.random.choice(running)
            state = next(streams[stream], None)
            if state is None:
                del streams[stream]
            if state == "waits":
                waiting.add(stream)
            else:
                waiting.clear()

    def events(self, calls: list[func.CallOp]) -> Iterator[str]:
        for call in calls:
            step = self.order.steps[call]
            assert step.stream is not None
            while not all(self.done[stream] >= count for stream, count in step.waits):
                yield "waits"
            yield from self.call(call)
            self.done[step.stream] = step.number
            yield "ran"

    def call(self, call: func.CallOp) -> Iterator[str]:
        self.bind(call)
        value, result = self.read(call), self.buffers[call.results[0]]
        scratch = call.attributes.get(SCRATCH_BUFFER)
        if isinstance(scratch, BufferAttr):
            self.memory.write(scratch, call)
        self.memory.write(result, NOTHING)
        yield "runs"
        for operand in call.operands:
            if self.buffers[operand] != result:
                assert self.memory.read(self.buffers[operand]) == self.expected[operand]
        if isinstance(scratch, BufferAttr):
            assert self.memory.read(scratch) is call
        assert self.memory.read(result) == NOTHING
        self.expected[call.results[0]] = value
        self.memory.write(result, value)


@settings(max_examples=100, deadline=None)
@given(programs(StreamGenerator), st.integers(0, 10**6))
def test_no_speed_of_streams_makes_a_kernel_read_what_is_not_meant_for_it(
    program: str, seed: int
) -> None:
    main = planned(program)
    for run in range(3):
        StreamExecution(main, seed + run)


def check_plan(main: func.FuncOp) -> None:
    """Check the plan as `--verify-decisions` does, which does not use `InterOpOrder`."""
    TaggedRun(main, arena_sizes(main)).run()


@settings(max_examples=30, deadline=None)
@given(programs(StreamGenerator))
def test_plans_for_streams_are_verified(program: str) -> None:
    check_plan(planned(program))


@settings(max_examples=30, deadline=None)
@given(programs(StreamGenerator), st.integers(0, 10**6))
def test_plans_that_some_speed_breaks_are_refused(program: str, seed: int) -> None:
    with patch.object(plan_memory, "write_moments", lambda *_: None):
        main = planned(program)
    try:
        for run in range(3):
            StreamExecution(main, seed + run)
    except AssertionError:
        with pytest.raises(WrongClaimError):
            check_plan(main)


def test_plans_that_take_streams_for_one_are_refused() -> None:
    with patch.object(plan_memory, "write_moments", lambda *_: None):
        main = planned(TWO_STREAMS)
    with pytest.raises(WrongClaimError, match="another stream, which may still run"):
        check_plan(main)


@settings(max_examples=25, deadline=None)
@given(programs(StreamGenerator))
def test_the_report_has_what_is_live_together(program: str) -> None:
    report = memory_report(planned(program))
    assert sum(tensor.bytes for tensor in report.live) <= report.lower_bound <= report.arena_bytes
    places = [(tensor.offset, tensor.offset + tensor.bytes) for tensor in report.live]
    assert all(a[1] <= b[0] for a, b in zip(sorted(places), sorted(places)[1:], strict=False))
