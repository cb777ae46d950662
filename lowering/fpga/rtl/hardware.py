"""Text of one `hw.module` of CIRCT, op by op."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from braid.lowering.fpga.rtl.netlist import HIGH, Bits, Cell, Netlist
from braid.lowering.fpga.rtl.resources import Resources, slices_of_product, storage_of
from braid.lowering.fpga.rtl.synthesis import resources_of_module


@dataclass(frozen=True)
class Wire:
    """A signal of this many bits."""

    name: str
    bits: int


class HardwareModule:
    """Builds a module with a clock `clk` and a reset `rst`; signed numbers, one clock domain."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._lines: list[str] = []
        self._inputs: list[Wire] = []
        self._outputs: list[tuple[str, Wire]] = []
        self._constants: dict[tuple[int, int], Wire] = {}
        self._values: dict[str, int] = {}
        self._made: dict[str, Wire] = {}
        self._count = 0
        self._netlist = Netlist()

    def input(self, name: str, bits: int) -> Wire:
        """Return a port."""
        wire = Wire(f"%{name}", bits)
        self._inputs.append(wire)
        return wire

    def output(self, name: str, wire: Wire) -> None:
        """Add an output port that carries `wire`."""
        self._outputs.append((name, wire))
        self._netlist.roots += self._bits(wire)

    def text(self) -> str:
        """Return the module."""
        ports = ["in %clk : !seq.clock", "in %rst : i1"]
        ports += [f"in {wire.name} : i{wire.bits}" for wire in self._inputs]
        ports += [f"out {name} : i{wire.bits}" for name, wire in self._outputs]
        names = ", ".join(wire.name for _, wire in self._outputs)
        types = ", ".join(f"i{wire.bits}" for _, wire in self._outputs)
        end = f"hw.output {names} : {types}" if self._outputs else "hw.output"
        body = "\n  ".join([*self._lines, end])
        return f"hw.module @{self.name}({', '.join(ports)}) {{\n  {body}\n}}\n"

    @property
    def resources(self) -> Resources:
        """Return the resources that synthesis uses for the module."""
        return resources_of_module(self._netlist)

    def line(self, text: str) -> None:
        """Write one op as text; only the names of its operands are known."""
        self._lines.append(text)
        for name in set(re.findall(r"%\w+", text.partition(" = ")[2] or text)):
            self._netlist.roots += self._netlist.word(name, 1)

    def _bits(self, wire: Wire) -> Bits:
        return self._netlist.word(wire.name, wire.bits)

    def name_for(self, prefix: str = "v") -> str:
        """Return a new name."""
        self._count += 1
        return f"%{prefix}_{self._count}"

    def _wire(self, text: str, bits: int) -> tuple[Wire, bool]:
        """Return the result of an op without state, as text, and whether it is new: equal ones are
        one.
        """
        is_new = text not in self._made
        if is_new:
            self._made[text] = Wire(self.name_for(), bits)
            self._lines.append(f"{self._made[text].name} = {text}")
        return self._made[text], is_new

    def constant(self, value: int, bits: int) -> Wire:
        """Return a number, modulo 2^bits."""
        value %= 1 << bits
        if (value, bits) not in self._constants:
            # i1 is signless: 1 is written as true.
            text = str(value) if bits > 1 else ("true" if value else "false")
            wire = Wire(self.name_for("c"), bits)
            kind = "" if bits == 1 else f" : i{bits}"
            self._lines.append(f"{wire.name} = hw.constant {text}{kind}")
            self._netlist.name(wire.name, [value >> index & 1 for index in range(bits)])
            self._constants[value, bits] = wire
            self._values[wire.name] = value
        return self._constants[value, bits]

    def apply(self, op: str, *operands: Wire) -> Wire:
        """Return `comb.OP` of operands of the same width."""
        bits = operands[0].bits
        assert all(operand.bits == bits for operand in operands), (op, operands)
        if len(operands) == 1 and op in ("and", "or", "add"):
            return operands[0]
        wire, is_new = self._wire(_text(op, operands), bits)
        if is_new:
            self._add(wire, op, operands)
        return wire

    def define(self, wire: Wire, op: str, *operands: Wire) -> None:
        """Define `comb.OP` as a wire that may have been read before, for loops."""
        self._lines.append(f"{wire.name} = {_text(op, operands)}")
        words = tuple(self._bits(one) for one in operands)
        self._netlist.cells.append(Cell(op, words, self._bits(wire)))

    def _add(self, wire: Wire, op: str, operands: Sequence[Wire]) -> None:
        words = [self._bits(one) for one in operands]
        if op in ("and", "or", "xor"):
            self._netlist.bitwise(wire.name, op, words)
            return
        if op in ("add", "sub"):
            self._netlist.sum(wire.name, op, words)
            return
        assert op == "shrs", op
        if max(words[1]) > HIGH:
            cell = Cell(op, tuple(words), self._netlist.fresh(wire.bits))
            self._netlist.add(wire.name, cell)
            return
        amount = sum(bit << at for at, bit in enumerate(words[1]))
        kept = words[0][amount:] or words[0][-1:]
        self._netlist.name(wire.name, kept + words[0][-1:] * (wire.bits - len(kept)))

    def product(self, left: Wire, right: Wire, bits: int) -> Wire:
        """Return the product of signed numbers, in `bits` bits.

        Powers of two of a known factor are a shift: synthesis that finds them itself takes the
        other factor in all of its bits, as it no longer sees that they repeat the sign.
        """
        known = self._values
        constant = next((one for one in (left, right) if one.name in known), None)
        if constant is None:
            return self._multiply(left, right, bits, (left.bits, right.bits))
        other = right if constant == left else left
        value, size = known[constant.name], constant.bits
        factor, shift = odd_factor(value, size), _zeros(value)
        if value and shift >= bits:
            return self.constant(0, bits)
        if other.name in known or not value:
            return self._multiply(left, right, bits, (0, 0))
        made = other
        if needed := factor_bits(value, size):
            # In bits that do not depend on the shift, so that equal products are merged.
            own = other.bits + needed
            made = self._multiply(other, self.constant(factor, own), own, (other.bits, needed))
        shifted = self.resize(made, bits - shift)
        if shift:
            shifted = self.concat([self.constant(0, shift), shifted])
        return shifted

    def _multiply(self, left: Wire, right: Wire, bits: int, factors: tuple[int, int]) -> Wire:
        """Return a `comb.mul` of `bits` bits, counted as a product of `factors` bits if both are
        known.
        """
        wide = [self.resize(one, bits) for one in (left, right)]
        made, is_new = self._wire(_text("mul", wide), bits)
        if is_new:
            slices = slices_of_product(*factors) if all(factors) else 0
            output = self._netlist.signed(bits, left.bits + right.bits)
            words = self._bits(left), self._bits(right)
            tables = prod(factors) * (slices == 0)
            cell = Cell("mul", words, output, slices=slices, tables=tables)
            self._netlist.add(made.name, cell)
        return made

    def compare(self, predicate: str, left: Wire, right: Wire) -> Wire:
        """Return `comb.icmp` of operands of the same width."""
        assert left.bits == right.bits, (predicate, left, right)
        text = f"comb.icmp {predicate} {left.name}, {right.name} : i{left.bits}"
        wire, is_new = self._wire(text, 1)
        if is_new:
            self._add_comparison(wire, predicate, self._bits(left), self._bits(right))
        return wire

    def _add_comparison(self, wire: Wire, predicate: str, left: Bits, right: Bits) -> None:
        """Count a comparison of unknown numbers by a chain of carries, or one for equality bit by
        bit.
        """
        is_known = max(right) <= HIGH
        if predicate not in ("eq", "ne") and not is_known:
            self._netlist.add(wire.name, Cell("less", (left, right), self._netlist.fresh(1)))
            return
        pairs = {pair for pair in zip(left, right, strict=True) if pair[0] != pair[1]}
        read = tuple({bit for pair in pairs for bit in pair if bit > HIGH})
        tables = -(-(len(read) - 1) // 5)
        cell = Cell("table", (), self._netlist.fresh(1), read, tables=tables)
        self._netlist.add(wire.name, cell)

    def equals(self, wire: Wire, value: int) -> Wire:
        """Return whether a wire has this value."""
        return self.compare("eq", wire, self.constant(value, wire.bits))

    def invert(self, wire: Wire) -> Wire:
        """Return the inverse of one bit."""
        return self.apply("xor", wire, self.constant(1, 1))

    def mux(self, condition: Wire, then: Wire, other: Wire) -> Wire:
        """Return `then` where the condition holds, else `other`."""
        assert then.bits == other.bits, (then, other)
        if then == other:
            return then
        text = f"comb.mux {condition.name}, {then.name}, {other.name} : i{then.bits}"
        wire, is_new = self._wire(text, then.bits)
        if is_new:
            words = self._bits(then), self._bits(other)
            self._netlist.bitwise(wire.name, "mux", words, self._bits(condition))
        return wire

    def extract(self, wire: Wire, low: int, bits: int) -> Wire:
        """Return `bits` bits of `wire` from bit `low` on."""
        if low == 0 and bits == wire.bits:
            return wire
        text = f"comb.extract {wire.name} from {low} : (i{wire.bits}) -> i{bits}"
        made, _ = self._wire(text, bits)
        self._netlist.name(made.name, self._bits(wire)[low : low + bits])
        return made

    def concat(self, wires: Sequence[Wire]) -> Wire:
        """Return the first operand in the lowest bits."""
        if len(wires) == 1:
            return wires[0]
        high_first = list(reversed(wires))
        names = ", ".join(wire.name for wire in high_first)
        types = ", ".join(f"i{wire.bits}" for wire in high_first)
        made, _ = self._wire(f"comb.concat {names} : {types}", sum(wire.bits for wire in wires))
        self._netlist.name(made.name, [bit for wire in wires for bit in self._bits(wire)])
        return made

    def resize(self, wire: Wire, bits: int) -> Wire:
        """Return the wire with `bits` bits: sign-extended or truncated."""
        if bits <= wire.bits:
            return self.extract(wire, 0, bits)
        sign = self.extract(wire, wire.bits - 1, 1)
        missing = bits - wire.bits
        signs, _ = self._wire(f"comb.replicate {sign.name} : (i1) -> i{missing}", missing)
        self._netlist.name(signs.name, self._bits(sign) * missing)
        return self.concat([wire, signs])

    def choose(self, index: Wire, choices: Sequence[Wire]) -> Wire:
        """Return the choice of this number; all have one width."""
        if all(choice == choices[0] for choice in choices):
            return choices[0]
        bits = choices[0].bits
        kind = f"!hw.array<{len(choices)}xi{bits}>"
        array = self.name_for("a")
        names = ", ".join(choice.name for choice in reversed(choices))
        self._lines.append(f"{array} = hw.array_create {names} : i{bits}")
        made, _ = self._wire(f"hw.array_get {array}[{index.name}] : {kind}, i{index.bits}", bits)
        words = [self._bits(choice) for choice in choices]
        self._netlist.bitwise(made.name, "choose", words, self._bits(index))
        return made

    def table(self, index: Wire, rows: Sequence[int], bits: int) -> Wire:
        """Return the row of this number, of known words, modulo 2^bits."""
        # As signed literals; the first that is printed has the highest index.
        words = [row - (row >> (bits - 1) << bits) for row in rows]
        text = ", ".join(f"{word} : i{bits}" for word in reversed(words))
        kind = f"!hw.array<{len(words)}xi{bits}>"
        array = self.name_for("rom")
        self._lines.append(f"{array} = hw.aggregate_constant [{text}] : {kind}")
        made, _ = self._wire(f"hw.array_get {array}[{index.name}] : {kind}, i{index.bits}", bits)
        self._netlist.table(made.name, self._bits(index), rows, bits)
        return made

    def register(
        self, value: Wire, enable: Wire | None = None, *, reset: int | None = None
    ) -> Wire:
        """Return the value of `value` in the previous cycle, or when `enable` was last 1."""
        name = self.name_for("r")
        self.define_register(Wire(name, value.bits), value, enable, reset=reset)
        return Wire(name, value.bits)

    def define_register(
        self, wire: Wire, value: Wire, enable: Wire | None = None, *, reset: int | None = None
    ) -> None:
        """Define a register under a name that may have been used before, as loops need."""
        op = "seq.compreg" if enable is None else "seq.compreg.ce"
        at = "" if enable is None else f", {enable.name}"
        start = "" if reset is None else f" reset %rst, {self.constant(reset, wire.bits).name}"
        self._lines.append(f"{wire.name} = {op} {value.name}, %clk{at}{start} : i{wire.bits}")
        enabled = () if enable is None else self._bits(enable)
        starts = () if reset is None else tuple(reset >> at & 1 for at in range(wire.bits))
        self._netlist.register(wire.name, self._bits(value), enabled, starts)

    def later(self, wire: Wire, cycles: int, *, reset: int | None = None) -> Wire:
        """Return the value of a wire this many cycles ago."""
        for _ in range(cycles):
            key = f"register {wire.name} {reset}"
            if key not in self._made:
                self._made[key] = self.register(wire, reset=reset)
            wire = self._made[key]
        return wire

    def memory(self, depth: int, read: Wire, write: Wire, data: Wire, enable: Wire) -> Wire:
        """Return a memory with one port of each kind; its output is the word at `read` of the
        previous cycle.

        Values are never read in the cycle in which they are written.
        """
        name, value = self.name_for("m"), self.name_for("q")
        kind = f"<{depth} x {data.bits}>"
        self._lines.append(f"{name} = seq.firmem 1, 1, undefined, undefined : {kind}")
        self._lines.append(
            f"{value} = seq.firmem.read_port {name}[{read.name}], clock %clk : {kind}"
        )
        self._lines.append(
            f"seq.firmem.write_port {name}[{write.name}] = {data.name}, clock %clk "
            f"enable {enable.name} : {kind}"
        )
        self._store(value, depth, (read, write, data, enable), at_once=False)
        return Wire(value, data.bits)

    def register_file(self, depth: int, read: Wire, write: Wire, data: Wire, enable: Wire) -> Wire:
        """Return a memory whose word at `read` is available in the same cycle."""
        name, value = self.name_for("f"), self.name_for("q")
        kind = f"!seq.hlmem<{depth}xi{data.bits}>"
        always = self.constant(1, 1)
        self._lines.append(f"{name} = seq.hlmem @{name[1:]} %clk, %rst : {kind[10:]}")
        self._lines.append(
            f"{value} = seq.read {name}[{read.name}] rden {always.name} "
            f"{{latency = 0 : i64}} : {kind}"
        )
        self._lines.append(
            f"seq.write {name}[{write.name}] {data.name} wren {enable.name} "
            f"{{latency = 1 : i64}} : {kind}"
        )
        self._store(value, depth, (read, write, data, enable), at_once=True)
        return Wire(value, data.bits)

    def _store(self, name: str, depth: int, ports: Sequence[Wire], *, at_once: bool) -> None:
        read, write, data, enable = (self._bits(port) for port in ports)
        found = storage_of(depth, len(data), at_once=at_once)
        if not at_once and not found.half_blocks:
            # Tables are read at once, by an address of the cycle before.
            self._netlist.register(f"{name} address", read, (), ())
            read = self._netlist.word(f"{name} address", len(read))
        self._netlist.add(
            name,
            Cell(
                "memory",
                (read, write, data, enable),
                self._netlist.fresh(len(data)),
                half_blocks=found.half_blocks,
                tables=found.tables,
                ff=found.ff,
            ),
        )

    def counter(self, end: int, step: Wire, name: str) -> tuple[Wire, Wire]:
        """Count steps from 0 to `end` - 1 and again; return the count, and whether it is
        the last.
        """
        bits = index_bits(end)
        if end == 1:
            return self.constant(0, bits), self.constant(1, 1)
        value = Wire(self.name_for(name), bits)
        last = self.equals(value, end - 1)
        more = self.apply("add", value, self.constant(1, bits))
        self.define_register(value, self.mux(last, self.constant(0, bits), more), step, reset=0)
        return value, last


def _text(op: str, operands: Sequence[Wire]) -> str:
    """Return `comb.OP` of operands of the same width."""
    return f"comb.{op} {', '.join(one.name for one in operands)} : i{operands[0].bits}"


def index_bits(count: int) -> int:
    """Return the bits of unsigned numbers below `count`."""
    return max(1, (count - 1).bit_length())


def _zeros(value: int) -> int:
    """Return the low bits of a number that are 0; none of 0 itself."""
    return max((value & -value).bit_length() - 1, 0)


def factor_bits(value: int, bits: int) -> int:
    """Return the bits of a known signed number without its powers of two; 0 if it needs no product.

    `value` is modulo 2^bits.
    """
    value %= 1 << bits
    if value & (value - 1) == 0 and not value >> (bits - 1):
        return 0
    odd = odd_factor(value, bits)
    return (odd if odd >= 0 else ~odd).bit_length() + 1


def odd_factor(value: int, bits: int) -> int:
    """Return a signed number of this many bits, given modulo 2^bits, without its powers of two."""
    value %= 1 << bits
    return (value - (value >> (bits - 1) << bits)) >> _zeros(value)
