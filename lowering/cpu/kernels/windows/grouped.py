"""Sums over windows and the few input channels of a group: a vector has outputs of several groups.

The inputs of its groups are neighbours in memory. Each is repeated for the outputs of its group by
a shuffle, and then serves all outputs of a line whose windows have its pixel.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith

from braid.analysis.nests.windows import WindowNest
from braid.lowering.cpu.kernels.windows.combination import Combine
from braid.lowering.emit.buffer import Buffer
from braid.lowering.emit.emitter import Emitter, Index, Value
from braid.lowering.emit.register_transpose import shuffled


@dataclass(frozen=True)
class GroupedSums:
    """The sums of `count` neighbouring outputs, for vectors of channels from `first_vector` on.

    `masks` has one entry for each of these: None, or the channels that exist. The inputs of a
    vector are loaded by `pieces`, the masks of one or two loads for each.
    """

    nest: WindowNest
    combine: Combine
    e: Emitter
    buffers: Sequence[Buffer]
    first_vector: Index
    masks: Sequence[Value | None]
    count: int
    pieces: Sequence[Sequence[Value | None]]

    @staticmethod
    def of(
        nest: WindowNest,
        combine: Combine,
        e: Emitter,
        buffers: Sequence[Buffer],
        first_vector: Index,
        masks: Sequence[Value | None],
        count: int,
    ) -> "GroupedSums":
        """Make the masks, which all windows share."""
        vectors = [e.add(first_vector, number) for number in range(len(masks))]
        pieces = [
            _input_masks(nest, e, vector, mask is not None)
            for vector, mask in zip(vectors, masks, strict=True)
        ]
        return GroupedSums(nest, combine, e, buffers, first_vector, masks, count, pieces)

    def columns(
        self, start: Index, tap: Index, columns: Sequence[Index], sums: Sequence[Value]
    ) -> Sequence[Value]:
        """Add the products with what is under some columns of a window's line.

        Pixel by pixel, so that registers hold weights and sums, and a shuffled vector no longer
        than it takes.
        """
        e, vectors, result = self.e, range(len(self.masks)), list(sums)
        weights = {
            (x, channel, vector): self._weight(e.add(tap, x), channel, vector)
            for x in columns
            for channel in range(self.nest.groups.inputs)
            for vector in vectors
        }
        for pixel, uses in self._uses(columns).items():
            for vector in vectors:
                loaded = self._load(start, pixel, vector)
                for channel in range(self.nest.groups.inputs):
                    repeated = self._repeated(loaded, channel)
                    for x, output in uses:
                        place, weight = output * len(vectors) + vector, weights[x, channel, vector]
                        result[place] = self.combine(e, result[place], repeated, weight)
        return result

    def _uses(self, columns: Sequence[Index]) -> dict[Index, list[tuple[Index, int]]]:
        """Return for each pixel of a line the columns of windows that cover it, and their
        outputs.
        """
        e, windows = self.e, self.nest.windows
        uses: dict[Index, list[tuple[Index, int]]] = {}
        for x in columns:
            for output in range(self.count):
                pixel = e.add(e.mul(x, windows.dilations[-1]), output * windows.strides[-1])
                uses.setdefault(pixel, []).append((x, output))
        return uses

    def _load(self, start: Index, pixel: Index, vector: int) -> list[Value]:
        """Return the inputs of a vector's groups at a pixel of the line that begins at `start`."""
        e, x = self.e, self.buffers[self.nest.op.input.index]
        pixel_stride, vector_step = self.nest.input_strides[-2:]
        offset = e.add(e.add(start, e.mul(pixel, pixel_stride)), vector * vector_step)
        return [
            x.load(e, e.add(offset, piece * e.lanes), mask)
            for piece, mask in enumerate(self.pieces[vector])
        ]

    def _repeated(self, inputs: Sequence[Value], channel: int) -> Value:
        """Return input channel `channel` of each group, for all outputs of the group."""
        groups = self.nest.groups
        lanes = [lane // groups.outputs * groups.inputs + channel for lane in range(self.e.lanes)]
        return shuffled(self.e, inputs[0], inputs[-1], lanes)

    def _weight(self, tap: Index, channel: int, vector: int) -> Value:
        """Load the weights of an element of the window and an input channel, which are
        contiguous.
        """
        e, nest = self.e, self.nest
        assert nest.op.weight is not None
        taps = math.prod(nest.windows.size)
        block = e.add(e.mul(self.first_vector, taps), vector * taps)
        step = e.add(e.mul(e.add(block, tap), nest.groups.inputs), channel)
        return self.buffers[nest.op.weight.index].load(e, e.mul(step, e.lanes), self.masks[vector])


def _input_masks(
    nest: WindowNest, e: Emitter, vector: Index, is_partial: bool
) -> list[Value | None]:
    """Return for each load of what a vector's groups read None or the mask of existing channels."""
    count = nest.groups.inputs_of(e.lanes)
    left = e.sub(nest.stored[0].shape[1], e.mul(vector, count))
    masks: list[Value | None] = []
    for begin in range(0, count, e.lanes):
        mask = e.tail_mask(count - begin)
        if is_partial:
            existing = e.mask(e.sub(left, begin))
            mask = existing if mask is None else e.insert(arith.AndIOp(mask, existing))
        masks.append(mask)
    return masks
