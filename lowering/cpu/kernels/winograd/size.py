"""Estimate how long Winograd's algorithms take for a convolution, without emitting code."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from braid.analysis.nests.winograd import WinogradNest
from braid.dialects.braid.winograd import TRANSFORMS
from braid.lowering.cpu.kernels.contraction.microkernel import feasible_tiles, tile_cycles
from braid.lowering.cpu.kernels.groups.traffic import moving_seconds
from braid.lowering.cpu.unit.vector_unit import VectorUnit


@dataclass(frozen=True)
class WinogradSize:
    """`tiles` of `results` × `results` in `outputs` channels, of `planes` × `channels` inputs."""

    tiles: int
    planes: int
    channels: int
    outputs: int
    results: int

    @staticmethod
    def of(nest: WinogradNest) -> "WinogradSize":
        """Return the size of a nest."""
        assert isinstance(nest.tiles, int), "schedules are chosen for known sizes"
        channels, outputs = nest.conv.depth, nest.conv.columns
        return WinogradSize(nest.tiles, nest.planes, channels, outputs, nest.results)

    def parts(self, tiles: int, vectors: int, lanes: int) -> int:
        """Return the parts of the output channels: enough to distribute iterations over threads."""
        blocks = -(-self.outputs // (vectors * lanes))
        wanted = -(-_ITERATIONS // -(-self.tiles // tiles))
        return next(parts for parts in range(min(wanted, blocks), 0, -1) if blocks % parts == 0)

    def seconds(self, tiles: int, rows: int, vectors: int, unit: VectorUnit) -> float:
        """Time on one core with blocks of this many tiles, and register tiles of rows × vectors.

        Multiply-adds of the products, while which the weights are prefetched, what the transforms
        load, compute and store, and reading the weights again for every other block of tiles.
        """
        lanes, places = unit.lanes, TRANSFORMS[self.results].tile ** 2
        blocks = -(-self.tiles // tiles)
        columns = -(-self.outputs // (vectors * lanes))
        per_block = -(-min(tiles, self.tiles) // rows)
        depth = self.planes * self.channels
        product = tile_cycles(rows, vectors, unit) * depth + _PRODUCT_CYCLES * rows * vectors
        products = blocks * columns * places * per_block * (product + _TILE_CYCLES)
        inputs = self.tiles * -(-self.channels // lanes) * places * _INPUT_CYCLES * self.planes
        outputs = self.tiles * columns * vectors * places * _OUTPUT_CYCLES
        weights = 4 * places * depth * columns * vectors * lanes
        read = _AGAIN * (blocks - 1) * weights / unit.cached_bytes
        block_bytes = 4 * places * tiles * (depth + vectors * lanes)
        # The other half of the cache is for weights that pass through it.
        if block_bytes > unit.cache_bytes // 2:
            read += blocks * columns * block_bytes / unit.cached_bytes
        multiplied = max(products / unit.fma_rate, moving_seconds(weights, unit))
        return multiplied + (inputs + outputs) / unit.fma_rate + read

    def blocks(self, vectors: int, unit: VectorUnit) -> Iterator[tuple[int, int]]:
        """Return the pairs (tiles, rows) of blocks of tiles and register tiles."""
        for rows, own in feasible_tiles(unit):
            if own != vectors:
                continue
            sizes = {min(count * rows, self.tiles) for count in _BLOCKS}
            yield from ((tiles, rows) for tiles in sorted(sizes))


@lru_cache(maxsize=4096)
def best_seconds(size: WinogradSize, vectors: int, unit: VectorUnit) -> float:
    """Time with the best block. Kept, since every layout is asked about, by several passes."""
    blocks = size.blocks(vectors, unit)
    return min(size.seconds(tiles, rows, vectors, unit) for tiles, rows in blocks)


_BLOCKS = (1, 2, 3, 4, 6, 8)
"""Register tiles of a block of tiles, from which schedules choose."""

_INPUT_CYCLES, _OUTPUT_CYCLES = 6.0, 5.0
"""Cycles per vector and place of a tile: loads, a dozen operations for six, spills, stores."""

_PRODUCT_CYCLES = 1.0
"""Cycles of storing a vector of products."""

_TILE_CYCLES = 15.0
"""Cycles around a register tile."""

_AGAIN = 0.5
"""The part of reading weights again that prefetches do not hide: 0.45 and 0.55 on Emerald Rapids,
for 128 channels of 28 x 28 and 256 of 14 x 14."""

_ITERATIONS = 4
"""The least number of iterations, if output channels can be divided."""
