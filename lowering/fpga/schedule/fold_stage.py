"""Folding: makes a stage that computes a part of an output in each iteration from one that computes
all at once.
"""

from math import prod
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
    bits_for,
    bits_of,
    lanes_of,
    lanes_type,
)
from braid.dialects.braid_hls.design import stream_of
from braid.dialects.braid_hls.stage import Loops, Pair, StageOp, ready_cycle
from braid.dialects.braid_hls.weights import WeightsOp
from braid.lowering.fpga.convert.values import BodyBuilder
from braid.solvers.hls.bursts import burst_words, bursts_ahead, port_bits


def terms_of(stage: StageOp) -> int:
    """Return the terms of the sum, or maximum, of each channel in one iteration."""
    return next((_terms(op) for op in stage.body.block.ops if isinstance(op, CombineOp)), 1)


def _terms(op: CombineOp) -> int:
    return lanes_of(op.input) // lanes_of(op.output)


def folded(stage: StageOp, folds: Pair) -> StageOp:
    """Return the stage in `folds` = (groups of channels, parts of a sum), which divide; not
    inserted.

    `stage` has no folds: it computes all channels and terms of an output in one iteration.
    """
    assert stage.loops.folds == (1, 1), "a stage is folded once"
    loops = stage.loops.folded(folds)
    latency = stage.memory_latency
    weights = None
    if latency is not None:
        weights = _weights(factor_rows(stage, folds), loops, latency.value.data).output
    body = _Folder(stage, folds, weights).body()
    kind, pad = stream_of(stage.output), stage.pad_value.value.data
    return StageOp(stage.label.data, stage.inputs, kind, loops, pad, body, weights)


def _weights(rows: Integers, loops: Loops, latency: int) -> WeightsOp:
    """Return the op that reads the rows of weights, one for each iteration that computes."""
    steps = (loops.pixels if loops.over_image else prod(loops.outputs)) * prod(loops.folds)
    words, lanes = rows.shape
    port = port_bits(lanes * bits_for(int(rows.min()), int(rows.max())))
    burst = burst_words(words, port)
    return WeightsOp(
        rows,
        {
            "repeats": steps // words,
            "port": port,
            "burst": burst,
            "bursts": bursts_ahead(words, burst, latency),
            "latency": latency,
        },
    )


def factors_of(stage: StageOp) -> TableOp | None:
    """Return the known factors of what a stage without folds sums up; the most, if several are."""
    wide = terms_before_sums(stage.body.block)
    tables = [
        op
        for op in stage.body.block.ops
        if isinstance(op, TableOp) and (op.output in wide or op.by.data == "image")
    ]
    return max(tables, key=lambda op: op.rows.size, default=None)


def factor_rows(stage: StageOp, folds: Pair) -> Integers:
    """Return [iterations, lanes] of `factors_of` a stage: of an output, or of an image."""
    table = factors_of(stage)
    assert table is not None, "known factors were chosen to be read"
    is_wide = table.output in terms_before_sums(stage.body.block)
    terms = terms_of(stage) if is_wide else None
    rows = np.stack([rows_of(row, folds, terms) for row in table.rows])
    return rows.reshape(-1, rows.shape[-1])


class _Folder:
    def __init__(self, stage: StageOp, folds: Pair, weights: SSAValue | None) -> None:
        self.old = stage.body.block
        self.groups, self.parts = folds
        self.terms = terms_of(stage)
        self.block = Block(arg_types=[argument.type for argument in self.old.args])
        self.read: dict[SSAValue, SSAValue] = {}
        table = factors_of(stage)
        if weights is not None and table is not None:
            kind = stream_of(weights)
            lanes = lanes_type(kind.lanes.data, kind.element.width.data)
            self.read[table.output] = self.block.insert_arg(lanes, len(self.block.args))
        self.builder = BodyBuilder(*folds, over_image=stage.loops.over_image)
        # Weights that are read from memory are one more argument.
        self.made: dict[SSAValue, SSAValue] = dict(
            zip(self.old.args, self.block.args, strict=False)
        )
        self.wide = terms_before_sums(self.old)

    def body(self) -> Block:
        """Return the ops in their order."""
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
        """Return a value in the folded body; known numbers are available in cycle `needed`."""
        if value in self.read:
            return self.read[value]
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
        """Return a combined value. Sums over the image have a combine, an accumulate, or both;
        these become one sum.
        """
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
    """Return [groups, parts, lanes] of numbers for all channels, or all of these and their
    `terms`.
    """
    groups, parts = folds
    if terms is None:
        return numbers.reshape(groups, 1, -1)
    by_part = numbers.reshape(groups, -1, parts, terms // parts).transpose(0, 2, 1, 3)
    return by_part.reshape(groups, parts, -1)


def terms_before_sums(body: Block) -> set[SSAValue]:
    """Return the values with a lane for each term of each channel."""
    found: set[SSAValue] = set()
    for op in reversed(list(body.ops)):
        if isinstance(op, CombineOp):
            found.add(op.input)
        elif op.results and op.results[0] in found:
            found.update(one for one in op.operands if not isinstance(one.owner, Block))
    return found
