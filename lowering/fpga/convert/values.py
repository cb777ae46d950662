"""Values of a stage while it is built: known numbers, or lanes with their limits."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from xdsl.ir import Operation, SSAValue

from braid.dialects.braid_hls.body import (
    FOLDS,
    AccumulateOp,
    CombineOp,
    ComputeOp,
    JoinOp,
    ScheduledOp,
    SelectOp,
    TableOp,
    bits_for,
    lanes_of,
)
from braid.dialects.braid_hls.stage import ready_cycle

Integers = npt.NDArray[np.int64]
Array = npt.NDArray[Any]

_WIDE = 27
"""Bits from which on a product needs several multipliers of DSP blocks, and registers."""
_WITHOUT_REGISTER = {"and", "or", "xor", "wrap", "wrap_unsigned"}


@dataclass(frozen=True)
class Known:
    """Numbers that are known: one, or one for each channel."""

    numbers: Integers

    @property
    def limits(self) -> tuple[int, int]:
        """The least and the largest."""
        return int(self.numbers.min()), int(self.numbers.max())


@dataclass(frozen=True)
class Lanes:
    """Lanes of a stage's body whose numbers are from `limits[0]` to `limits[1]`."""

    value: SSAValue
    limits: tuple[int, int]


Value = Known | Lanes


class BodyBuilder:
    """Adds scheduled ops for `groups` groups of channels and `parts` parts of a sum.

    Sums go on until the last part, or the last pixel where they are `over_image`.
    """

    def __init__(self, groups: int, parts: int, *, over_image: bool = False) -> None:
        self.groups = groups
        self.parts = parts
        self.over_image = over_image
        self.ops: list[Operation] = []
        self._made: dict[Hashable, SSAValue] = {}

    def add(self, op: ScheduledOp) -> SSAValue:
        """Insert an op and return its result; an equal op that is there already is used again."""
        key = (type(op), tuple(op.operands), op.output.type, frozenset(op.attributes.items()))
        if key in self._made:
            op.erase()
        else:
            self.ops.append(op)
            self._made[key] = op.output
        return self._made[key]

    def _folded(self, rows: Integers) -> tuple[Integers, str]:
        """Return [groups, parts, lanes] without the folds in which nothing changes."""
        by_group = bool((rows != rows[:1]).any())
        by_part = bool((rows != rows[:, :1]).any())
        chosen = rows if by_group else rows[:1]
        chosen = chosen if by_part else chosen[:, :1]
        return chosen.reshape(-1, rows.shape[2]), FOLDS[by_group + 2 * by_part]

    def table(self, rows: Integers, needed: int) -> SSAValue:
        """Return known numbers [groups, parts, lanes], available in cycle `needed`."""
        values, by = self._folded(rows)
        return self.add(TableOp(values, by, needed - (by != "none")))

    def image_table(self, values: Integers, needed: int) -> SSAValue:
        """Return known numbers [iterations of an image, lanes], available in cycle `needed`."""
        return self.add(TableOp(values, "image", needed - 1))

    def select(self, input: SSAValue, rows: Integers) -> SSAValue:
        """Return lanes [groups, parts, lanes] of a window; the window itself where these
        are all.
        """
        indices, by = self._folded(rows)
        everything = np.arange(lanes_of(input))[None, :]
        if np.array_equal(indices, everything):
            return input
        return self.add(SelectOp(input, indices, by, ready_cycle(input)))

    def join(self, windows: list[SSAValue]) -> SSAValue:
        """Return the lanes of windows one after the other."""
        return self.add(JoinOp(windows, max(ready_cycle(window) for window in windows)))

    def lanes(self, value: Value, count: int, needed: int) -> SSAValue:
        """Return a value as lanes; known numbers are there in cycle `needed`."""
        if isinstance(value, Lanes):
            return value.value
        numbers = np.broadcast_to(value.numbers, (self.groups * count,))
        return self.table(numbers.reshape(self.groups, 1, count), needed)

    def compute(self, kind: str, operands: list[Value], limits: tuple[int, int]) -> Lanes:
        """Apply `kind` to operands, at least one of which are lanes; exactly if the limits
        hold it.
        """
        wires = [operand.value for operand in operands if isinstance(operand, Lanes)]
        count, start = lanes_of(wires[0]), max(ready_cycle(wire) for wire in wires)
        inputs = [self.lanes(operand, count, start) for operand in operands]
        bits = bits_for(*limits)
        latency = int(kind not in _WITHOUT_REGISTER)
        if kind == "mul" and max(bits_for(*operand.limits) for operand in operands) > _WIDE:
            latency = 3
        return Lanes(self.add(ComputeOp(kind, inputs, bits, start, latency)), limits)

    def combine(self, kind: str, lanes: Lanes, count: int, limits: tuple[int, int]) -> Lanes:
        """Combine lanes into as many as a group has channels, and over all parts of a sum."""
        return Lanes(self.combined(kind, lanes.value, count, bits_for(*limits)), limits)

    def combined(self, kind: str, value: SSAValue, count: int, bits: int) -> SSAValue:
        """Return a combination of values, in `bits` bits."""
        if lanes_of(value) > count:
            value = self.add(CombineOp(kind, value, count, bits, ready_cycle(value)))
        if self.parts > 1 or self.over_image:
            value = self.add(AccumulateOp(kind, value, bits, ready_cycle(value)))
        return value

    def weights(self, rows: Integers, beside: SSAValue) -> Lanes:
        """Return weights [pixels, groups, parts, lanes] that are available when `beside` is."""
        limits, needed = (int(rows.min()), int(rows.max())), ready_cycle(beside)
        if len(rows) > 1:
            return Lanes(self.image_table(rows.reshape(-1, rows.shape[-1]), needed), limits)
        return Lanes(self.table(rows[0], needed), limits)
