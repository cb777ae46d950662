"""What a circuit takes of a part: counted as its modules are built, by the rules of synthesis.

DSP slices multiply 25 by 18 bits (the DSP48E1 of AMD's 7 series: UG479), wider products take some;
a slice also holds the register behind its product, and one adder with that of its own. An adder, a
comparison by size and a choice of two take a look-up table a bit, a choice of more one for each
three more; columns of tables that are equal are one. Registers in a row without reset are shift
registers of 16 in a table. Small memories, and those that are read at once, are in tables, others
in block RAMs of 36 Kbit, of which each may be two of 18. Checked beside what
`synth_xilinx` of Yosys counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

_A_BITS, _B_BITS, _PART_BITS, _LEAST_BITS = 25, 18, 17, 9
"""Of the operands, of what wider ones are split into (so that slices add up parts by themselves),
and of the least product that is not left to tables: those of `mul2dsp` in Yosys."""
_SHIFTED, _SHIFT_BITS = 3, 16
_TABLE_COST, _BLOCK_COST = 8, 129
"""Of four tables with 32 words of 6 bits or 64 of 3, and of half a block: as Yosys weighs them."""
_BLOCK_WIDTHS = ((512, 36), (1024, 18), (2048, 9), (4096, 4), (8192, 2), (16384, 1))
"""Words and bits of a block RAM of 18 Kbit, which one of 36 Kbit has two of."""


@dataclass(frozen=True)
class Resources:
    """DSP slices, block RAMs of 36 Kbit, look-up tables and flip-flops."""

    dsp: int = 0
    bram36: float = 0.0
    lut: int = 0
    ff: int = 0

    def __add__(self, other: "Resources") -> "Resources":
        return Resources(
            self.dsp + other.dsp,
            self.bram36 + other.bram36,
            self.lut + other.lut,
            self.ff + other.ff,
        )


def slices_of_product(left: int, right: int) -> int:
    """DSP slices for a product of signed numbers of so many bits."""
    if left + right < _LEAST_BITS or min(left, right) < 2:
        return 0
    large, small = max(left, right), min(left, right)
    return _parts(large, _A_BITS) * _parts(small, _B_BITS)


def _parts(bits: int, most: int) -> int:
    return 1 if bits <= most else 1 + -(-(bits - most) // _PART_BITS)


@dataclass
class Tally:
    """Counts of one module."""

    dsp: int = 0
    lut: float = 0.0
    ff: int = 0
    half_blocks: int = 0
    products: set[str] = field(default_factory=set[str])
    packed: set[str] = field(default_factory=set[str])
    chains: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])

    def product(self, name: str, left: int, right: int) -> None:
        """A product of operands of so many bits; in tables where it is small."""
        slices = slices_of_product(left, right)
        self.dsp += slices
        if slices:
            self.products.add(name)
        else:
            self.lut += left * right

    def sum(self, name: str, operands: Sequence[str], bits: int) -> None:
        """An adder; in the slice of an operand that is a product behind its register."""
        ready = [one for one in operands if one in self.packed]
        if ready:
            self.products.add(name)
            self.packed.discard(ready[0])
        else:
            self.lut += bits

    def logic(self, tables: float) -> None:
        """So many look-up tables."""
        self.lut += tables

    def constants(self, rows: Sequence[int], bits: int) -> None:
        """A memory that is only read, of words of so many bits."""
        columns = {tuple(row >> bit & 1 for row in rows) for bit in range(bits)}
        self.lut += len(columns) * -(-len(rows) // 64)

    def register(self, name: str, source: str, bits: int, *, plain: bool) -> None:
        """A register; `plain` for one that changes in each cycle and has no reset."""
        if plain and source in self.products:
            self.packed.add(name)
        elif plain:
            before = self.chains.pop(source, (0, bits))[0]
            self.chains[name] = (before + 1, bits)
        else:
            self.ff += bits

    def memory(self, words: int, bits: int, *, at_once: bool) -> None:
        """One that is written, and read `at_once` or a cycle later."""
        deep, wide = (32, 6) if words <= 32 else (64, 3)
        tables = -(-words // deep) * -(-bits // wide)
        blocks = min(-(-words // deep) * -(-bits // wide) for deep, wide in _BLOCK_WIDTHS)
        if at_once or tables * _TABLE_COST < blocks * _BLOCK_COST:
            self.lut += 4 * tables
        else:
            self.half_blocks += blocks

    @property
    def resources(self) -> Resources:
        """All of it."""
        lut, ff = self.lut, self.ff
        for length, bits in self.chains.values():
            if length >= _SHIFTED:
                lut += bits * -(-length // _SHIFT_BITS)
            else:
                ff += bits * length
        return Resources(self.dsp, self.half_blocks / 2, round(lut), ff)
