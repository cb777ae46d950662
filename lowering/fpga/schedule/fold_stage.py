"""A stage that computes a part of an output in each iteration, of one that computes all at once."""

from typing import cast

import numpy as np
from xdsl.ir import Block, Operation, SSAValue

from braid.dialects.braid_hls.body import (
    AccumulateOp,
    CombineOp,
    ComputeOp,
    Integers,
    JoinOp,
    SelectOp,
    TableOp,
    YieldOp,
    bits_of,
    lanes_of,
)
from braid.dialects.braid_hls.design import stream_of
from braid.dialects.braid_hls.stage import Pair, StageOp, ready_cycle
from braid.lowering.fpga.convert.values import BodyBuilder


def terms_of(stage: StageOp) -> int:
    """Of the sum, or maximum, of each channel in one iteration."""
    return next((_terms(op) for op in stage.body.block.ops if isinstance(op, CombineOp)), 1)


def _terms(op: CombineOp) -> int:
    return lanes_of(op.input) // lanes_of(op.output)


def folded(stage: StageOp, folds: Pair) -> StageOp:
    """The stage in `folds` = (groups of channels, parts of a sum), which divide; not inserted.

    `stage` has no folds: it computes all channels and terms of an output in one iteration.
    """
    assert stage.loops.folds == (1, 1), "a stage is folded once"
    loops = stage.loops.folded(folds)
    body = _Folder(stage, folds).body()
    kind = stream_of(stage.output)
    return StageOp(stage.label.data, stage.inputs, kind, loops, stage.pad_value.value.data, body)


class _Folder:
    def __init__(self, stage: StageOp, folds: Pair) -> None:
        self.old = stage.body.block
        self.groups, self.parts = folds
        self.terms = terms_of(stage)
        self.block = Block(arg_types=[argument.type for argument in self.old.args])
        self.builder = BodyBuilder(*folds, over_image=stage.loops.over_image)
        self.made: dict[SSAValue, SSAValue] = dict(zip(self.old.args, self.block.args, strict=True))
        self.wide = terms_before_sums(self.old)

    def body(self) -> Block:
        """The ops in their order."""
        for op in self.old.ops:
            self._add(op)
        last = cast(YieldOp, self.old.last_op)
        value = self._operand(last.value, 0)
        self.block.add_ops(self.builder.ops)
        self.block.add_op(YieldOp(value))
        return self.block

    def _rows(self, numbers: Integers, *, wide: bool) -> Integers:
        return rows_of(numbers, (self.groups, self.parts), self.terms if wide else None)

    def _operand(self, value: SSAValue, needed: int, *, wide: bool = False) -> SSAValue:
        """A value in the folded body; numbers that are known are there in cycle `needed`."""
        if isinstance(value.owner, TableOp) and value.owner.by.data == "image":
            rows = [self._rows(row, wide=wide) for row in value.owner.rows]
            return self.builder.image_table(np.stack(rows).reshape(-1, rows[0].shape[2]), needed)
        if isinstance(value.owner, TableOp):
            return self.builder.table(self._rows(value.owner.rows[0], wide=wide), needed)
        if isinstance(value.owner, Block | JoinOp):
            every = np.arange(lanes_of(value))
            return self.builder.select(self.made[value], self._rows(every, wide=wide))
        return self.made[value]

    def _add(self, op: Operation) -> None:
        wide = bool(op.results) and op.results[0] in self.wide
        match op:
            case SelectOp():
                rows = self._rows(op.rows[0], wide=wide)
                self.made[op.output] = self.builder.select(self.made[op.input], rows)
            case JoinOp():
                self.made[op.output] = self.builder.join([self.made[one] for one in op.inputs])
            case ComputeOp():
                self.made[op.output] = self._compute(op, wide=wide)
            case CombineOp() | AccumulateOp():
                wide = isinstance(op, CombineOp)
                value = self._operand(op.input, 0, wide=wide)
                count = lanes_of(op.output) // self.groups
                self.made[op.output] = self._combined(op, value, count)
            case _:
                pass

    def _combined(self, op: CombineOp | AccumulateOp, value: SSAValue, count: int) -> SSAValue:
        """Sums over the image have a combine, an accumulate, or both, which become one sum."""
        goes_on = any(isinstance(use.operation, AccumulateOp) for use in op.output.uses)
        if goes_on:
            return value
        return self.builder.combined(op.kind.data, value, count, bits_of(op.output))

    def _compute(self, op: ComputeOp, *, wide: bool) -> SSAValue:
        wires = {
            value: self._operand(value, 0, wide=wide)
            for value in op.inputs
            if not isinstance(value.owner, TableOp)
        }
        start = max(ready_cycle(wire) for wire in wires.values())
        inputs = [
            wires[value] if value in wires else self._operand(value, start, wide=wide)
            for value in op.inputs
        ]
        latency = op.latency.value.data
        return self.builder.add(ComputeOp(op.kind.data, inputs, bits_of(op.output), start, latency))


def rows_of(numbers: Integers, folds: Pair, terms: int | None) -> Integers:
    """[groups, parts, lanes] of numbers for all channels, or all of these and their `terms`."""
    groups, parts = folds
    if terms is None:
        return numbers.reshape(groups, 1, -1)
    by_part = numbers.reshape(groups, -1, parts, terms // parts).transpose(0, 2, 1, 3)
    return by_part.reshape(groups, parts, -1)


def terms_before_sums(body: Block) -> set[SSAValue]:
    """Values with a lane for each term of each channel."""
    found: set[SSAValue] = set()
    for op in reversed(list(body.ops)):
        if isinstance(op, CombineOp):
            found.add(op.input)
        elif op.results and op.results[0] in found:
            found.update(one for one in op.operands if not isinstance(one.owner, Block))
    return found
