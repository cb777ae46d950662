"""Tiles of a product on sm_90a, and where they lie in shared memory."""

from dataclasses import dataclass

from braid.lowering.gpu.kernels.hopper.instructions import BLOCK_ROWS, WARPGROUP
from braid.targets.kernels.kernel_family import Schedule

LINE = 128
"""Bytes of a line of a tile along its contiguous dim, which chunks are swizzled in."""
STORE_ROWS = 16
"""Rows of a box of results, which a warp has of each block of rows."""
STORE_BUFFERS = 2
WARPS = 4
"""Of a group of threads that multiply together."""
BARRIER_BYTES = 8


@dataclass(frozen=True)
class HopperTiles:
    """A block computes `rows` by `columns`, each of `groups` of 128 threads an equal share of rows.

    `stages` of 128 bytes along depths are in shared memory at once. One more group copies.
    """

    rows: int
    columns: int
    groups: int
    stages: int

    @staticmethod
    def of(schedule: Schedule) -> "HopperTiles":
        """Those that a schedule names."""
        return HopperTiles(**schedule)

    @property
    def schedule(self) -> Schedule:
        """As families name it."""
        return dict(vars(self))

    @property
    def threads(self) -> int:
        """Of a block."""
        return WARPGROUP * (self.groups + 1)

    @property
    def blocks(self) -> int:
        """Of rows that a group multiplies."""
        return self.rows // (BLOCK_ROWS * self.groups)

    @property
    def sums(self) -> int:
        """Of a thread, in each of its blocks."""
        return self.columns // 2

    @property
    def a_bytes(self) -> int:
        """Of a stage."""
        return self.rows * LINE

    @property
    def stage_bytes(self) -> int:
        """Of A and B."""
        return self.a_bytes + self.columns * LINE

    @property
    def store_start(self) -> int:
        """Where boxes of results lie."""
        return self.stages * self.stage_bytes

    @property
    def store_bytes(self) -> int:
        """Of the boxes of a warp."""
        return STORE_BUFFERS * STORE_ROWS * LINE

    @property
    def barrier_start(self) -> int:
        """Where mbarriers lie: that stages are full, and that they are empty."""
        return self.store_start + WARPS * self.groups * self.store_bytes

    def full(self, stage: int = 0) -> int:
        """Where a stage's mbarrier for copies is."""
        return self.barrier_start + BARRIER_BYTES * stage

    def empty(self, stage: int = 0) -> int:
        """Where a stage's mbarrier for products is."""
        return self.full(self.stages + stage)

    @property
    def shared_bytes(self) -> int:
        """Of a block."""
        return self.empty(self.stages)
