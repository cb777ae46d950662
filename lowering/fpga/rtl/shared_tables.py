"""Look-up tables for functions of one index that share their parts."""

from dataclasses import dataclass, field

_TABLE_BITS = 6
"""Inputs of a table: a function of this many bits, or a choice of two bits between four."""
_WIDE_BITS = 8
"""The bits of a function that multiplexers between tables choose, which are there without more
tables."""

Part = object
"""The part of a function: a known bit, a bit of the index, or the table that makes it."""


@dataclass
class SharedTables:
    """Tables of the functions so far.

    The low bits of the index go into tables, whose results its other bits choose from, two a table
    (decision diagrams, Bryant 1986): equal parts are made once. Synthesis finds up to a third less,
    if another order of the bits has fewer parts. (Measured: Yosys, `synth_xilinx`.)
    """

    _made: set[Part] = field(default_factory=set[Part])

    def more(self, column: tuple[int, ...]) -> int:
        """Return the tables for a function, given its bits by index, beside those that are there.

        Beyond its last bit the function may be anything.
        """
        before = len(self._made)
        size = 1 << _TABLE_BITS
        leaves = (column[at : at + size] for at in range(0, len(column), size))
        parts = [self._leaf(one) for one in leaves]
        if len(parts) << _TABLE_BITS > 1 << _WIDE_BITS:
            while len(parts) > 1:
                parts = [self._choice(tuple(parts[at : at + 4])) for at in range(0, len(parts), 4)]
        return len(self._made) - before

    def _leaf(self, values: tuple[int, ...]) -> Part:
        """Return the table of a function of the low bits, or its inverse."""
        if len(set(values)) == 1:
            return values[0]
        inverse = values[0]
        values = tuple(one ^ inverse for one in values)
        for bit in range((len(values) - 1).bit_length()):
            if all(one == at >> bit & 1 for at, one in enumerate(values)):
                return "bit", bit, inverse
        self._made.add(values)
        return values, inverse

    def _choice(self, parts: tuple[Part, ...]) -> Part:
        """Return the table that chooses among up to four parts."""
        if len(set(parts)) == 1:
            return parts[0]
        self._made.add(parts)
        return parts
