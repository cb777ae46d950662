"""Which tiles products on sm_90a are made by, and how long that takes.

The form of the prediction is that of the kernel: a stage takes what its slowest part takes, copies
or products; a block its tiles one after the other; and all blocks at least what memory takes. The
constants are fitted to the times of 85 products with cold caches on an H200: from 1 to 8192 rows,
768 to 12288 columns, whole and split depths. They are met within 5 % (root mean square).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from braid.lowering.gpu.kernels.contraction.problem import Number
from braid.lowering.gpu.kernels.contraction.schedules import Size, shared_memory
from braid.lowering.gpu.kernels.hopper.instructions import BLOCK_ROWS
from braid.lowering.gpu.kernels.hopper.tiles import LINE, HopperTiles
from braid.targets.machines.machine import Machine

_ROWS = ((64, 1, 256), (128, 2, 256), (256, 2, 128))
"""Rows and groups of tiles, and their columns at most: sums stay in registers."""
_COLUMNS = 16
"""That numbers of columns are multiples of."""
_SPLITS = range(1, 9)
_MOST_STAGES = 16
_LEAST_STAGES = 4
"""Of a part of the depths."""
_RESERVED = 1024
"""Shared memory of a block that CUDA takes."""
_CANDIDATES = 24

_TENSOR_SHARE = 0.91
"""Of the peak rate that products reach while their operands are there."""
_SHARED_RATE = 128
"""Bytes of shared memory that are read in a cycle."""
_COPIED_RATE = 102e9
"""Bytes a second that a multiprocessor copies to its shared memory."""
_OUTSIDE = 2.0
"""How much longer rows outside of a tensor take to be copied."""
_STAGE_LATENCY = 0.38e-6
"""Seconds, divided by the stages that are under way."""
_TILE = 0.03e-6
_ELEMENT = 85e-12
"""Seconds for the results of a tile, and for each that a thread of 128 has."""
_SECOND_ENTRY = 1.4e-6
_PARTS_RATE = 10.7e12
"""Bytes of parts of sums that are written and read a second."""
_OVERLAP = 2.65
"""Of what memory and multiprocessors take: the exponent of the norm that they add up by."""


@dataclass(frozen=True)
class HopperCost:
    """Predicts times of a product of one size on a machine."""

    size: Size
    machine: Machine

    def tiles(self) -> list[HopperTiles]:
        """The fastest, in order."""
        found = [tiles for shape in self._shapes() for tiles in self._variants(shape)]
        return sorted(found, key=self.seconds)[:_CANDIDATES]

    def seconds(self, tiles: HopperTiles) -> float:
        """Of the kernel with such tiles, without what a launch takes."""
        size = self.size
        stages = -(-size.depth * size.element // (LINE * tiles.splits))
        count = self._tiles(tiles)
        blocks = min(count, self._processors)
        rounds = -(-count // blocks) * -(-blocks // self._processors)
        results = _TILE + _ELEMENT * min(tiles.rows, size.rows) * tiles.columns / tiles.groups
        body = rounds * (stages * self._stage(tiles) + results)
        memory = size.bytes / self.machine.fact("memory_bandwidth", 3.35e12)
        time = (body**_OVERLAP + memory**_OVERLAP) ** (1 / _OVERLAP)
        if tiles.splits > 1:
            parts = 4 * size.batches * size.rows * size.columns * tiles.splits
            time += _SECOND_ENTRY + 2 * parts / _PARTS_RATE
        return time

    @property
    def rate(self) -> float:
        """Operations a second at best."""
        if self.size.number is Number.S8:
            return self.machine.fact("tensor_int8_ops", 1979e12)
        return self.machine.fact("tensor_bf16_flops", 989e12)

    @property
    def _processors(self) -> int:
        return int(self.machine.fact("multiprocessors", 132))

    def _tiles(self, tiles: HopperTiles) -> int:
        """Parts of tiles that there are."""
        size = self.size
        across = -(-size.rows // tiles.rows) * -(-size.columns // tiles.columns)
        return size.batches * across * tiles.splits

    def share(self, tiles: HopperTiles) -> float:
        """Of the peak rate at most: few columns are multiplied as fast as shared memory is read."""
        by_rate, by_memory = tiles.columns / 2, (tiles.columns + BLOCK_ROWS) * 32 / _SHARED_RATE
        return _TENSOR_SHARE * by_rate / max(by_rate, by_memory)

    def _stage(self, tiles: HopperTiles) -> float:
        """Seconds from a stage to the next."""
        depth = LINE // self.size.element
        work = 2 * tiles.rows * tiles.columns * depth * self._processors
        outside = max(tiles.a_rows - self.size.rows, 0) * LINE
        return max(
            work / (self.rate * self.share(tiles)),
            (tiles.stage_bytes + _OUTSIDE * outside) / _COPIED_RATE,
            _STAGE_LATENCY / max(tiles.stages - 1, 1),
        )

    def _shapes(self) -> Iterator[HopperTiles]:
        for rows, groups, most in _ROWS:
            if rows > BLOCK_ROWS and self.size.rows <= rows // 2:
                continue
            for columns in range(_COLUMNS, most + 1, _COLUMNS):
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
        """With as many stages as shared memory holds."""
        limit = shared_memory(self.machine) - _RESERVED
        others = tiles.shared_bytes - tiles.stages * tiles.stage_bytes
        return replace(tiles, stages=min(tiles.stages, (limit - others) // tiles.stage_bytes))

    def _may_be_split(self, splits: int, count: int) -> bool:
        """Whether each part is worth its block, and there is a multiprocessor for it."""
        stages = -(-self.size.depth * self.size.element // LINE)
        each = -(-stages // splits)
        fits = count * splits <= self._processors
        return fits and each >= _LEAST_STAGES and each * (splits - 1) < stages
