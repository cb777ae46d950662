"""Ways to fold a stage, and the least resources of each, counted without building it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.ir import Block, SSAValue

from braid.dialects.braid_hls.body import (
    AccumulateOp,
    CombineOp,
    ComputeOp,
    Integers,
    JoinOp,
    SelectOp,
    TableOp,
    bits_for,
    bits_of,
    lanes_of,
)
from braid.dialects.braid_hls.design import stream_of
from braid.dialects.braid_hls.permute import PermuteOp
from braid.dialects.braid_hls.stage import Pair, StageOp
from braid.lowering.fpga.design.memory_reads import banks_of
from braid.lowering.fpga.rtl.hardware import factor_bits, odd_factor
from braid.lowering.fpga.rtl.resources import Resources, slices_of_product
from braid.lowering.fpga.schedule.fold_stage import (
    factor_rows,
    factors_of,
    rows_of,
    terms_before_sums,
    terms_of,
)
from braid.solvers.hls.bursts import port_bits
from braid.solvers.hls.selection import Choice, Uses

_FEW = 4
"""Columns that are permuted one by one: faster than whole rows."""


def uses_of(resources: Resources) -> Uses:
    """Return the DSP slices, halves of block RAMs, look-up tables, flip-flops, and memory bits per
    cycle.
    """
    halves = round(2 * resources.bram36)
    return resources.dsp, halves, resources.lut, resources.ff, resources.memory


def resources_used(uses: Uses) -> Resources:
    """Return the inverse of `uses_of`."""
    dsp, halves, lut, ff, memory = uses
    return Resources(dsp, halves / 2, lut, ff, memory)


@dataclass(frozen=True)
class Memory:
    """The memory beside a part: the most bits of a port, and the cycles until it answers a
    request.
    """

    port: int
    latency: int


@dataclass(frozen=True)
class Fold:
    """The (groups of channels, parts of a sum), and the cycles and least resources of a stage so
    folded.

    `reads`: its known factors come from memory.
    """

    folds: Pair
    choice: Choice
    reads: bool = False


def folds_of(stage: StageOp | PermuteOp, memory: Memory | None = None) -> list[Fold]:
    """Return all folds that divide the channels and terms of a stage without folds; see
    `with_reads`.

    A permute's (banks, passes), before anything is counted.
    """
    if isinstance(stage, PermuteOp):
        return [
            Fold(one, Choice(max(stage.words, stage.beats * one[1]), (0,) * 5))
            for one in banks_of(stage)
        ]
    channels, terms = stream_of(stage.output).lanes.data, terms_of(stage)
    counter = _Counter(stage)
    found = [
        Fold(folds, Choice(stage.loops.folded(folds).iterations, counter.uses(folds)))
        for groups in _divisors(channels)
        for parts in _divisors(terms)
        for folds in [(groups, parts)]
    ]
    return found if memory is None else with_reads(stage, found, memory)


def with_reads(stage: StageOp | PermuteOp, folds: Sequence[Fold], memory: Memory) -> list[Fold]:
    """Return each choice also with factors that are read from a memory.

    This holds if an iteration needs other words than the one before, and no more than a port
    delivers.
    """
    found: list[Fold] = []
    for one in folds:
        found.append(one)
        port = _port(stage, one.folds, memory) if isinstance(stage, StageOp) else None
        if port is not None:
            uses = (*one.choice.uses[:-1], port)
            found.append(Fold(one.folds, Choice(one.choice.cycles, uses), reads=True))
    return found


def _port(stage: StageOp, folds: Pair, memory: Memory) -> int | None:
    """Return the bits of the port that brings the factors of each iteration; None where there is
    none.
    """
    if factors_of(stage) is None:
        return None
    rows = factor_rows(stage, folds)
    port = port_bits(rows.shape[1] * bits_for(int(rows.min()), int(rows.max())))
    return port if bool((rows != rows[0]).any()) and port <= memory.port else None


def _divisors(number: int) -> list[int]:
    return [one for one in range(1, number + 1) if number % one == 0]


class _Counter:
    """Counts products, and choices between lanes of a window, of a stage in folds."""

    def __init__(self, stage: StageOp) -> None:
        self.body = stage.body.block
        self.terms = terms_of(stage)
        self.wide = terms_before_sums(self.body)
        self.rows: dict[SSAValue, Integers] = {
            op.output: op.rows[0] for op in self.body.ops if isinstance(op, TableOp | SelectOp)
        }
        self.by_pixel = {
            op.output for op in self.body.ops if isinstance(op, TableOp) and op.by.data == "image"
        }

    def uses(self, folds: Pair) -> Uses:
        """Return a lower bound of the resources: tables of known numbers, sums and control are not
        counted.
        """
        kinds: dict[SSAValue, Integers] = {}
        dsp = lut = ff = 0
        for op in self.body.ops:
            if isinstance(op, SelectOp):
                wide = op.output in self.wide
                kinds[op.output], tables, registers = self._chosen(op.output, folds, wide=wide)
                lut, ff = lut + tables, ff + registers
            elif isinstance(op, ComputeOp):
                wide = op.output in self.wide
                operands = [self._kinds(one, kinds, folds, wide=wide) for one in op.inputs]
                made = _numbered(np.stack(operands, axis=1))
                kinds[op.output] = made
                if op.kind.data == "mul":
                    slices, tables = self._products(op, operands, folds, wide=wide)
                    dsp, lut = dsp + slices, lut + tables
            elif isinstance(op, CombineOp):
                lanes = self._kinds(op.input, kinds, folds, wide=True)
                kinds[op.output] = _numbered(lanes.reshape(-1, self.terms // folds[1]))
            elif isinstance(op, AccumulateOp):
                kinds[op.output] = np.arange(lanes_of(op.output) // folds[0])
        return dsp, 0, lut, ff, 0

    def _products(
        self, op: ComputeOp, operands: Sequence[Integers], folds: Pair, *, wide: bool
    ) -> tuple[int, int]:
        """Return the DSP slices and tables of all products that differ by more than a shift."""
        count = operands[0].size
        left, right = (self._bits(one, count, folds, wide=wide) for one in op.inputs)
        factors = [self._odd(one, folds, wide=wide) for one in op.inputs]
        kinds = [own if odd is None else odd for own, odd in zip(operands, factors, strict=True)]
        made = _numbered(np.stack(kinds, axis=1))
        lanes = np.unique(made, return_index=True)[1]
        bits = np.stack([left[lanes], right[lanes]], axis=1)
        slices = tables = 0
        for pair, many in zip(*_counted(bits), strict=True):
            each = slices_of_product(*pair) if all(pair) else 0
            slices += each * many
            tables += pair[0] * pair[1] * many * (each == 0)
        return slices, tables

    def _bits(self, value: SSAValue, lanes: int, folds: Pair, *, wide: bool) -> Integers:
        """Return the bits of the factors in the lanes of a value; known ones are without their
        powers of two.
        """
        bits, known = bits_of(value), self._known(value, folds, wide=wide)
        if known is None:
            return np.full(lanes, bits)
        return _of_each(known, lambda one: factor_bits(one, bits))

    def _odd(self, value: SSAValue, folds: Pair, *, wide: bool) -> Integers | None:
        """Return the known factors without their powers of two; None where they are not known."""
        known = self._known(value, folds, wide=wide)
        if known is None:
            return None
        return _of_each(known, lambda one: odd_factor(one, bits_of(value)))

    def _known(self, value: SSAValue, folds: Pair, *, wide: bool) -> Integers | None:
        """Return the numbers in the lanes of a value, if they are the same in all folds."""
        if not isinstance(value.owner, TableOp) or value in self.by_pixel:
            return None
        rows = rows_of(self.rows[value], folds, self.terms if wide else None)
        return rows[0, 0] if (rows == rows[:1, :1]).all() else None

    def _kinds(
        self, value: SSAValue, kinds: dict[SSAValue, Integers], folds: Pair, *, wide: bool
    ) -> Integers:
        """Return a number for each lane; equal where it is the same wire."""
        if value in kinds:
            return kinds[value]
        if value in self.by_pixel:
            return np.arange(self.rows[value].size // (folds[0] * folds[1]))
        if value in self.rows:
            return self._same(self.rows[value], folds, wide=wide)[0]
        assert isinstance(value.owner, Block | JoinOp), "ops are visited in their order"
        return self._same(np.arange(lanes_of(value)), folds, wide=wide)[0]

    def _same(self, numbers: Integers, folds: Pair, *, wide: bool) -> tuple[Integers, Integers]:
        """Return the number of each lane, and the number of folds in which it may differ."""
        rows = rows_of(numbers, folds, self.terms if wide else None)
        varies = np.array([(rows != rows[:1]).any(), (rows != rows[:, :1]).any()])
        if not varies.any():
            once: Integers = np.ones_like(rows[0, 0])
            return _numbered(rows[0, 0][:, None]), once
        count = int(np.prod(np.where(varies, rows.shape[:2], 1)))
        flat = rows.reshape(-1, rows.shape[2])
        counts: Integers = np.where((flat != flat[0]).any(0), count, 1)
        lanes: Integers = np.arange(flat.shape[1])
        return lanes, counts

    def _chosen(self, value: SSAValue, folds: Pair, *, wide: bool) -> tuple[Integers, int, int]:
        """Return the numbers of lanes, and the tables and flip-flops that select them."""
        kinds, counts = self._same(self.rows[value], folds, wide=wide)
        bits = bits_of(value)
        choices = counts[counts > 1]
        tables = int((-(-(choices - 1) // 3)).sum()) * bits
        return kinds, tables, bits * choices.size


def _of_each(numbers: Integers, found: Callable[[int], int]) -> Integers:
    """Return `found` of each number, called once for equal ones."""
    values, inverse = np.unique(numbers, return_inverse=True)
    return np.array([found(int(one)) for one in values])[inverse]


def _counted(pairs: Integers) -> tuple[list[Pair], list[int]]:
    """Return the distinct pairs, and how many there are of each."""
    found, counts = np.unique(pairs, axis=0, return_counts=True)
    return [(int(left), int(right)) for left, right in found], counts.tolist()


def _numbered(rows: Integers) -> Integers:
    """Return a number for each row, from 0 on in their order; equal rows have the same."""
    if rows.shape[1] > _FEW:
        inverse: Integers = np.unique(rows, axis=0, return_inverse=True)[1]
        return inverse.ravel()
    numbers = np.zeros(len(rows), np.int64)
    for column in rows.T:
        ranks: Integers = np.unique(column, return_inverse=True)[1]
        numbers = np.unique(numbers * len(rows) + ranks, return_inverse=True)[1]
    return numbers
