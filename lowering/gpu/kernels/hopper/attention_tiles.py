"""Tiles of attention on sm_90a, and where they lie in shared memory."""

from dataclasses import dataclass

from braid.lowering.gpu.kernels.hopper.instructions import BLOCK_ROWS, WARPGROUP
from braid.lowering.gpu.kernels.hopper.tiles import (
    BARRIER_BYTES,
    LINE,
    STORE_BUFFERS,
    STORE_ROWS,
    WARPS,
)

LINE_ELEMENTS = LINE // 2
"""The elements of 16 bits in a line."""


@dataclass(frozen=True)
class AttentionTiles:
    """A block has 64 queries for each of `groups` of 128 threads; one more group copies.

    `stages` tiles of `keys`, and of their values, are in shared memory at once. Elements of a key
    and of a value are multiples of 64. With `turns`, one group multiplies while another computes
    weights.
    """

    keys: int
    groups: int
    stages: int
    turns: bool
    key_width: int
    value_width: int

    @property
    def rows(self) -> int:
        """Queries of a block."""
        return BLOCK_ROWS * self.groups

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return WARPGROUP * (self.groups + 1)

    @property
    def blocks(self) -> int:
        """Blocks of rows that a group multiplies."""
        return 1

    @property
    def columns(self) -> int:
        """Columns of the results of a block."""
        return self.value_width

    @property
    def sums(self) -> int:
        """Sums of a thread, of weighted values."""
        return self.value_width // 2

    @property
    def query_bytes(self) -> int:
        """Bytes of the queries, which lie first."""
        return 2 * self.rows * self.key_width

    @property
    def key_bytes(self) -> int:
        """Bytes of a tile of keys."""
        return 2 * self.keys * self.key_width

    @property
    def value_bytes(self) -> int:
        """Bytes of a tile of values."""
        return 2 * self.keys * self.value_width

    @property
    def value_start(self) -> int:
        """Return the byte at which tiles of values begin, after those of keys."""
        return self.query_bytes + self.stages * self.key_bytes

    @property
    def store_start(self) -> int:
        """Return the byte at which boxes of results begin."""
        return self.value_start + self.stages * self.value_bytes

    @property
    def store_bytes(self) -> int:
        """Bytes of the boxes of a warp."""
        return STORE_BUFFERS * STORE_ROWS * LINE

    @property
    def barrier_start(self) -> int:
        """Return the byte at which mbarriers begin: of queries, keys, values, and turns."""
        return self.store_start + WARPS * self.groups * self.store_bytes

    def queries_full(self) -> int:
        """Return where the mbarrier is for copies of queries."""
        return self.barrier_start

    def queries_empty(self) -> int:
        """Return where the mbarrier is for the products of queries."""
        return self.barrier_start + BARRIER_BYTES

    def full(self, of_values: bool, stage: int = 0) -> int:
        """Return where a stage's mbarrier for copies is."""
        return self.barrier_start + BARRIER_BYTES * (2 + 2 * self.stages * of_values + stage)

    def empty(self, of_values: bool, stage: int = 0) -> int:
        """Return where a stage's mbarrier for products is."""
        return self.full(of_values, self.stages + stage)

    def turn(self, group: int = 0) -> int:
        """Return where the mbarrier is that a group waits at for its turn."""
        return self.full(True, 2 * self.stages + group)

    @property
    def shared_bytes(self) -> int:
        """Bytes of shared memory of a block."""
        return self.turn(self.groups)
