"""Known factors of the places of a signal: chirps, their spectrum, and roots of unity."""

from dataclasses import dataclass

from braid.dialects.braid.fourier_tables import Complexes
from braid.lowering.cpu.kernels.fourier.complex_numbers import Arithmetic, Complex
from braid.lowering.cpu.kernels.fourier.places import Derived
from braid.lowering.cpu.kernels.fourier.tables import Tables, several, single
from braid.lowering.emit.buffer import Buffer
from braid.lowering.emit.emitter import Emitter, Index


@dataclass(frozen=True)
class Factors:
    """A factor for each of `count` places, in the table from `begin` on."""

    begin: int
    count: int
    is_row: bool

    @staticmethod
    def added(tables: Tables, values: Complexes, *, is_row: bool) -> "Factors":
        """Return factors that are added to the tables."""
        begin = tables.add_rows(values[None]) if is_row else tables.add(values)
        return Factors(begin, len(values), is_row)

    def load(self, e: Emitter, table: Buffer, place: Index) -> Complex:
        """Return the factors of a vector of positions, or the factor of one position in every
        lane."""
        if self.is_row:
            return several(e, table, e.add(place, self.begin), self.count)
        return single(e, table, e.add(e.mul(place, 2), self.begin))


@dataclass(frozen=True)
class Multiplied(Derived):
    """Numbers that are multiplied by factors as they are read."""

    ops: Arithmetic
    table: Buffer
    factors: Factors

    def load(self, e: Emitter, place: Index) -> Complex:
        """See `Source`."""
        factor = self.factors.load(e, self.table, place)
        return self.ops.multiply(self.inner.load(e, place), factor)
