"""Products of tiles of f32 by multiply-adds: a thread computes 8 by 8 results.

Rows of a thread are as far apart as there are threads across, so that what the 4 by 8 threads of a
warp read of a step, 4 rows of A and 128 bytes of B, is in different banks.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import llvm
from xdsl.dialects.builtin import Float32Type

from braid.lowering.gpu.kernels.contraction.code import Code, Value, f32_vector
from braid.lowering.gpu.kernels.contraction.tiles import Place, Tiles

_OWN = 8
"""Rows and columns of a thread."""
_VECTOR = 4
"""Numbers that are read at once: of A along depths, of B along columns."""
WARP_ROWS, WARP_COLUMNS = 32, 64
"""What a warp computes."""


@dataclass
class PlainCores:
    """Multiplies what `a`, lines of depths, and `b`, lines of columns, hold."""

    tiles: Tiles
    a: Place
    b: Place
    reads_ahead = False

    @property
    def steps(self) -> int:
        """Of a stage."""
        return self.tiles.depth // (4 * _VECTOR)

    @property
    def sums(self) -> int:
        """How many a thread has."""
        return _OWN * _OWN

    def zero(self, code: Code) -> Value:
        """Of the type of sums."""
        return code.number(0, Float32Type())

    def prepare(self, code: Code, thread: Value) -> None:
        """The thread's first row, and its first column."""
        lane, warp = code.rem(thread, 32), code.div(thread, 32)
        across = self.tiles.rows // WARP_ROWS
        self.row = code.add(code.mul(code.rem(warp, across), 4), code.rem(lane, 4))
        column = code.add(code.mul(code.div(warp, across), 8), code.div(lane, 4))
        self.column = code.mul(column, _VECTOR)
        self._a = code.add(code.mul(self.row, self.a.pitch), self.a.start)
        self._b = code.add(code.mul(self.column, 4), self.b.start)

    @property
    def _row_step(self) -> int:
        return self.tiles.rows // _OWN

    @property
    def _column_step(self) -> int:
        return self.tiles.columns // 2

    def load(self, code: Code, shared: Value, step: int) -> list[Value]:
        """Vectors along depths of the thread's rows, then along its columns of each depth."""
        type = f32_vector(_VECTOR)
        a, b = code.at(shared, self._a), code.at(shared, self._b)
        values = [
            code.load(code.at(a, n * self._row_step * self.a.pitch + 16 * step), type, 16)
            for n in range(_OWN)
        ]
        for depth in range(_VECTOR * step, _VECTOR * (step + 1)):
            for half in range(2):
                place = code.at(b, depth * self.b.pitch + 4 * half * self._column_step)
                values.append(code.load(place, type, 16))
        return values

    def multiply(
        self, code: Code, sums: Sequence[Value], fragments: Sequence[Value]
    ) -> list[Value]:
        """The sums and the products of a step."""
        values = list(sums)
        f32 = Float32Type()
        for depth in range(_VECTOR):
            first = _OWN + 2 * depth
            row_b = [
                code.element(fragments[first + half], n, f32)
                for half in range(2)
                for n in range(_VECTOR)
            ]
            for row in range(_OWN):
                a = code.element(fragments[row], depth, f32)
                for column, b in enumerate(row_b):
                    at = _OWN * row + column
                    values[at] = code.insert(llvm.FMAOp(a, b, values[at]))
        return values

    def stage(self, code: Code, shared: Value, sums: Sequence[Value]) -> None:
        """Writes the thread's sums to the rows of the tile."""
        pitch = self.tiles.staged_pitch
        start = code.add(code.mul(self.row, pitch), code.mul(self.column, 4))
        for row in range(_OWN):
            for half in range(2):
                first = _OWN * row + _VECTOR * half
                place = row * self._row_step * pitch + 4 * half * self._column_step
                vector = code.vector(sums[first : first + _VECTOR])
                code.store(vector, code.at(code.at(shared, start), place), 16)
