"""DSP slices, memories, look-up tables and flip-flops of AMD's parts, by the rules of synthesis."""

from dataclasses import dataclass

_A_BITS, _B_BITS, _PART_BITS, _LEAST_BITS = 25, 18, 17, 9
"""The bits of the operands of a DSP slice, of the parts that wider ones are split into (so that
slices add up parts by themselves), and of the least product that is not left to tables: those of
`mul2dsp` in Yosys."""
_TABLE_COST, _BLOCK_COST = 8, 129
"""The cost of four tables with 32 words of 6 bits or 64 of 3, and of half a block, in units of a
flip-flop, as Yosys weighs them."""
_BLOCK_WIDTHS = ((512, 36), (1024, 18), (2048, 9), (4096, 4), (8192, 2), (16384, 1))
"""Words and bits of a block RAM of 18 Kbit; one of 36 Kbit is two of these."""


PARTS = (
    ("dsp", "DSP slices"),
    ("bram36", "block RAMs"),
    ("lut", "look-up tables"),
    ("ff", "flip-flops"),
)
"""The fields of `Resources` that are resources of a part, and their names for people."""


@dataclass(frozen=True)
class Resources:
    """DSP slices, block RAMs of 36 Kbit, look-up tables and flip-flops.

    `memory` counts the bits per cycle that are read from the memory next to the part.
    """

    dsp: int = 0
    bram36: float = 0.0
    lut: int = 0
    ff: int = 0
    memory: int = 0

    def __add__(self, other: "Resources") -> "Resources":
        return Resources(
            self.dsp + other.dsp,
            self.bram36 + other.bram36,
            self.lut + other.lut,
            self.ff + other.ff,
            self.memory + other.memory,
        )


def slices_of_product(left: int, right: int) -> int:
    """Return the DSP slices for a product of signed numbers of these bits."""
    if left + right < _LEAST_BITS or min(left, right) < 2:
        return 0
    large, small = max(left, right), min(left, right)
    return _parts(large, _A_BITS) * _parts(small, _B_BITS)


def _parts(bits: int, most: int) -> int:
    return 1 if bits <= most else 1 + -(-(bits - most) // _PART_BITS)


@dataclass(frozen=True)
class Storage:
    """The resources of a memory: halves of block RAMs, or tables, or flip-flops and tables."""

    half_blocks: int = 0
    tables: int = 0
    ff: int = 0


def storage_of(words: int, bits: int, *, at_once: bool) -> Storage:
    """Return a memory that is written, and read `at_once` or a cycle later."""
    deep, wide = (32, 6) if words <= 32 else (64, 3)
    tables = -(-words // deep) * -(-bits // wide)
    shapes = [(-(-words // deep), -(-bits // wide)) for deep, wide in _BLOCK_WIDTHS]
    rows, columns = min(shapes, key=lambda shape: (shape[0] * shape[1], shape[0]))
    blocks = rows * columns
    if words * bits <= tables * _TABLE_COST:
        return Storage(tables=bits * -(-(words - 1) // 3), ff=words * bits)
    if at_once or tables * _TABLE_COST < blocks * _BLOCK_COST:
        return Storage(tables=4 * tables)
    # The row of blocks that has the word is chosen after them, and in front of what is written.
    choices = bits * -(-(rows - 1) // 3) + (rows if rows > 1 else 0)
    return Storage(half_blocks=blocks, tables=choices)
