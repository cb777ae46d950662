"""Text of one `hw.module` of CIRCT, op by op."""

from collections.abc import Sequence
from dataclasses import dataclass

from braid.lowering.fpga.rtl.resources import Tally


@dataclass(frozen=True)
class Wire:
    """A signal of so many bits."""

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
        self._made: dict[str, Wire] = {}
        self._count = 0
        # What was extended by its sign.
        self._origin: dict[str, str] = {}
        self.tally = Tally()

    def input(self, name: str, bits: int) -> Wire:
        """A port."""
        wire = Wire(f"%{name}", bits)
        self._inputs.append(wire)
        return wire

    def output(self, name: str, wire: Wire) -> None:
        """A port that carries `wire`."""
        self._outputs.append((name, wire))

    def text(self) -> str:
        """The module."""
        ports = ["in %clk : !seq.clock", "in %rst : i1"]
        ports += [f"in {wire.name} : i{wire.bits}" for wire in self._inputs]
        ports += [f"out {name} : i{wire.bits}" for name, wire in self._outputs]
        names = ", ".join(wire.name for _, wire in self._outputs)
        types = ", ".join(f"i{wire.bits}" for _, wire in self._outputs)
        end = f"hw.output {names} : {types}" if self._outputs else "hw.output"
        body = "\n  ".join([*self._lines, end])
        return f"hw.module @{self.name}({', '.join(ports)}) {{\n  {body}\n}}\n"

    def line(self, text: str) -> None:
        """One op as text."""
        self._lines.append(text)

    def name_for(self, prefix: str = "v") -> str:
        """A new name."""
        self._count += 1
        return f"%{prefix}_{self._count}"

    def wire(self, text: str, bits: int) -> Wire:
        """The result of an op without state, as text; the same text is one wire."""
        if text not in self._made:
            self._made[text] = Wire(self.name_for(), bits)
            self.line(f"{self._made[text].name} = {text}")
        return self._made[text]

    def constant(self, value: int, bits: int) -> Wire:
        """A number, modulo 2^bits."""
        value %= 1 << bits
        if (value, bits) not in self._constants:
            # i1 is signless: 1 is written as true.
            text = str(value) if bits > 1 else ("true" if value else "false")
            wire = Wire(self.name_for("c"), bits)
            kind = "" if bits == 1 else f" : i{bits}"
            self.line(f"{wire.name} = hw.constant {text}{kind}")
            self._constants[value, bits] = wire
        return self._constants[value, bits]

    def apply(self, op: str, *operands: Wire) -> Wire:
        """`comb.OP` of operands of the same width."""
        bits = operands[0].bits
        assert all(operand.bits == bits for operand in operands), (op, operands)
        if len(operands) == 1 and op in ("and", "or", "add"):
            return operands[0]
        text = f"comb.{op} {', '.join(one.name for one in operands)} : i{bits}"
        if text not in self._made:
            if op in ("add", "sub"):
                names = [self._origin.get(one.name, one.name) for one in operands]
                self.tally.sum(self.wire(text, bits).name, names, bits)
            elif op in ("and", "or", "xor"):
                self.tally.logic(bits * (len(operands) - 1) / 3)
        return self.wire(text, bits)

    def product(self, left: Wire, right: Wire, bits: int) -> Wire:
        """Of signed numbers, in so many bits.

        Powers of two of a known factor are a shift: synthesis that finds them itself takes the
        other factor in all of its bits, as it no longer sees that they repeat the sign.
        """
        known = {wire.name: value for (value, _), wire in self._constants.items()}
        constant = next((one for one in (left, right) if one.name in known), None)
        if constant is None:
            return self._multiply(left, right, bits, (left.bits, right.bits))
        other = right if constant == left else left
        value, size = known[constant.name], constant.bits
        factor, shift = odd_factor(value, size), _zeros(value)
        if not (needed := factor_bits(value, size)) or other.name in known:
            return self._multiply(left, right, bits, (0, 0))
        # In bits that do not depend on the shift, so that equal products are one.
        own = other.bits + needed
        made = self._multiply(other, self.constant(factor, own), own, (other.bits, needed))
        shifted = self.resize(made, bits - shift)
        if shift:
            shifted = self.concat([self.constant(0, shift), shifted])
        if made.name in self.tally.products:
            self.tally.products.add(shifted.name)
        return shifted

    def _multiply(self, left: Wire, right: Wire, bits: int, factors: tuple[int, int]) -> Wire:
        """`comb.mul` in so many bits; counted as a product of `factors` bits, if both have some."""
        wide = [self.resize(one, bits) for one in (left, right)]
        text = f"comb.mul {', '.join(one.name for one in wide)} : i{bits}"
        is_new = text not in self._made
        made = self.wire(text, bits)
        if is_new and all(factors):
            self.tally.product(made.name, *factors)
        return made

    def compare(self, predicate: str, left: Wire, right: Wire) -> Wire:
        """`comb.icmp` of operands of the same width."""
        assert left.bits == right.bits, (predicate, left, right)
        text = f"comb.icmp {predicate} {left.name}, {right.name} : i{left.bits}"
        if text not in self._made:
            is_small = predicate in ("eq", "ne") or self._is_known(right)
            self.tally.logic(left.bits / 5 if is_small else left.bits)
        return self.wire(text, 1)

    def equals(self, wire: Wire, value: int) -> Wire:
        """Whether a wire has this value."""
        return self.compare("eq", wire, self.constant(value, wire.bits))

    def _is_known(self, wire: Wire) -> bool:
        """Whether a wire is a constant, with which logic becomes part of what reads it."""
        return wire in self._constants.values()

    def invert(self, wire: Wire) -> Wire:
        """Not, of one bit."""
        return self.apply("xor", wire, self.constant(1, 1))

    def mux(self, condition: Wire, then: Wire, other: Wire) -> Wire:
        """`then` where the condition holds."""
        assert then.bits == other.bits, (then, other)
        if then == other:
            return then
        text = f"comb.mux {condition.name}, {then.name}, {other.name} : i{then.bits}"
        if text not in self._made:
            is_small = self._is_known(then) or self._is_known(other)
            self.tally.logic(then.bits / 2 if is_small else then.bits)
        return self.wire(text, then.bits)

    def extract(self, wire: Wire, low: int, bits: int) -> Wire:
        """Some of the bits."""
        if low == 0 and bits == wire.bits:
            return wire
        return self.wire(f"comb.extract {wire.name} from {low} : (i{wire.bits}) -> i{bits}", bits)

    def concat(self, wires: Sequence[Wire]) -> Wire:
        """The first operand in the lowest bits."""
        if len(wires) == 1:
            return wires[0]
        high_first = list(reversed(wires))
        names = ", ".join(wire.name for wire in high_first)
        types = ", ".join(f"i{wire.bits}" for wire in high_first)
        return self.wire(f"comb.concat {names} : {types}", sum(wire.bits for wire in wires))

    def resize(self, wire: Wire, bits: int) -> Wire:
        """Extended by the sign, or cut."""
        if bits <= wire.bits:
            return self.extract(wire, 0, bits)
        sign = self.extract(wire, wire.bits - 1, 1)
        missing = bits - wire.bits
        signs = self.wire(f"comb.replicate {sign.name} : (i1) -> i{missing}", missing)
        made = self.concat([wire, signs])
        self._origin[made.name] = self._origin.get(wire.name, wire.name)
        return made

    def choose(self, index: Wire, choices: Sequence[Wire]) -> Wire:
        """The choice of this number; all have one width."""
        if all(choice == choices[0] for choice in choices):
            return choices[0]
        bits = choices[0].bits
        kind = f"!hw.array<{len(choices)}xi{bits}>"
        array = self.name_for("a")
        names = ", ".join(choice.name for choice in reversed(choices))
        self.tally.logic(bits * -(-(len(choices) - 1) // 3))
        self.line(f"{array} = hw.array_create {names} : i{bits}")
        return self.wire(f"hw.array_get {array}[{index.name}] : {kind}, i{index.bits}", bits)

    def register(
        self, value: Wire, enable: Wire | None = None, *, reset: int | None = None
    ) -> Wire:
        """What `value` was in the cycle before, or when `enable` last was 1."""
        name = self.name_for("r")
        self.define_register(Wire(name, value.bits), value, enable, reset=reset)
        return Wire(name, value.bits)

    def define_register(
        self, wire: Wire, value: Wire, enable: Wire | None = None, *, reset: int | None = None
    ) -> None:
        """A register under a name that may have been used before, for loops."""
        plain = enable is None and reset is None
        self.tally.register(wire.name, value.name, wire.bits, plain=plain)
        op = "seq.compreg" if enable is None else "seq.compreg.ce"
        at = "" if enable is None else f", {enable.name}"
        start = "" if reset is None else f" reset %rst, {self.constant(reset, wire.bits).name}"
        self.line(f"{wire.name} = {op} {value.name}, %clk{at}{start} : i{wire.bits}")

    def later(self, wire: Wire, cycles: int, *, reset: int | None = None) -> Wire:
        """What a wire was so many cycles ago."""
        for _ in range(cycles):
            key = f"register {wire.name} {reset}"
            if key not in self._made:
                self._made[key] = self.register(wire, reset=reset)
            wire = self._made[key]
        return wire

    def memory(self, depth: int, read: Wire, write: Wire, data: Wire, enable: Wire) -> Wire:
        """A memory with one port of each kind; it gives what is at `read` a cycle later.

        Nobody reads what is written in the same cycle.
        """
        self.tally.memory(depth, data.bits, at_once=False)
        name, value = self.name_for("m"), self.name_for("q")
        kind = f"<{depth} x {data.bits}>"
        self.line(f"{name} = seq.firmem 1, 1, undefined, undefined : {kind}")
        self.line(f"{value} = seq.firmem.read_port {name}[{read.name}], clock %clk : {kind}")
        self.line(
            f"seq.firmem.write_port {name}[{write.name}] = {data.name}, clock %clk "
            f"enable {enable.name} : {kind}"
        )
        return Wire(value, data.bits)

    def register_file(self, depth: int, read: Wire, write: Wire, data: Wire, enable: Wire) -> Wire:
        """Like `memory`, but what is at `read` is there in the same cycle."""
        self.tally.memory(depth, data.bits, at_once=True)
        name, value = self.name_for("f"), self.name_for("q")
        kind = f"!seq.hlmem<{depth}xi{data.bits}>"
        always = self.constant(1, 1)
        self.line(f"{name} = seq.hlmem @{name[1:]} %clk, %rst : {kind[10:]}")
        self.line(
            f"{value} = seq.read {name}[{read.name}] rden {always.name} "
            f"{{latency = 0 : i64}} : {kind}"
        )
        self.line(
            f"seq.write {name}[{write.name}] {data.name} wren {enable.name} "
            f"{{latency = 1 : i64}} : {kind}"
        )
        return Wire(value, data.bits)

    def counter(self, end: int, step: Wire, name: str) -> tuple[Wire, Wire]:
        """Counts steps from 0 to `end` - 1 and again; its value, and whether it is the last."""
        bits = index_bits(end)
        if end == 1:
            return self.constant(0, bits), self.constant(1, 1)
        value = Wire(self.name_for(name), bits)
        last = self.equals(value, end - 1)
        more = self.apply("add", value, self.constant(1, bits))
        self.define_register(value, self.mux(last, self.constant(0, bits), more), step, reset=0)
        return value, last


def index_bits(count: int) -> int:
    """Of unsigned numbers below `count`."""
    return max(1, (count - 1).bit_length())


def _zeros(value: int) -> int:
    """Low bits of a number that are 0; none of 0 itself."""
    return max((value & -value).bit_length() - 1, 0)


def factor_bits(value: int, bits: int) -> int:
    """Of a known signed number of so many bits without its powers of two; 0 if it needs no product.

    `value` is modulo 2^bits.
    """
    value %= 1 << bits
    if value & (value - 1) == 0 and not value >> (bits - 1):
        return 0
    odd = odd_factor(value, bits)
    return (odd if odd >= 0 else ~odd).bit_length() + 1


def odd_factor(value: int, bits: int) -> int:
    """A signed number of so many bits, given modulo 2^bits, without its powers of two."""
    value %= 1 << bits
    return (value - (value >> (bits - 1) << bits)) >> _zeros(value)
