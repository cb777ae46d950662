"""Kernels over windows of images whose channels are neighbours: vectors run over channels."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from braid.analysis.nests.windows import WindowNest
from braid.dialects.braid.windows import Windows
from braid.lowering.common.long_sums import additions_of
from braid.lowering.cpu.kernels.pointwise.epilogue import (
    Accumulators,
    Epilogue,
    TileStore,
    tile_masks,
)
from braid.lowering.cpu.kernels.windows.combination import (
    Carry,
    Combination,
    is_short,
    shared_pixels,
)
from braid.lowering.cpu.kernels.windows.grouped import GroupedSums
from braid.lowering.emit.buffer import Buffer
from braid.lowering.emit.emitter import Emitter, Index, Value
from braid.support.sizes.expression import Extent
from braid.support.sizes.operators import product_of

_LEAST_PLACES = 16
"""Iterations of a grid without channels: fewer would not occupy the threads of usual machines."""

_Place = tuple[Index, ...]
"""Line and first column of a tile."""

_Tile = Callable[[_Place, int], None]
"""Writes the tile of a number of columns at a place."""

_Masks = Sequence[Value | None]
"""The channels that exist of each vector, None where these are all."""

Line = Callable[[Index, Index, Sequence[Value]], Sequence[Value]]
"""New values from where a line begins, the number of its first element in the window, and old
values."""


def over_lines(
    e: Emitter,
    windows: Windows,
    strides: Sequence[Extent],
    base: Index,
    values: Sequence[Value],
    line: Line,
    carry: Carry,
    inputs: int = 1,
) -> Sequence[Value]:
    """Carry `values` through all lines of a window that begins at `base`.

    `strides` are the elements to the next one along all spatial dims of the input but the last;
    `inputs` are combined at every element of the window.
    """
    *outer, width = windows.size

    def dim(number: int, start: Index, place: Index, values: Sequence[Value]) -> Sequence[Value]:
        if number == len(outer):
            return line(start, e.mul(place, width), values)
        step = strides[number] * windows.dilations[number]

        def body(y: Index, values: Sequence[Value]) -> Sequence[Value]:
            inner = e.add(e.mul(place, outer[number]), y)
            return dim(number + 1, e.add(start, e.mul(y, step)), inner, values)

        added = additions_of((*windows.size[number + 1 :], inputs))
        return carry(e, 0, outer[number], 1, values, body, added)

    return dim(0, base, 0, values)


@dataclass(frozen=True)
class WindowChannels:
    """Tiles of `columns` neighbouring outputs and `vectors` vectors of channels.

    One grid iteration is a row of outputs, for a block of channels or for all of them. `is_near`
    says that the input stays in the second-level cache.
    """

    nest: WindowNest
    combination: Combination
    is_near: bool
    columns: int
    vectors: int

    @property
    def grid_extents(self) -> tuple[Extent, ...]:
        """Images, blocks of channels where these are outside, then lines.

        Images of one dim have no lines, but tiles, where all channels are inside.
        """
        if self._blocks_outside:
            _, _, *lines, _ = self.nest.shape
            return (self.nest.images, -(-self.nest.op.channels // self._block), *lines)
        return (self.nest.images, *self._places)

    @property
    def _places(self) -> Sequence[Extent]:
        """Return lines of an image, or tiles of what has no lines."""
        _, _, *lines, width = self.nest.shape
        return lines or [-(-width // self.columns)]

    @property
    def grid(self) -> Extent:
        """Iterations of the grid."""
        return product_of(self.grid_extents)

    @property
    def _block(self) -> int:
        """Channels of a tile."""
        return self.vectors * self.nest.lanes

    @property
    def _blocks_outside(self) -> bool:
        """Blocks of channels that lie apart in memory come one after the other.

        So do those of a small image with weights: its rows and the weights then stay in the L1
        cache. The same holds for few rows, which would leave threads without work: open extents
        count as few. Otherwise all channels of a tile are inside, so that each line of a window is
        read from its first byte to its last.
        """
        is_weighted = self.nest.op.weight is not None
        places = product_of(self._places)
        if not isinstance(places, int):
            return False
        is_small = is_weighted and self.is_near
        images = self.nest.images if isinstance(self.nest.images, int) else 1
        are_few = images * places < _LEAST_PLACES
        return self._blocks_lie_apart or is_small or are_few

    @property
    def _blocks_lie_apart(self) -> bool:
        """Return whether the next vector of channels is further away than the next line.

        The distance of vectors is open only if it is that of whole images with open extents.
        """
        _, line, *_, vector = self.nest.input_strides
        if isinstance(vector, int) and isinstance(line, int):
            return vector > line
        return not isinstance(vector, int)

    @property
    def _are_tiles_in_grid(self) -> bool:
        return len(self.nest.points.shape) == 3 and not self._blocks_outside

    def iteration(self, e: Emitter, buffers: Sequence[Buffer], index: Index) -> None:
        """Compute the tiles of an output row, or one of them, for one block of channels or
        for all.
        """
        image, *rest = e.coordinates(index, self.grid_extents)

        def tile(place: _Place, count: int, first: Index, masks: _Masks) -> None:
            _TileWriter(self, e, buffers, (image, *place), first, masks, count).write()

        def of_all_channels(place: _Place, count: int) -> None:
            self._over_channels(e, lambda first, masks: tile(place, count, first, masks))

        if self._are_tiles_in_grid:
            self._one_tile(e, rest[0], of_all_channels)
        elif self._blocks_outside:
            block, *lines = rest
            first = e.mul(block, self.vectors)
            masks = tile_masks(e, self.nest.op.channels, block, self.vectors)
            self._line(e, lines, lambda place, count: tile(place, count, first, masks))
        else:
            self._line(e, rest, of_all_channels)

    def _line(self, e: Emitter, line: Sequence[Index], tile: _Tile) -> None:
        """Emit the tiles of a line, and a narrower one for the outputs that are left.

        For a row of any length, one for each of these.
        """
        width = self.nest.shape[-1]
        left = width % self.columns
        whole = width - left
        if whole != 0:
            e.loop(0, whole, self.columns, lambda column: tile((*line, column), self.columns))
        if isinstance(left, int):
            if left:
                tile((*line, whole), left)
        else:
            e.loop(whole, width, 1, lambda column: tile((*line, column), 1))

    def _one_tile(self, e: Emitter, number: Index, tile: _Tile) -> None:
        """Compute the tile of this number."""
        width, column = self.nest.shape[-1], e.mul(number, self.columns)
        left = width % self.columns
        whole = width - left
        if left == 0:
            tile((column,), self.columns)
            return

        def rest() -> None:
            if isinstance(left, int):
                tile((whole,), left)
            else:
                e.loop(whole, width, 1, lambda column: tile((column,), 1))

        e.branch(column, whole, lambda: tile((column,), self.columns), rest)

    def _over_channels(self, e: Emitter, tile: Callable[[Index, _Masks], None]) -> None:
        """Emit blocks of all channels by their first vectors, then those that fill no block."""
        channels, lanes = self.nest.op.channels, self.nest.lanes
        whole, left = divmod(channels, self._block)
        if whole:
            unmasked = [None] * self.vectors
            e.loop(0, whole * self.vectors, self.vectors, lambda first: tile(first, unmasked))
        if left:
            counts = [min(lanes, left - begin) for begin in range(0, left, lanes)]
            tile(whole * self.vectors, [e.tail_mask(count) for count in counts])


@dataclass(frozen=True)
class _TileWriter:
    """`count` outputs from `position` (image, …, line, column) on.

    Vectors of channels are those from `first_vector` on, one for each mask.
    """

    kernel: WindowChannels
    e: Emitter
    buffers: Sequence[Buffer]
    position: tuple[Index, ...]
    first_vector: Index
    masks: _Masks
    count: int

    def write(self) -> None:
        """Run over the window, apply the epilogue and store."""
        e, nest = self.e, self.kernel.nest
        image, *spatial = self.position
        starts = [e.mul(i, s) for i, s in zip(spatial, nest.windows.strides, strict=True)]
        start = (image, *starts, self.first_vector)
        tile = self._accumulate(e.dot(start, nest.input_strides))
        tensors = nest.output_strides
        epilogue = Epilogue(
            nest.op.anchor,
            nest.points,
            tuple(tensor[-2] for tensor in tensors),
            tuple(tensor[-1] for tensor in tensors),
        )
        bases = [e.dot(self.position, tensor[:-1]) for tensor in tensors]
        TileStore(epilogue, e, self.buffers, bases, self.first_vector, self.masks).store(tile)

    def _accumulate(self, base: Index) -> Accumulators:
        """Emit loops over the window's lines, and over its columns where they are many."""
        e, nest, vectors = self.e, self.kernel.nest, len(self.masks)
        *lines, width = nest.joined.size
        carry, input = self.kernel.combination.carry, self.buffers[nest.op.input.index]
        type = e.vector_type(input.element_type)
        pixels = shared_pixels(nest, self.count)
        count = self.count if pixels is None else len(pixels)
        values: Sequence[Value] = [e.constant(nest.op.neutral, type)] * (count * vectors)
        columns, inputs = self._columns, nest.groups.inputs
        if not nest.groups.is_alone:
            tile = e, self.buffers, self.first_vector, self.masks, self.count
            columns = GroupedSums.of(nest, self.kernel.combination.combine, *tile).columns

        def line(start: Index, tap: Index, values: Sequence[Value]) -> Sequence[Value]:
            if pixels is not None:
                return self._pixels(start, pixels, values)
            if is_short(nest):
                return columns(start, tap, range(width), values)
            return carry(e, 0, width, 1, values, lambda x, v: columns(start, tap, [x], v), inputs)

        strides = nest.input_strides[1 : 1 + len(lines)]
        values = over_lines(e, nest.joined, strides, base, values, line, carry, inputs)
        found = [list(values[i * vectors : (i + 1) * vectors]) for i in range(count)]
        return found if pixels is None else self._outputs(dict(zip(pixels, found, strict=True)))

    def _pixels(
        self, start: Index, pixels: Sequence[int], values: Sequence[Value]
    ) -> Sequence[Value]:
        """Combine the inputs at some pixels of a line with the results for the lines above."""
        combine, result = self.kernel.combination.combine, list(values)
        for number, (pixel, vector) in enumerate(product(pixels, range(len(self.masks)))):
            loaded = self._load(start, pixel, vector)
            result[number] = combine(self.e, result[number], loaded, None)
        return result

    def _outputs(self, columns: Mapping[int, Sequence[Value]]) -> Accumulators:
        """Combine the columns of each output's window; outputs share some of them."""
        combine, windows = self.kernel.combination.combine, self.kernel.nest.windows
        step, dilation, width = windows.strides[-1], windows.dilations[-1], windows.size[-1]
        outputs: list[list[Value]] = []
        for output in range(self.count):
            first, *others = (columns[output * step + x * dilation] for x in range(width))
            tile = list(first)
            for other in others:
                pairs = zip(tile, other, strict=True)
                tile = [combine(self.e, value, x, None) for value, x in pairs]
            outputs.append(tile)
        return outputs

    def _columns(
        self, start: Index, tap: Index, columns: Sequence[Index], values: Sequence[Value]
    ) -> Sequence[Value]:
        """Combine the inputs under some columns of a window's line, each loaded once."""
        e, nest, vectors = self.e, self.kernel.nest, len(self.masks)
        stride, dilation = nest.windows.strides[-1], nest.windows.dilations[-1]
        combine, result = self.kernel.combination.combine, list(values)
        loaded: dict[tuple[Index, int], Value] = {}
        for x in columns:
            weights = [self._weight(e.add(tap, x), v) for v in range(vectors)]
            for output in range(self.count):
                pixel = e.add(e.mul(x, dilation), output * stride)
                for v in range(vectors):
                    if (pixel, v) not in loaded:
                        loaded[pixel, v] = self._load(start, pixel, v)
                    place = output * vectors + v
                    result[place] = combine(e, result[place], loaded[pixel, v], weights[v])
        return result

    def _load(self, start: Index, pixel: Index, vector: int) -> Value:
        """Return a vector of channels of the input at a pixel of the line that begins at
        `start`.
        """
        e, nest = self.e, self.kernel.nest
        pixel_stride, vector_step = nest.input_strides[-2:]
        offset = e.add(e.add(start, e.mul(pixel, pixel_stride)), vector * vector_step)
        return self.buffers[nest.op.input.index].load(e, offset, self.masks[vector])

    def _weight(self, tap: Index, vector: int) -> Value | None:
        e, weight = self.e, self.kernel.nest.op.weight
        if weight is None:
            return None
        channel = e.mul(self.first_vector, e.lanes)
        line = e.mul(tap, self.kernel.nest.op.channels)
        offset = e.add(e.add(line, channel), vector * e.lanes)
        return self.buffers[weight.index].load(e, offset, self.masks[vector])
