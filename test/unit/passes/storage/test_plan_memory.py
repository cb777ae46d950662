"""Runs planned programs on a model of memory and compares with the meaning of the IR.

Every byte holds the value last written to it. A kernel reads the whole buffers of its operands
and writes a new value, the tuple of what it read, over the whole buffer of its result; so a
buffer that is reused too early shows up as a wrong value.
"""

from collections.abc import Sequence
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st
from xdsl.builder import Builder, InsertPoint
from xdsl.context import Context
from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import ArrayAttr, IndexType, ModuleOp, StringAttr, TensorType, f32
from xdsl.ir import Block, Operation, Region, SSAValue

from braid.analysis.storage.memory_graph import viewed
from braid.analysis.storage.strided_storage import set_overlap
from braid.analysis.structure.handed_values import forwarded
from braid.dialects.braid.attribute_names import BUFFERS, IN_PLACE, STAGING_BUFFERS
from braid.dialects.braid.buffer import BufferAttr, in_place_attribute
from braid.dialects.braid.movement import ReshapeOp
from braid.frontends.mlir import parse_mlir
from braid.passes.storage.plan_memory import PlanMemoryPass
from braid.universe import make_context

TENSOR = TensorType(f32, [4])
BYTES = 16
Value = Any


class Generator:
    """Random structured programs over one tensor type."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw

    def program(self) -> ModuleOp:
        block = Block(arg_types=[TENSOR, TENSOR])
        values = self.fill(block, list(block.args), depth=0)
        picked = [self.pick(values) for _ in range(self._draw(st.integers(1, 3)))]
        block.add_op(func.ReturnOp(*picked))
        main = func.FuncOp("main", ([TENSOR] * 2, [TENSOR] * len(picked)), Region(block))
        kernel = func.FuncOp.external("k", [TENSOR] * 2, [TENSOR])
        kernel.sym_visibility = StringAttr("private")
        pairs = self._draw(st.sampled_from([[], [(0, 0)], [(1, 0), (0, 0)]]))
        kernel.attributes[IN_PLACE] = in_place_attribute(pairs)
        set_overlap(kernel, self._draw(st.sampled_from([None, 0, 1])))
        return ModuleOp([main, kernel])

    def pick(self, values: Sequence[SSAValue]) -> SSAValue:
        return values[self._draw(st.integers(0, len(values) - 1))]

    def fill(self, block: Block, values: list[SSAValue], depth: int) -> list[SSAValue]:
        values = list(values)
        builder = Builder(InsertPoint.at_end(block))
        for _ in range(self._draw(st.integers(0, 4))):
            kind = self._draw(st.sampled_from(["call", "call", "view", "if", "for"]))
            if kind == "view":
                square = builder.insert(ReshapeOp.get(self.pick(values), [2, 2]))
                values.append(builder.insert(ReshapeOp.get(square, [4])).output)
            elif kind == "call" or depth == 2:
                operands = [self.pick(values), self.pick(values)]
                values.extend(builder.insert(func.CallOp("k", operands, [TENSOR])).results)
            elif kind == "if":
                values.extend(self._if(builder, values, depth))
            else:
                values.extend(self._for(builder, values, depth))
        return values

    def _if(self, builder: Builder, values: list[SSAValue], depth: int) -> Sequence[SSAValue]:
        count = self._draw(st.integers(1, 2))
        taken = self._draw(st.integers(0, 1))
        condition = builder.insert(arith.ConstantOp.from_int_and_width(taken, 1))
        regions: list[Region] = []
        for _ in range(2):
            block = Block()
            inner = self.fill(block, values, depth + 1)
            block.add_op(scf.YieldOp(*[self.pick(inner) for _ in range(count)]))
            regions.append(Region(block))
        return builder.insert(scf.IfOp(condition, [TENSOR] * count, *regions)).results

    def _for(self, builder: Builder, values: list[SSAValue], depth: int) -> Sequence[SSAValue]:
        count = self._draw(st.integers(1, 3))
        bounds = [
            builder.insert(arith.ConstantOp.from_int_and_width(n, IndexType()))
            for n in (0, self._draw(st.integers(0, 3)), 1)
        ]
        block = Block(arg_types=[IndexType(), *[TENSOR] * count])
        inner = self.fill(block, [*values, *block.args[1:]], depth + 1)
        block.add_op(scf.YieldOp(*[self.pick(inner) for _ in range(count)]))
        initial = [self.pick(values) for _ in range(count)]
        return builder.insert(scf.ForOp(*bounds, initial, Region(block))).results


class Memory:
    """Bytes by address; a buffer of an input or output is a space of its own."""

    def __init__(self) -> None:
        self._bytes: dict[tuple[str, int], Value] = {}

    def read(self, buffer: BufferAttr) -> Value:
        held = {self._bytes.get(address) for address in _addresses(buffer)}
        assert len(held) == 1, "a buffer was partly overwritten"
        return held.pop()

    def write(self, buffer: BufferAttr, value: Value) -> None:
        self._bytes.update(dict.fromkeys(_addresses(buffer), value))


def _addresses(buffer: BufferAttr) -> list[tuple[str, int]]:
    space, offset = buffer.space.data, buffer.offset.data
    return [(space, offset + i) for i in range(BYTES)]


class Meanings(dict[SSAValue, Value]):
    """What was computed for each value; for a view it is what that shows."""

    def __getitem__(self, value: SSAValue) -> Value:
        return super().__getitem__(viewed(value))


class Execution:
    """Runs both meanings side by side: `expected` by SSA value, `memory` by buffer."""

    def __init__(self, main: func.FuncOp) -> None:
        self.memory = Memory()
        self.expected = Meanings()
        self.buffers: dict[SSAValue, BufferAttr] = {}
        for index, argument in enumerate(main.body.block.args):
            self.buffers[argument] = BufferAttr.input(index)
            self.expected[argument] = f"x{index}"
            self.memory.write(self.buffers[argument], f"x{index}")
        self.run(main.body.block)

    def run(self, block: Block) -> None:
        for op in block.ops:
            self.step(op)

    def step(self, op: Operation) -> None:
        self.bind(op)
        match op:
            case arith.ConstantOp():
                self.expected[op.result] = op.value.value.data  # type: ignore[attr-defined]
            case func.CallOp():
                value = self.read(op)
                self.expected[op.results[0]] = value
                self.memory.write(self.buffers[op.results[0]], value)
            case scf.IfOp():
                self._branch(op)
            case scf.ForOp():
                self._loop(op)
            case func.ReturnOp():
                for index, value in enumerate(op.operands):
                    held = self.memory.read(self.buffers[value])
                    assert held == self.expected[value]
                    target = BufferAttr.output(index)
                    if target != self.buffers[value]:
                        self.memory.write(target, held)
                for index, value in enumerate(op.operands):
                    output = self.memory.read(BufferAttr.output(index))
                    assert output == self.expected[value]
            case _:
                pass

    def read(self, call: func.CallOp) -> Value:
        """Return a call's result for its operands, which must be those computed for it."""
        read = tuple(self.memory.read(self.buffers[v]) for v in call.operands)
        assert read == tuple(self.expected[v] for v in call.operands)
        return hash((call, read))

    def bind(self, op: Operation) -> None:
        places = op.attributes.get(BUFFERS)
        if isinstance(places, ArrayAttr):
            self.buffers.update(zip(op.results, places.data, strict=True))  # type: ignore[arg-type]

    def _branch(self, op: scf.IfOp) -> None:
        region = op.true_region if self.expected[op.cond] else op.false_region
        self.run(region.block)
        self._hand_on(region.block.last_op, op.results)

    def _loop(self, op: scf.ForOp) -> None:
        block = op.body.block
        for value, argument, result in zip(op.iter_args, block.args[1:], op.results, strict=True):
            self.buffers[argument] = self.buffers[result]
            self._move({argument: self.expected[value]}, value, argument)
        for _ in range(self.expected[op.ub]):
            self.run(block)
            self._hand_on(block.last_op, block.args[1:])
        for argument, result in zip(block.args[1:], op.results, strict=True):
            self.expected[result] = self.expected[argument]

    def _hand_on(self, terminator: Operation | None, targets: Sequence[SSAValue]) -> None:
        assert terminator is not None
        values = forwarded(terminator)
        staging = terminator.attributes.get(STAGING_BUFFERS)
        sources = [self.buffers[v] for v in values]
        for index, place in enumerate(staging.data if isinstance(staging, ArrayAttr) else ()):
            if isinstance(place, BufferAttr):
                self.memory.write(place, self.memory.read(sources[index]))
                sources[index] = place
        wanted = [self.expected[v] for v in values]
        for source, target, value in zip(sources, targets, wanted, strict=True):
            if source != self.buffers[target]:
                self.memory.write(self.buffers[target], self.memory.read(source))
            self.expected[target] = value
        for target in targets:
            assert self.memory.read(self.buffers[target]) == self.expected[target]

    def _move(self, expected: dict[SSAValue, Value], source: SSAValue, target: SSAValue) -> None:
        if self.buffers[source] != self.buffers[target]:
            self.memory.write(self.buffers[target], self.memory.read(self.buffers[source]))
        self.expected.update(expected)


