"""List the tiles by which products on sm_90a are made, and predict how long that takes.

The form of the prediction is that of the kernel: a stage takes what its slowest part takes, copies
or products; a block its tiles one after the other; and all blocks at least what memory takes. The
constants are fitted to 67 times on an H200 with cold caches, of 1 to 8192 rows, 768 to 12288
columns, 768 to 11008 depths, and tiles of all kinds: they are met within 5 % (root mean square).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from braid.lowering.gpu.contraction.problem import ElementKind
from braid.lowering.gpu.contraction.schedules import Size, shared_memory
from braid.lowering.gpu.kernels.hopper.instructions import BLOCK_ROWS
from braid.lowering.gpu.kernels.hopper.tiles import LINE, HopperTiles
from braid.targets.machines.machine import Machine

_ROWS = ((64, 1), (128, 2), (256, 2))
"""Rows and groups of tiles."""
_COLUMNS = (*range(16, 193, 16), 224, 256)
"""The columns of tiles; other numbers store results by many small boxes, which cost as much as
fewer tiles gain."""
_OF_256_ROWS = (128,)
"""The columns of tiles of 256 rows: fewer were slower than predicted, and the sums of more do not
fit into registers."""
_SPLITS = range(1, 9)
_MOST_STAGES = 16
_LEAST_STAGES = 4
"""The least stages of a part of split-K."""
_RESERVED = 1024
"""Shared memory of a block that CUDA takes."""
_CANDIDATES = 24

_TENSOR_SHARE = 0.886
"""The share of the peak rate that products reach while their operands are in shared memory."""
_SHARED_RATE = 128
"""Bytes of shared memory that are read in a cycle."""
_COPIED_RATE = 140e9
"""Bytes a second that a multiprocessor copies to its shared memory."""
_SUSTAINED_RATE = 75e9
"""The same where all copy for long, as from the third tile of a block on."""
_LONG = 3
_NARROW = 1.3
"""The factor for copying each half of a line by itself, in place of the whole line."""
_STAGE_LATENCY = 0.88e-6
"""Seconds, divided by the stages that are under way."""
_TILE = 0.68e-6
_ELEMENT = 62e-12
"""Seconds for the results of a tile, and for each that a thread of 128 has."""
_MEMORY_SHARE = 0.88
"""The share of the rate of memory that copies reach."""
_OVERLAP = 12
"""The exponent of the norm that what memory takes and what blocks take add up by."""
_SECOND_ENTRY = 1.5e-6
_PARTS_RATE = 5e12
"""Bytes of parts of sums that are written and read a second."""


@dataclass(frozen=True)
class HopperCost:
    """Predicts times of a product of one size on a machine."""

    size: Size
    machine: Machine

    def tiles(self) -> list[HopperTiles]:
        """Return the fastest, in order."""
        found = [tiles for shape in self._shapes() for tiles in self._variants(shape)]
        return sorted(found, key=self.seconds)[:_CANDIDATES]

    def seconds(self, tiles: HopperTiles) -> float:
        """Return the seconds of the kernel with such tiles, without what a launch takes."""
        size = self.size
        stages = -(-size.depth * size.element // (LINE * tiles.splits))
        count = self._tiles(tiles)
        rounds = -(-count // self._processors)
        results = _TILE + _ELEMENT * min(tiles.rows, size.rows) * tiles.columns / tiles.groups
        body = rounds * (stages * self._stage(tiles, rounds) + results)
        bandwidth = _MEMORY_SHARE * self.machine.fact("memory_bandwidth", 3.35e12)
        time = (body**_OVERLAP + (size.bytes / bandwidth) ** _OVERLAP) ** (1 / _OVERLAP)
        if tiles.splits > 1:
            parts = 4 * size.batches * size.rows * size.columns * tiles.splits
            time += _SECOND_ENTRY + 2 * parts / _PARTS_RATE
        return time

    @property
    def rate(self) -> float:
        """Operations a second at best."""
        if self.size.kind is ElementKind.S8:
            return self.machine.fact("tensor_int8_ops", 1979e12)
        return self.machine.fact("tensor_bf16_flops", 989e12)

    @property
    def _processors(self) -> int:
        return int(self.machine.fact("multiprocessors", 132))

    def _tiles(self, tiles: HopperTiles) -> int:
        """Return the possible sizes of tiles."""
        size = self.size
        across = -(-size.rows // tiles.rows) * -(-size.columns // tiles.columns)
        return size.batches * across * tiles.splits

    def share(self, tiles: HopperTiles) -> float:
        """Return the share of the peak rate that is reached: few columns are limited by reads of
        shared memory.
        """
        by_rate, by_memory = tiles.columns / 2, (tiles.columns + BLOCK_ROWS) * 32 / _SHARED_RATE
        return _TENSOR_SHARE * by_rate / max(by_rate, by_memory)

    def _stage(self, tiles: HopperTiles, rounds: int) -> float:
        """Return the seconds from a stage to the next, of blocks that have this many tiles."""
        depth = LINE // self.size.element
        work = 2 * tiles.rows * tiles.columns * depth * self._processors
        narrow = _NARROW * tiles.b_columns * (LINE * LINE // tiles.b_line - LINE)
        return max(
            work / (self.rate * self.share(tiles)),
            (tiles.stage_bytes + narrow) / _COPIED_RATE,
            tiles.stage_bytes / _SUSTAINED_RATE if rounds >= _LONG else 0.0,
            _STAGE_LATENCY / max(tiles.stages - 1, 1),
        )

    def _shapes(self) -> Iterator[HopperTiles]:
        for rows, groups in _ROWS:
            if rows > BLOCK_ROWS and self.size.rows <= rows // 2:
                continue
            for columns in _COLUMNS if rows < 256 else _OF_256_ROWS:
                if columns < 2 * self.size.columns:
                    yield HopperTiles(rows, columns, groups, _MOST_STAGES)

    def _variants(self, shape: HopperTiles) -> Iterator[HopperTiles]:
        rows = -(-self.size.rows // 8) * 8
        if rows < shape.rows and replace(shape, filled=rows).may_be_filled:
            shape = replace(shape, filled=rows)
        count = self._tiles(shape)
        for splits in _SPLITS:
            if splits == 1 or self._may_be_split(splits, count):
                yield self._fitting(replace(shape, splits=splits))

    def _fitting(self, tiles: HopperTiles) -> HopperTiles:
        """Return the tiles with as many stages as shared memory holds."""
        limit = shared_memory(self.machine) - _RESERVED
        others = tiles.shared_bytes - tiles.stages * tiles.stage_bytes
        return replace(tiles, stages=min(tiles.stages, (limit - others) // tiles.stage_bytes))

    def _may_be_split(self, splits: int, count: int) -> bool:
        """Return whether each part is worth its block, and there is a multiprocessor for it."""
        stages = -(-self.size.depth * self.size.element // LINE)
        each = -(-stages // splits)
        fits = count * splits <= self._processors
        return fits and each >= _LEAST_STAGES and each * (splits - 1) < stages
