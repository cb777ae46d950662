"""The pipeline of a stage's body: each op in its cycle, with registers where values wait."""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from braid.dialects.braid_hls.body import (
    AccumulateOp,
    CombineOp,
    ComputeOp,
    JoinOp,
    SelectOp,
    TableOp,
    bits_of,
    lanes_of,
)
from braid.dialects.braid_hls.stage import Loops, ready_cycle
from braid.lowering.fpga.rtl.hardware import HardwareModule, Wire


@dataclass(frozen=True)
class Folds:
    """In cycle 0 of an iteration: its part of the sum and its group of channels.

    `step` says that it begins, and computes something, and `begins` that sums do; `iteration` is
    its number in an image that is summed up.
    """

    part: Wire
    group: Wire
    fold: Wire
    last_part: Wire
    step: Wire
    iteration: Wire
    begins: Wire
    loops: Loops

    def index(self, by: str) -> Wire:
        """Return the counter of the folds of `by`."""
        counters = {"channel": self.group, "reduction": self.part, "image": self.iteration}
        return counters.get(by, self.fold)


class Pipeline:
    """Wires of the values of a body; an argument's are set by whoever makes its window."""

    def __init__(self, module: HardwareModule, folds: Folds) -> None:
        self.module = module
        self.folds = folds
        self.values: dict[SSAValue, list[Wire]] = {}

    def at(self, value: SSAValue, cycle: int) -> list[Wire]:
        """Return the lanes of a value in a cycle of the iteration, not before it is there."""
        late = cycle - ready_cycle(value)
        assert late >= 0, "the schedule was verified"
        return [self.module.later(wire, late) for wire in self.values[value]]

    def add(self, op: Operation) -> None:
        """Add the wires of the result of `op`."""
        match op:
            case TableOp():
                self.values[op.output] = self._table(op)
            case SelectOp():
                self.values[op.output] = self._select(op)
            case JoinOp():
                bits = bits_of(op.output)
                lanes = [lane for value in op.inputs for lane in self.at(value, op.begins)]
                self.values[op.output] = [self.module.resize(lane, bits) for lane in lanes]
            case ComputeOp():
                self.values[op.output] = self._compute(op)
            case CombineOp():
                self.values[op.output] = self._combine(op)
            case AccumulateOp():
                self.values[op.output] = self._accumulate(op)
            case _:
                pass

    def _table(self, op: TableOp) -> list[Wire]:
        module, rows, bits = self.module, op.rows, bits_of(op.output)
        if op.by.data == "none":
            return [module.constant(int(number), bits) for number in rows[0]]
        width = bits * rows.shape[1]
        words = [_word([int(number) for number in row], bits) for row in rows]
        index = module.later(self.folds.index(op.by.data), op.begins)
        word = module.table(index, words, width)
        word = module.later(word, op.latency.value.data)
        return [module.extract(word, lane * bits, bits) for lane in range(rows.shape[1])]

    def _select(self, op: SelectOp) -> list[Wire]:
        lanes, rows = self.at(op.input, op.begins), op.rows
        if op.by.data == "none":
            return [lanes[index] for index in rows[0]]
        index = self.module.later(self.folds.index(op.by.data), op.begins)
        chosen = [
            self.module.choose(index, [lanes[int(one)] for one in rows[:, lane]])
            for lane in range(rows.shape[1])
        ]
        return [self.module.later(wire, op.latency.value.data) for wire in chosen]

    def _compute(self, op: ComputeOp) -> list[Wire]:
        operands = [self.at(value, op.begins) for value in op.inputs]
        bits = bits_of(op.output)
        computed = [
            self._computed(op.kind.data, lanes, bits) for lanes in zip(*operands, strict=True)
        ]
        return [self.module.later(wire, op.latency.value.data) for wire in computed]

    def _computed(self, kind: str, operands: Sequence[Wire], bits: int) -> Wire:
        module = self.module
        match kind:
            case "wrap":
                return module.resize(operands[0], bits)
            case "wrap_unsigned":
                low = module.resize(operands[0], bits - 1)
                return module.concat([low, module.constant(0, 1)])
            case "maximum" | "minimum":
                return module.resize(self._extreme(kind, *operands), bits)
            case "shift_right":
                width = max(operand.bits for operand in operands)
                left, right = (module.resize(operand, width) for operand in operands)
                return module.resize(module.apply("shrs", left, right), bits)
            case "mul":
                left, right = operands
                return module.product(left, right, bits)
            case _:
                return module.apply(kind, *(module.resize(one, bits) for one in operands))

    def _extreme(self, kind: str, left: Wire, right: Wire) -> Wire:
        module, width = self.module, max(left.bits, right.bits)
        left, right = module.resize(left, width), module.resize(right, width)
        predicate = "sgt" if kind == "maximum" else "slt"
        return module.mux(module.compare(predicate, left, right), left, right)

    def _combine(self, op: CombineOp) -> list[Wire]:
        lanes, bits = self.at(op.input, op.begins), bits_of(op.output)
        size = len(lanes) // lanes_of(op.output)
        return [self._tree(op.kind.data, group, bits) for group in _batched(lanes, size)]

    def _tree(self, kind: str, lanes: list[Wire], bits: int) -> Wire:
        while len(lanes) > 1:
            pairs = [
                self._computed(kind, pair, bits) if len(pair) == 2 else pair[0]
                for pair in _batched(lanes, 2)
            ]
            lanes = [self.module.later(wire, 1) for wire in pairs]
        return self.module.resize(lanes[0], bits)

    def _accumulate(self, op: AccumulateOp) -> list[Wire]:
        module, bits = self.module, bits_of(op.output)
        first = module.later(self.folds.begins, op.begins)
        step = module.later(self.folds.step, op.begins, reset=0)
        groups = self.folds.loops.folds[0] if self.folds.loops.over_image else 1
        sums: list[Wire] = []
        for lane in self.at(op.input, op.begins):
            wire = Wire(module.name_for("sum"), bits)
            given = module.resize(lane, bits)
            before = wire
            if groups > 1:
                before = self._sum_of_group(groups, op.begins, wire)
            more = self._computed(op.kind.data, (before, given), bits)
            module.define_register(wire, module.mux(first, given, more), step)
            sums.append(wire)
        return sums

    def _sum_of_group(self, groups: int, cycle: int, newest: Wire) -> Wire:
        """Return the sum so far of the group of channels in this cycle.

        `newest` is the sum of the previous iteration, which is in the file a cycle later.
        """
        module, folds = self.module, self.folds
        group = module.later(folds.group, cycle)
        done = module.later(module.apply("and", folds.step, folds.last_part), cycle + 1, reset=0)
        written = module.later(folds.group, cycle + 1)
        stored = module.register_file(groups, group, written, newest, done)
        if folds.loops.folds[1] == 1:
            return stored
        return module.mux(module.later(module.equals(folds.part, 0), cycle), stored, newest)


def _word(numbers: Sequence[int], bits: int) -> int:
    """Return the numbers one after the other, the first in the lowest bits."""
    word = 0
    for lane, number in enumerate(numbers):
        word |= (number % (1 << bits)) << (lane * bits)
    return word


def _batched(wires: list[Wire], size: int) -> list[list[Wire]]:
    return [wires[start : start + size] for start in range(0, len(wires), size)]