@st.composite
def programs(draw: st.DrawFn, generator: type[Generator] = Generator) -> str:
    """Programs as text, which a failing example can show."""
    return str(generator(draw).program())


def planned(program: str) -> func.FuncOp:
    """Return the function of a program after its memory has been planned."""
    module = parse_mlir(make_context(), program, "program.mlir").module
    PlanMemoryPass(time_limit=0.2).apply(Context(), module)
    main = next(iter(module.ops))
    assert isinstance(main, func.FuncOp)
    return main


LOOP_FROM_VIEW = """
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %a = func.call @k(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %v = braid.reshape %a : (tensor<4xf32>) -> tensor<2x2xf32>
  %i = braid.reshape %v : (tensor<2x2xf32>) -> tensor<4xf32>
  %l = scf.for %n = %zero to %one step %one iter_args(%c = %i) -> (tensor<4xf32>) {
    %b = func.call @k(%c, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    scf.yield %b : tensor<4xf32>
  }
  %y = func.call @k(%a, %l) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %l, %y : tensor<4xf32>, tensor<4xf32>
}
func.func private @k(tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
"""
"""A loop must not overwrite what it begins with: that is read again behind it."""


@settings(max_examples=150, deadline=None)
@given(programs())
@example(LOOP_FROM_VIEW)
def test_every_kernel_reads_what_was_computed_for_it(program: str) -> None:
    Execution(planned(program))
