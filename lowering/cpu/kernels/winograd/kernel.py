"""The code of a convolution by Winograd's algorithms, a block of tiles after the other.

For the tiles of a block: their inputs are transformed into scratch memory; for each block of output
channels, there is a matrix product per place of a tile, tiles × input channels × outputs, and then
the products are transformed back, go through the epilogue and are stored. The data in scratch
memory stays in a core's cache. Tiles that stick out of the image read its last elements again, and
store what lies inside.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

from braid.analysis.nests.dims import LoopDim
from braid.analysis.nests.winograd import WinogradNest
from braid.dialects.braid.buffer import aligned
from braid.dialects.braid.winograd import TRANSFORMS, Transforms
from braid.lowering.cpu.kernels.contraction.microkernel import Tile, TileOperands, accumulate
from braid.lowering.cpu.kernels.pointwise.epilogue import Epilogue, TileStore, tile_masks
from braid.lowering.cpu.kernels.winograd.transforms import transformed_input, transformed_output
from braid.lowering.cpu.unit.kernel_function import Prepared
from braid.lowering.emit.buffer import Buffer
from braid.lowering.emit.emitter import Emitter, Index, Value
from braid.support.sizes.expression import Extent

_LINE = 16
"""Padding elements between the positions of a tile, so that they map to different sets of the L1
cache."""


@dataclass(frozen=True)
class WinogradKernel:
    """Emits `nest`, `tiles` tiles per grid iteration and a part of the output channels.

    `product` is the register tile of the matmuls: its rows are tiles, its columns a block of output
    channels, divided equally among `parts` iterations.
    """

    nest: WinogradNest
    tiles: int
    product: Tile
    parts: int
    lanes: int

    @property
    def grid(self) -> Extent:
        """Iterations in all."""
        return -(-self.nest.tiles // self.tiles) * self.parts

    @property
    def scratch_bytes(self) -> int:
        """Bytes for the transformed inputs of a block, and its products with a block of
        channels.
        """
        places = self.transforms.tile**2
        return aligned(4 * places * (self.input_step + self.product_step))

    @property
    def transforms(self) -> Transforms:
        """The matrices."""
        return TRANSFORMS[self.nest.results]

    @cached_property
    def rows(self) -> int:
        """Tiles with those that fill the last register tile."""
        return -(-self.tiles // self.product.rows) * self.product.rows

    @property
    def plane_elements(self) -> int:
        """Channels of a plane of a transformed input, in whole vectors."""
        return -(-self.nest.conv.depth // self.lanes) * self.lanes

    @property
    def row_elements(self) -> int:
        """Elements of all planes of a transformed input."""
        return self.nest.planes * self.plane_elements

    @property
    def columns(self) -> int:
        """Output channels of a block."""
        return self.product.vectors * self.lanes

    @property
    def input_step(self) -> int:
        """Elements from one position of the transformed inputs to the next."""
        return self.rows * self.row_elements + _LINE

    @property
    def product_step(self) -> int:
        """Elements from one position of the products to the next."""
        return self.rows * self.columns + _LINE

    @property
    def prepared(self) -> Prepared:
        """The transformed inputs of a block of tiles, which its parts share."""
        return Prepared(
            self.parts, lambda e, buffers, block: self._block(e, buffers, block).transform_inputs()
        )

    def iteration(self, e: Emitter, buffers: Sequence[Buffer], index: Index) -> None:
        """Compute one block of tiles, for a part of the output channels."""
        blocks = -(-self.nest.conv.columns // self.columns)
        block, part = e.divmod(index, self.parts)
        self._block(e, buffers, block).write(
            e.mul(part, blocks // self.parts), blocks // self.parts
        )

    def _block(self, e: Emitter, buffers: Sequence[Buffer], block: Index) -> "_Block":
        first = e.mul(block, self.tiles)
        count: Index = self.tiles
        if not isinstance(self.nest.tiles, int) or self.nest.tiles % self.tiles:
            count = e.minimum(count, e.sub(self.nest.tiles, first))
        return _Block(self, e, buffers, first, count)


@dataclass(frozen=True)
class _Block:
    """The tiles from `first` on, `count` of them."""

    kernel: WinogradKernel
    e: Emitter
    buffers: Sequence[Buffer]
    first: Index
    count: Index

    def transform_inputs(self) -> None:
        """Transform all tiles, into scratch memory."""
        self.e.loop(0, self.count, 1, self._transform_input)

    def write(self, begin: Index, blocks: int) -> None:
        """Compute `blocks` blocks of output channels from number `begin` on."""
        e = self.e

        def columns(number: Index) -> None:
            block = e.add(begin, number)
            # For each place of the transformed tiles: [tiles, channels] · [channels, columns].
            e.loop(0, self._places, 1, lambda place: self._multiply(block, place))
            # For each tile: its products [places, columns] are transformed to results and stored.
            e.loop(0, self.count, 1, lambda tile: self._store(block, tile))

        e.loop(0, blocks, 1, columns)

    @property
    def _places(self) -> int:
        return self.kernel.transforms.tile**2

    @property
    def _scratch(self) -> Buffer:
        return self.buffers[-1]

    def _origin(self, tile: Index) -> tuple[list[Index], list[Index]]:
        """Return the image of a tile, and the number of tiles above it and to the left of it."""
        nest = self.kernel.nest
        extents = (*nest.images, *nest.grid)
        *image, row, column = self.e.coordinates(self.e.add(self.first, tile), extents)
        return image, [row, column]

    def _transform_input(self, tile: Index) -> None:
        """Compute Bᵀ d B of one tile d, for all channels of all planes."""
        e, kernel, nest = self.e, self.kernel, self.kernel.nest
        image, place = self._origin(tile)
        strides, source = nest.input_strides, self.buffers[nest.conv.left.index]
        rows, columns = (
            self._inputs(place[dim], dim, stride) for dim, stride in enumerate(strides[-2:])
        )
        origin = e.dot(image, strides[:-2])

        def vector(
            lines: Sequence[Index], target: Index, channel: Index, mask: Value | None
        ) -> None:
            starts = [e.add(line, channel) for line in lines]
            inputs = [
                [source.load(e, e.add(start, column), mask) for column in columns]
                for start in starts
            ]
            found = transformed_input(e, kernel.transforms.of_input, inputs)
            start = e.add(target, channel)
            for number, value in enumerate(value for row in found for value in row):
                self._scratch.store(e, value, e.add(start, number * kernel.input_step))

        whole = nest.conv.depth - nest.conv.depth % e.lanes

        def plane(number: Index) -> None:
            base = e.add(origin, e.mul(number, nest.plane_stride))
            lines = [e.opaque(e.add(base, row)) for row in rows]
            target = e.mul(tile, kernel.row_elements)
            target = e.add(target, e.mul(number, kernel.plane_elements))
            if whole:
                e.loop(0, whole, e.lanes, lambda channel: vector(lines, target, channel, None))
            if whole < nest.conv.depth:
                vector(lines, target, whole, e.tail_mask(nest.conv.depth - whole))

        e.loop(0, nest.planes, 1, plane)

    def _inputs(self, tile: Index, dim: int, stride: Extent) -> list[Index]:
        """Return the offsets of the inputs of a tile along a dim; the last offsets are clamped to
        the image.

        LLVM takes them as they are: it would add up the terms of 36 addresses in many ways.
        """
        e, nest = self.e, self.kernel.nest
        start, steps = e.mul(tile, nest.results), range(self.kernel.transforms.tile)
        last = nest.shape[dim] + 1
        if nest.shape[dim] % nest.results == 0:
            first = e.opaque(e.mul(start, stride))
            return [e.add(first, step * stride) for step in steps]
        found = [e.minimum(e.add(start, step), last) for step in steps]
        return [e.opaque(e.mul(at, stride)) for at in found]

    def _multiply(self, block: Index, place: Index) -> None:
        """Multiply one of the 6×6 places of all tiles by a block of output channels."""
        e, kernel, nest = self.e, self.kernel, self.kernel.nest
        columns, tile = kernel.columns, kernel.product
        # The weights are [column blocks, planes, places, channels, columns of a block].
        place_elements = nest.conv.depth * columns
        b_plane = self._places * place_elements
        b_base = e.mul(block, nest.planes * b_plane)
        b_base = e.add(b_base, e.mul(place, place_elements))
        reduction = [
            LoopDim(nest.planes, (kernel.plane_elements, b_plane)),
            LoopDim(nest.conv.depth, (1, columns)),
        ]
        # Scratch memory holds the transformed inputs [places, tiles, planes · channels], then the
        # products [places, tiles, columns].
        a_base = e.mul(place, kernel.input_step)
        c_base = e.add(self._places * kernel.input_step, e.mul(place, kernel.product_step))

        def rows(row: Index) -> None:
            operands = TileOperands(
                self._scratch,
                e.add(a_base, e.mul(row, kernel.row_elements)),
                kernel.row_elements,
                self.buffers[nest.conv.right.index],
                b_base,
                [None] * tile.vectors,
            )
            # A register tile: [tile.rows tiles, tile.vectors vectors of columns].
            sums = accumulate(e, operands, reduction[nest.planes == 1 :], tile)
            start = e.add(c_base, e.mul(row, columns))
            for step, vectors in enumerate(sums):
                for vector, value in enumerate(vectors):
                    offset = step * columns + vector * e.lanes
                    self._scratch.store(e, value, e.add(start, offset))

        e.loop(0, self.count, tile.rows, rows)

    def _store(self, block: Index, tile: Index) -> None:
        """Compute Aᵀ d A of one tile d, apply the epilogue, and store the part inside the image."""
        e, kernel, nest = self.e, self.kernel, self.kernel.nest
        image, place = self._origin(tile)
        vectors = kernel.product.vectors
        masks = tile_masks(e, nest.conv.columns, block, vectors)
        start = self._places * kernel.input_step
        base = e.add(start, e.mul(tile, kernel.columns))
        for vector in range(vectors):
            side = range(kernel.transforms.tile)
            products = [
                [self._product(base, row * len(side) + column, vector) for column in side]
                for row in side
            ]
            results = transformed_output(e, kernel.transforms.of_output, products)
            number = e.add(e.mul(block, vectors), vector)
            _Results(self, image, place, number, masks[vector]).store(results)

    def _product(self, base: Index, place: int, vector: int) -> Value:
        offset = place * self.kernel.product_step + vector * self.e.lanes
        return self._scratch.load(self.e, self.e.add(base, offset))


@dataclass(frozen=True)
class _Results:
    """A store of the results of the tile at `place` of `image`, for one vector of channels."""

    block: _Block
    image: Sequence[Index]
    place: Sequence[Index]
    vector: Index
    mask: Value | None

    def store(self, results: Sequence[Sequence[Value]]) -> None:
        """Store the results of a tile, without the rows and columns that lie outside of the
        output.
        """
        if not all(isinstance(extent, int) for extent in self.block.kernel.nest.shape):
            self._store_open(results)
            return
        self._split(
            0, lambda rows: self._split(1, lambda columns: self._part(results, rows, columns))
        )

    def _split(self, dim: int, part: Callable[[range], None]) -> None:
        nest, e = self.block.kernel.nest, self.block.e
        count, extent = nest.results, nest.shape[dim]
        sure = extent % count or count
        assert isinstance(sure, int), "open images have code of their own"
        part(range(sure))
        if sure < count:
            last = nest.grid[dim] - 1
            e.branch(self.place[dim], last, lambda: part(range(sure, count)), lambda: None)

    def _store_open(self, results: Sequence[Sequence[Value]]) -> None:
        """Emit the store of a whole tile, and next to it the store of results one by one."""
        nest, e = self.block.kernel.nest, self.block.e
        count = nest.results
        rows, columns = (
            e.minimum(count, e.sub(extent, e.mul(place, count)))
            for extent, place in zip(nest.shape, self.place, strict=True)
        )

        def column(row: int, place: int) -> None:
            own = (range(row, row + 1), range(place, place + 1))
            e.branch(place, columns, lambda: self._part(results, *own), lambda: None)

        def line(row: int) -> None:
            for place in range(count):
                column(row, place)

        def edge() -> None:
            for row in range(count):
                e.branch(row, rows, partial(line, row), lambda: None)

        whole = range(count)
        e.branch(e.add(rows, columns), 2 * count, edge, lambda: self._part(results, whole, whole))

    def _part(self, results: Sequence[Sequence[Value]], rows: range, columns: range) -> None:
        nest, e = self.block.kernel.nest, self.block.e
        epilogue = Epilogue(
            nest.conv.op.output,
            nest.conv.points,
            tuple(strides[-1] for strides in nest.output_strides),
            nest.vector_steps,
        )
        for row in rows:
            bases = [self._base(strides, row, columns.start) for strides in nest.output_strides]
            tile = [[results[row][column]] for column in columns]
            TileStore(epilogue, e, self.block.buffers[:-1], bases, self.vector, [self.mask]).store(
                tile
            )

    def _base(self, strides: Sequence[Extent], row: int, column: int) -> Index:
        e, count = self.block.e, self.block.kernel.nest.results
        at = (
            *self.image,
            e.add(e.mul(self.place[0], count), row),
            e.add(e.mul(self.place[1], count), column),
        )
        return e.dot(at, strides)
