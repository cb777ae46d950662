"""Sizes that are known when a model runs, as its program reads them from `braid_env`.

The runtime computes every size that the program asks for, and places the buffers of the arena; the
program finds both in one array (`env->sizes`): the sizes in the order of a `SizeTable`, then the
offset of each buffer.
"""

from dataclasses import dataclass, field

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import SSAValue

from braid.lowering.host.environment import SIZES_OFFSET, Environment
from braid.lowering.host.pointers import POINTER, POINTER_BYTES, PointerBuilder
from braid.support.sizes.expression import Extent


@dataclass
class SizeTable:
    """The sizes that are computed for each run, each once, by number."""

    numbers: dict[Extent, int] = field(default_factory=dict[Extent, int])

    def number(self, extent: Extent) -> int:
        """Return the number of a size, which is added where it is new."""
        return self.numbers.setdefault(extent, len(self.numbers))

    @property
    def extents(self) -> tuple[Extent, ...]:
        """Return the sizes in their order."""
        return tuple(self.numbers)


class OpenSizes:
    """Loads sizes and offsets at the entry of a program, where they dominate every use."""

    def __init__(self, table: SizeTable, environment: Environment, entry: PointerBuilder) -> None:
        self._table, self._environment, self._entry = table, environment, entry
        self._values: dict[Extent, SSAValue] = {}
        self._sizes: SSAValue | None = None
        self._offsets: SSAValue | None = None
        self._skipped: arith.ConstantOp | None = None

    def value(self, extent: Extent) -> SSAValue:
        """Return the value of a number or a size, an i64."""
        if extent not in self._values:
            if isinstance(extent, int):
                self._values[extent] = self._entry.constant(extent)
            else:
                place = POINTER_BYTES * self._table.number(extent)
                address = self._entry.address(self._array(), place)
                self._values[extent] = self._entry.load(address, i64)
        return self._values[extent]

    def offset(self, number: int) -> SSAValue:
        """Return where a buffer begins in the arena, in bytes."""
        if self._offsets is None:
            # How many sizes are before the offsets is known when the whole program is emitted.
            self._skipped = self._entry.insert(arith.ConstantOp.from_int_and_width(0, 64))
            self._offsets = self._entry.address_at(self._array(), self._skipped.result)
        return self._entry.load(self._entry.address(self._offsets, POINTER_BYTES * number), i64)

    def finish(self) -> None:
        """Tell the program where the offsets begin: no size is added from here on."""
        if self._skipped is not None:
            self._skipped.value = IntegerAttr(POINTER_BYTES * len(self._table.numbers), i64)

    def _array(self) -> SSAValue:
        if self._sizes is None:
            place = self._entry.address(self._environment.env, SIZES_OFFSET)
            self._sizes = self._entry.load(place, POINTER)
        return self._sizes
