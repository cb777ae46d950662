"""Compute the resources of a circuit: the result of synthesis for the cells of its modules.

DSP slices multiply 25 by 18 bits (the DSP48E1 of AMD's 7 series: UG479), wider products take some;
a slice also holds registers of both factors and after the product, and an adder with its register.
Logic of up to six signals is a look-up table, which absorbs logic that only it reads. An adder has
one for each bit whose operands are both unknown, in addition to its carry chain. Choices of a known
value for a register are its reset. Registers in a row without reset are shift registers of 16 in a
table. Small memories, and those that are read at once, are in tables, others in block RAMs of 36
Kbit, each of which may be split into two of 18. Unused logic is removed. These are the rules
of `synth_xilinx` of Yosys, beside whose counts this is checked.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from math import ceil

from braid.lowering.fpga.rtl.netlist import BITWISE, HIGH, LOGIC, SUMS, Cell, Netlist
from braid.lowering.fpga.rtl.resources import Resources

_TABLE_INPUTS = 6
_TABLES_OF_CHOICE = 5 / 12
"""For each word more of a choice: a third where it may take long (each table chooses of four), and
a half on the longest path, where Yosys prefers wide multiplexers."""
_SHIFTED, _SHIFT_BITS = 3, 16
"""Registers in a row from which on a table is taken for them, and how many it has."""


def resources_of_module(netlist: Netlist) -> Resources:
    """Return the resources of a module by itself."""
    return _Synthesis(netlist).resources()


class _Synthesis:
    """The synthesis of the cells that are read. Columns are the bits of an output."""

    def __init__(self, netlist: Netlist) -> None:
        self.drivers = {
            bit: (cell, at)
            for cell in netlist.cells
            for at, bit in reversed(list(enumerate(cell.output)))
        }
        self.live = _live(netlist.roots, self.drivers)
        self.cells = [one for one in netlist.cells if not self.live.isdisjoint(one.output)]
        self.readers = Counter(netlist.roots)
        self.registers: dict[int, tuple[int, Cell]] = {}
        self.registers_of: dict[int, int] = {}
        self.sums_of: dict[int, Cell] = {}
        for cell in self.cells:
            self._note_readers(cell)
        # Registers and sums that slices hold.
        self.held: set[int] = set()
        self.held_sums: set[Cell] = set()
        # Flip-flops of addresses of memories that hold registers after them.
        self.addresses = 0
        # Sums that differ only in one addend are merged into one sum with a selected addend.
        self.chosen_sums: set[Cell] = set()
        self.tables = 0.0
        self.inverted: set[int] = set()
        # Inputs of tables by their outputs, while another table may take them in.
        self.inside: dict[int, frozenset[int]] = {}

    def resources(self) -> Resources:
        """Return the resources of the whole design."""
        self._hold_factors()
        for cell in self.cells:
            if cell.slices:
                self._fill_slice(cell)
            elif cell.half_blocks:
                self._hold_words(cell)
        self.resets = self._resets()
        self._choose_sums()
        for cell in self.cells:
            if cell.kind in SUMS | {"less"}:
                self._count_carries(cell)
            elif cell.kind in LOGIC:
                self._count_logic(cell)
            else:
                self.tables += cell.tables
        shifted, ff = self._shift_registers()
        tables = self.tables + len(self.inside) + len(self.inverted) + shifted
        tables += len({(cell.control, chosen) for cell, chosen in self.resets.values()})
        ff += sum(cell.ff for cell in self.cells) + self.addresses
        halves = sum(cell.half_blocks for cell in self.cells)
        return Resources(sum(cell.slices for cell in self.cells), halves / 2, round(tables), ff)

    def _note_readers(self, cell: Cell) -> None:
        columns = self._columns(cell)
        read = columns if cell.kind in BITWISE else columns[-1:]
        self.readers.update(chain.from_iterable(map(cell.reads, read)))
        if cell.kind == "register":
            for at in columns:
                self.registers[cell.output[at]] = cell.words[0][at], cell
                self.registers_of[cell.words[0][at]] = cell.output[at]
        if cell.kind in SUMS and not cell.shift:
            self.sums_of.update((word[0], cell) for word in cell.words)

    def _columns(self, cell: Cell) -> list[int]:
        """Return the bits of the output that are signals of their own, and read."""
        return [
            at
            for at, bit in enumerate(cell.output)
            if bit in self.live and self.drivers[bit] == (cell, at)
        ]

    def _hold_factors(self) -> None:
        """Count registers of factors into their DSP slices; other readers need a register of their
        own.
        """
        for cell in self.cells:
            for word in cell.words if cell.slices else ():
                bits = set(word) - {0, HIGH}
                if bits <= self.registers.keys():
                    self.readers.subtract(bits)
        self.held.update(bit for bit in self.registers if not self.readers[bit])

    def _fill_slice(self, cell: Cell) -> None:
        """Count the registers after a product, and a sum that reads them, into its DSP slice."""
        made = self._registered([cell.output[at] for at in self._columns(cell)])
        total = self.sums_of.get(made[0])
        if total is None or total in self.held_sums:
            self._registered(made)
        elif all(self.readers[bit] == 1 for bit in made):
            self.held_sums.add(total)
            self._registered([total.output[at] for at in self._columns(total)])

    def _hold_words(self, cell: Cell) -> None:
        """Count registers that alone read a block RAM as its own; else its address is
        registered.
        """
        own = [self.registers_of.get(cell.output[at]) for at in self._columns(cell)]
        made = [one for one in own if one is not None and self._is_plain(one)]
        if made == own:
            self.held.update(made)
            self.addresses += len(set(cell.words[0]) - {0, HIGH})

    def _is_plain(self, bit: int) -> bool:
        """Return a register that is always written, never reset, and the only reader of its
        source.
        """
        source, cell = self.registers[bit]
        return self.readers[source] == 1 and not cell.control and not cell.reset

    def _registered(self, bits: Sequence[int]) -> Sequence[int]:
        """Return the registers of a word that nothing else reads, in the slice with it; or the
        word.
        """
        if all(bit in self.registers_of and self.readers[bit] == 1 for bit in bits):
            made = [self.registers_of[bit] for bit in bits]
            self.held.update(made)
            return made
        return bits

    def _resets(self) -> dict[int, tuple[Cell, int]]:
        """Return muxes of a known and another value that only a register reads: they are
        its reset.
        """
        found: dict[int, tuple[Cell, int]] = {}
        for source, cell in self.registers.values():
            driver, at = self.drivers.get(source, (None, 0))
            if driver is None or driver.kind != "mux" or self.readers[source] != 1:
                continue
            known = [word[at] for word in driver.words if word[at] <= HIGH]
            index = cell.words[0].index(source)
            if len(known) == 1 and (not cell.reset or cell.reset[index] == known[0]):
                found[source] = cell, driver.control[0]
        return found

    def _choose_sums(self) -> None:
        for cell in self.cells:
            if cell.kind != "mux":
                continue
            sums = [self.drivers.get(word[0], (None, 0))[0] for word in cell.words]
            if any(one is None or one.kind not in SUMS for one in sums):
                continue
            first, second = (one for one in sums if one is not None)
            alone = all(self.readers[word[0]] == 1 for word in cell.words)
            if alone and first.words[0] == second.words[0]:
                self.chosen_sums |= {first, second}

    def _count_carries(self, cell: Cell) -> None:
        """Count a table for each bit of which both operands are unknown; each input has one
        reader.
        """
        if cell in self.held_sums or cell in self.chosen_sums:
            return
        # Carries go up to the last bit that is read.
        last = len(cell.words[0]) - 1 if cell.kind == "less" else self._columns(cell)[-1]
        for more in cell.words[1:]:
            for at in range(last + 1):
                left, right = cell.words[0][at], more[at]
                if left > HIGH and right > HIGH and left != right:
                    if not self._take_in(right, 1):
                        self._take_in(left, 1)
                    self.tables += 1
                elif max(left, right) > HIGH and left != right:
                    known = min(left, right)
                    if known == (HIGH if cell.kind == "add" else 0):
                        self.inverted.add(max(left, right))

    def _take_in(self, bit: int, beside: int) -> frozenset[int]:
        """Return the inputs of a table that only this one reads, if they and `beside` are few
        enough.
        """
        own = self.inside.get(bit, frozenset[int]())
        if own and self.readers[bit] == 1 and len(own) + beside <= _TABLE_INPUTS:
            return self.inside.pop(bit)
        return frozenset()

    def _count_logic(self, cell: Cell) -> None:
        for at in self._columns(cell):
            output = cell.output[at]
            if output in self.resets:
                continue
            inputs = cell.reads(at)
            if cell.kind == "mux" and self._is_sum(cell.words[0][at]):
                self.tables += 1
                continue
            for bit in sorted(inputs, reverse=True):
                own = self._take_in(bit, len(inputs) - 1)
                inputs = inputs - {bit} | own if own else inputs
            if len(inputs) <= _TABLE_INPUTS:
                self.inside[output] = frozenset(inputs)
            elif cell.kind == "choose":
                choices = len({word[at] for word in cell.words})
                self.tables += ceil(_TABLES_OF_CHOICE * (choices - 1))
            elif cell.kind == "table":
                self.tables += cell.tables
            else:
                self.tables += -(-(len(inputs) - 1) // (_TABLE_INPUTS - 1))

    def _is_sum(self, bit: int) -> bool:
        return bit in self.drivers and self.drivers[bit][0] in self.chosen_sums

    def _shift_registers(self) -> tuple[int, int]:
        """Return the tables of registers in a row that nothing else reads; and the other
        flip-flops.
        """
        own = {bit: one for bit, one in self.registers.items() if bit not in self.held}
        before = {
            bit: source
            for bit, (source, cell) in own.items()
            if source in own
            and self.readers[source] == 1
            and not cell.reset
            and not own[source][1].reset
            and cell.control == own[source][1].control
        }
        tables = ff = 0
        for bit in own.keys() - before.values():
            length = 1
            while bit in before:
                bit, length = before[bit], length + 1
            if length >= _SHIFTED and not own[bit][1].reset:
                tables += -(-length // _SHIFT_BITS)
            else:
                ff += length
        return tables, ff


def _live(roots: Iterable[int], drivers: dict[int, tuple[Cell, int]]) -> set[int]:
    """Return the signals that roots follow from, with them."""
    live, left = set(roots), list(roots)
    # Of cells that are not bitwise: how far their words are read.
    ends: dict[Cell, int] = {}
    while left:
        bit = left.pop()
        if bit not in drivers:
            continue
        cell, at = drivers[bit]
        start = ends.get(cell, 0)
        if start > (at if cell.kind in SUMS else 0):
            continue
        if cell.kind not in BITWISE:
            ends[cell] = at + 1
        new = cell.reads(at, start) - live
        live |= new
        left += new
    return live
