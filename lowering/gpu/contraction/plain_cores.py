"""Products of tiles of f32 by multiply-adds: a thread computes 8 by 8 or 8 by 16 results.

The distance of a thread's rows is the number of threads across. So the 4 rows of A and 128 bytes of
B that the 4 by 8 threads of a warp read in a step are in different banks. Shared memory gives a
warp 128 bytes a cycle, whichever of them are the same: 8 by 8 results take all that it gives at the
rate of multiply-adds of sm_86 and later, 8 by 16 three quarters.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import llvm
from xdsl.dialects.builtin import Float32Type

from braid.lowering.gpu.contraction.code import Code, Value, f32_vector
from braid.lowering.gpu.contraction.tiles import Place, Tiles

_OWN = 8
"""Rows of a thread."""
_VECTOR = 4
"""Numbers that are read at once: of A along K, of B along columns."""
WARP_ROWS = 32
"""The rows of a warp."""
_WARP_VECTOR = 32
"""Columns of a warp for each vector of columns of a thread."""


@dataclass
class PlainCores:
    """Multiplies what `a`, lines along K, and `b`, lines of columns, hold."""

    tiles: Tiles
    a: Place
    b: Place
    tail = _VECTOR

    @property
    def steps(self) -> int:
        """Steps of a stage."""
        return self.tiles.depth // 4

    @property
    def sums(self) -> int:
        """Return the number of sums of a thread."""
        return _OWN * _VECTOR * self._vectors

    def zero(self, code: Code) -> Value:
        """Return zero in the type of sums."""
        return code.number(0, Float32Type())

    def prepare(self, code: Code, thread: Value) -> None:
        """Compute the thread's first row and first column."""
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
        return self.tiles.columns // self._vectors

    @property
    def _vectors(self) -> int:
        """Vectors of columns of a thread."""
        return self.tiles.warp_columns // _WARP_VECTOR

    def load(
        self, code: Code, shared: Value, step: int, before: Sequence[Value] = ()
    ) -> list[Value]:
        """Load vectors along K of the thread's rows, then one along its columns for each k.

        A vector of A serves several steps: `before` has the fragments of the step before.
        """
        type = f32_vector(_VECTOR)
        a, b = code.at(shared, self._a), code.at(shared, self._b)
        values = list(before[:_OWN])
        if step % _VECTOR == 0:
            rows = (code.at(a, n * self._row_step * self.a.pitch + 4 * step) for n in range(_OWN))
            values = [code.load(place, type, 16) for place in rows]
        for part in range(self._vectors):
            place = code.at(b, step * self.b.pitch + 4 * part * self._column_step)
            values.append(code.load(place, type, 16))
        return values

    def multiply(
        self, code: Code, sums: Sequence[Value], fragments: Sequence[Value], step: int
    ) -> list[Value]:
        """Return the sums and the products of a step."""
        values = list(sums)
        f32 = Float32Type()
        row_b = [code.element(part, n, f32) for part in fragments[_OWN:] for n in range(_VECTOR)]
        for row in range(_OWN):
            a = code.element(fragments[row], step % _VECTOR, f32)
            for column, b in enumerate(row_b):
                at = len(row_b) * row + column
                values[at] = code.insert(llvm.FMAOp(a, b, values[at]))
        return values

    def stage(self, code: Code, shared: Value, sums: Sequence[Value]) -> None:
        """Write the thread's sums to the rows of the tile."""
        pitch = self.tiles.staged_pitch
        start = code.add(code.mul(self.row, pitch), code.mul(self.column, 4))
        for row in range(_OWN):
            for part in range(self._vectors):
                first = _VECTOR * (self._vectors * row + part)
                place = row * self._row_step * pitch + 4 * part * self._column_step
                vector = code.vector(sums[first : first + _VECTOR])
                code.store(vector, code.at(code.at(shared, start), place), 16)
