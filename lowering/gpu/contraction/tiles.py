"""Tiles of a product: what a block and a warp compute, and where tiles lie in shared memory."""

from dataclasses import dataclass

from braid.lowering.gpu.contraction.code import Code, Value
from braid.targets.kernels.schedules import Schedule

CHUNK = 16
"""Bytes of the widest copy to shared memory, and of a row of `ldmatrix`."""

PADDING = 2 * CHUNK
"""Bytes between lines at most."""
LEAST_COPY = 4
"""Bytes of the narrowest copy."""


@dataclass(frozen=True)
class Tiles(Schedule):
    """A block computes `rows` by `columns`, and its warps `warp_rows` by `warp_columns` each.

    `depth` is the bytes of a row of A in a stage; `stages` are in shared memory at once. Each
    of `splits` blocks adds up a part of K of a tile (split-K), and another entry their sums.
    """

    rows: int
    columns: int
    depth: int
    stages: int
    warp_rows: int
    warp_columns: int
    splits: int = 1

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.rows // self.warp_rows * (self.columns // self.warp_columns) * 32

    @property
    def staged_pitch(self) -> int:
        """Bytes from a row of results in shared memory to the next: rows of a warp's are apart."""
        return 4 * self.columns + 32


@dataclass(frozen=True)
class Place:
    """Lines of a tile in shared memory, `start` bytes into a stage.

    Chunks of 16 bytes are `swizzled`: exchanged within a line by its number, so that 8 lines have
    the same chunk in different banks; or lines are `padding` bytes apart.
    """

    start: int
    lines: int
    line_bytes: int
    swizzled: bool
    padding: int = CHUNK

    @property
    def pitch(self) -> int:
        """Bytes from a line to the next."""
        return self.line_bytes if self.swizzled else self.line_bytes + self.padding

    @property
    def bytes(self) -> int:
        """Bytes of the whole tile."""
        return self.lines * self.pitch

    @property
    def period(self) -> int:
        """Lines after which chunks are exchanged in the same way again."""
        return 8 if self.swizzled else 1

    def turn(self, code: Code, line: Value) -> Value:
        """Return the number with which the index of a chunk in a row is combined, by exclusive
        or."""
        if self.line_bytes >= 8 * CHUNK:
            return code.bits(line, 7)
        return code.bits(code.div(line, 2), 3)

    def address(self, code: Code, line: Value, chunk: Value) -> Value:
        """Return the bytes into the stage."""
        own = code.xor(chunk, self.turn(code, line)) if self.swizzled else chunk
        return code.add(code.add(code.mul(line, self.pitch), code.mul(own, CHUNK)), self.start)
