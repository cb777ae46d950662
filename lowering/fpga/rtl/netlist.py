"""Represent a module as synthesis sees it: its bits, and the cells between them.

A bit is a number: 0 and 1 are known, each other is a signal. Words that share signals (repeated
signs, parts of words, logic and registers of the same) share their bits, so each is there once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from braid.lowering.fpga.rtl.shared_tables import SharedTables

Bits = tuple[int, ...]

HIGH = 1
"""The last known bit; 0 is low."""

BITWISE = frozenset({"and", "or", "xor", "mux", "choose", "register"})
"""Cells of which bit i of the output follows from bits i of the words, and from `control`."""

SUMS = frozenset({"add", "sub"})
"""Cells of which bit i of the output follows from bits 0 to i of the words."""

LOGIC = (BITWISE - {"register"}) | {"table"}
"""Cells without state or carries; a table is of `control` alone."""


@dataclass(frozen=True, eq=False)
class Cell:
    """Words to a word; `control` steers all bits: it chooses, or enables.

    `reset` are the values of a register then, by bits. `shift` are the low bits that a sum does not
    make. Products use `slices`, memories the other resources, and `tables` also includes logic that
    depends only on `control`.
    """

    kind: str
    words: tuple[Bits, ...]
    output: Bits
    control: Bits = ()
    reset: Bits = ()
    shift: int = 0
    slices: int = 0
    half_blocks: int = 0
    tables: float = 0.0
    ff: int = 0

    def reads(self, index: int, start: int = 0) -> set[int]:
        """Return the signals that bit `index` of the output follows from.

        The sums from bit `start` on.
        """
        if self.kind in BITWISE:
            found = {word[index] for word in self.words}
            found.update(self.control)
        elif self.kind in SUMS:
            found = set[int]().union(*(word[start : index + 1] for word in self.words))
        else:
            found = set(self.control).union(*self.words)
        found.discard(0)
        found.discard(HIGH)
        return found


@dataclass
class Netlist:
    """Cells in the order in which they were made, and the bits that leave the module."""

    cells: list[Cell] = field(default_factory=list[Cell])
    roots: list[int] = field(default_factory=list[int])
    _words: dict[str, Bits] = field(default_factory=dict[str, Bits])
    _made: dict[tuple[object, ...], int] = field(default_factory=dict[tuple[object, ...], int])
    _registers: dict[tuple[Bits, Bits, Bits], Bits] = field(
        default_factory=dict[tuple[Bits, Bits, Bits], Bits]
    )
    _shared: dict[Bits, SharedTables] = field(default_factory=dict[Bits, SharedTables])
    _last: int = HIGH

    def word(self, name: str, width: int) -> Bits:
        """Return the bits of a wire; new ones if nothing is known about it yet."""
        if name not in self._words:
            self._words[name] = self.fresh(width)
        return self._words[name]

    def fresh(self, width: int) -> Bits:
        """Return new signals."""
        first = self._last + 1
        self._last += width
        return tuple(range(first, first + width))

    def signed(self, width: int, significant: int) -> Bits:
        """Return new signals; the most significant one is the sign of all bits above."""
        own = self.fresh(min(significant, width))
        return own + own[-1:] * (width - len(own))

    def name(self, name: str, bits: Sequence[int]) -> None:
        """Name bits of other wires, or known bits."""
        self._words[name] = tuple(bits)

    def add(self, name: str, cell: Cell) -> None:
        """Add a cell whose output is the wire."""
        self._words[name] = cell.output
        self.cells.append(cell)

    def sum(self, name: str, kind: str, words: Sequence[Bits]) -> None:
        """Add a sum or a difference. Low bits to which nothing is added are those of the
        operand.
        """
        low: list[int] = []
        for column in zip(*words, strict=True):
            added = column[1:] if kind == "sub" else sorted(column)[:-1]
            if any(added):
                break
            low.append(max(column))
        left = [word[len(low) :] for word in words]
        if not left[0]:
            self.name(name, low)
            return
        output = self.signed(
            len(left[0]), max(map(significant_bits, left)) + (len(left) - 1).bit_length()
        )
        self.cells.append(Cell(kind, tuple(left), output, shift=len(low)))
        self.name(name, (*low, *output))

    def bitwise(self, name: str, kind: str, words: Sequence[Bits], control: Bits = ()) -> None:
        """Add logic, or a choice by `control`, bit by bit; what exists already is not made
        again.
        """
        made: list[int] = []
        new: list[tuple[int, Bits]] = []
        for column in zip(*words, strict=True):
            known = _known(kind, column, control)
            if known is None:
                key = kind, column, control
                if key not in self._made:
                    (self._made[key],) = self.fresh(1)
                    new.append((self._made[key], column))
                known = self._made[key]
            made.append(known)
        self._words[name] = tuple(made)
        if new:
            own = zip(*(column for _, column in new), strict=True)
            self.cells.append(Cell(kind, tuple(own), tuple(bit for bit, _ in new), control))

    def table(self, name: str, index: Bits, rows: Sequence[int], width: int) -> None:
        """Add a read-only memory of known words; equal columns are stored once."""
        made: list[int] = []
        for at in range(width):
            column = tuple(row >> at & 1 for row in rows)
            if len(set(column)) == 1:
                made.append(column[0])
                continue
            key = "table", column, index
            if key not in self._made:
                self._made[key] = self._function(column, index)
            made.append(self._made[key])
        self._words[name] = tuple(made)

    def _function(self, column: Bits, index: Bits) -> int:
        (made,) = self.fresh(1)
        read = _influences(column, index)
        tables = self._shared.setdefault(index, SharedTables()).more(column)
        self.cells.append(Cell("table", (), (made,), read, tables=tables))
        return made

    def register(self, name: str, data: Bits, enable: Bits, reset: Bits) -> None:
        """Add a register; registers of one word are shared, as are its equal bits; known bits need
        none.

        A wire that was read before, in a loop, keeps its bits.
        """
        if name in self._words:
            self.cells.append(Cell("register", (data,), self._words[name], enable, reset))
            return
        starts = reset or (None,) * len(data)
        columns = list(zip(data, starts, strict=True))
        key = data, enable, reset
        made = self._registers.get(key)
        if made is None:
            kept = {one: one[0] for one in columns if one[0] <= HIGH and one[1] in (None, one[0])}
            new = [one for one in dict.fromkeys(columns) if one not in kept]
            kept.update(zip(new, self.fresh(len(new)), strict=True))
            made = self._registers[key] = tuple(kept[one] for one in columns)
            if new:
                output = tuple(kept[one] for one in new)
                sources = tuple(bit for bit, _ in new)
                resets = tuple(start or 0 for _, start in new) if reset else ()
                self.cells.append(Cell("register", (sources,), output, enable, resets))
        self._words[name] = made


def _influences(column: Sequence[int], index: Bits) -> Bits:
    """Return the bits of an index that a function of it depends on; places beyond may have any
    value.
    """
    size = len(column)
    return tuple(
        bit
        for at, bit in enumerate(index)
        if any(one ^ 1 << at < size and column[one] != column[one ^ 1 << at] for one in range(size))
    )


def _known(kind: str, column: Bits, control: Bits) -> int | None:
    """Return the bit that such a column is without logic."""
    if kind in ("mux", "choose"):
        if len(set(column)) == 1:
            return column[0]
        if kind == "mux" and control[0] <= HIGH:
            return column[HIGH - control[0]]
        return control[0] if kind == "mux" and column == (HIGH, 0) else None
    if kind in ("and", "or"):
        absorbing = 0 if kind == "and" else HIGH
        left = set(column) - {HIGH - absorbing}
        if absorbing in left:
            return absorbing
        return (left or {HIGH - absorbing}).pop() if len(left) < 2 else None
    left = [bit for bit in column if bit]
    return (left or [0])[0] if len(left) < 2 else None


def significant_bits(word: Bits) -> int:
    """Return the significant bits of a word as a signed number, without bits that repeat
    its sign.
    """
    count = len(word)
    while count > 1 and word[count - 2] == word[-1]:
        count -= 1
    return count
