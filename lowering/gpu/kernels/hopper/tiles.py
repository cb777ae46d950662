"""Tiles of a product on sm_90a, and where they lie in shared memory."""

from dataclasses import dataclass

from braid.lowering.gpu.kernels.hopper.instructions import BLOCK_ROWS, WARPGROUP
from braid.targets.kernels.schedules import Schedule

LINE = 128
"""Bytes of a line of a tile along its contiguous dim, which chunks are swizzled in."""
STORE_ROWS = 16
"""Rows of a box of results; a warp has one of each block of rows."""
STORE_BUFFERS = 2
WARPS = 4
"""The warps of a group of threads that multiply together."""
BARRIER_BYTES = 8
_ATOM_ROWS = 8
"""The rows within which chunks are swizzled."""
LEAST_LINE = 32
"""Bytes of lines whose chunks are swizzled: these, twice, or four times as many."""
_LEAST_SHARE = 7
"""The columns of a tile for each of which one beyond the tile may be copied."""


@dataclass(frozen=True)
class HopperTiles(Schedule):
    """A block computes `rows` by `columns`, each of `groups` of 128 threads an equal share of rows.

    `stages` of 128 bytes along K are in shared memory at once. One more group copies. Each of
    `splits` blocks adds up a part of K of a tile (split-K), and another entry their sums. If
    `filled` is not 0, only the first `filled` rows of A are copied: bytes of B after them are
    multiplied without effect.
    """

    rows: int
    columns: int
    groups: int
    stages: int
    splits: int = 1
    filled: int = 0

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return WARPGROUP * (self.groups + 1)

    @property
    def blocks(self) -> int:
        """Blocks of rows that a group multiplies."""
        return self.rows // (BLOCK_ROWS * self.groups)

    @property
    def sums(self) -> int:
        """Sums of a thread, in each of its blocks."""
        return self.columns // 2

    @property
    def a_bytes(self) -> int:
        """Bytes of A in a stage."""
        return self.a_rows * LINE

    @property
    def a_rows(self) -> int:
        """Rows of A that are copied."""
        return self.filled or self.rows

    @property
    def may_be_filled(self) -> bool:
        """Return whether what a product reads after the copied rows is of the same stage."""
        whole = self.a_rows == self.rows
        b_follows = self.rows == BLOCK_ROWS and self.a_rows + self.b_columns >= BLOCK_ROWS
        return whole or (b_follows and self.a_rows % _ATOM_ROWS == 0)

    @property
    def b_line(self) -> int:
        """Bytes of a line of B where that is along columns: the most that copy few beside them."""
        lines = (LINE, LINE // 2, LEAST_LINE)
        return next((n for n in lines if _padded(self.columns, n) <= self._most_columns), 0)

    @property
    def b_columns(self) -> int:
        """Columns of B that are copied: whole 128-byte rows."""
        return _padded(self.columns, self.b_line) if self.b_line else self.columns

    @property
    def _most_columns(self) -> int:
        return self.columns + self.columns // _LEAST_SHARE

    @property
    def stage_bytes(self) -> int:
        """Bytes of A and B in a stage."""
        return self.a_bytes + self.b_columns * LINE

    @property
    def copies_results(self) -> bool:
        """Return whether results leave by copies of tensors, where they have boxes for them.

        Results of few columns are stored from registers: what boxes take is left to stages.
        """
        whole = self.columns % (LEAST_LINE // 2) == 0
        return self.splits == 1 and self.columns >= LINE // 2 and whole

    @property
    def store_start(self) -> int:
        """Return the byte at which boxes of results begin."""
        return self.stages * self.stage_bytes

    @property
    def store_bytes(self) -> int:
        """Bytes of the boxes of a warp."""
        return STORE_BUFFERS * STORE_ROWS * LINE if self.copies_results else 0

    @property
    def barrier_start(self) -> int:
        """Return the byte at which mbarriers begin: those of full, and those of empty stages."""
        return self.store_start + WARPS * self.groups * self.store_bytes

    def full(self, stage: int = 0) -> int:
        """Return where a stage's mbarrier for copies is."""
        return self.barrier_start + BARRIER_BYTES * stage

    def empty(self, stage: int = 0) -> int:
        """Return where a stage's mbarrier for products is."""
        return self.full(self.stages + stage)

    @property
    def shared_bytes(self) -> int:
        """Bytes of shared memory of a block."""
        return self.empty(self.stages)


def _padded(columns: int, line: int) -> int:
    """Return the columns of 16 bits in whole lines of `bytes` bytes."""
    each = line // 2
    return -(-columns // each) * each
