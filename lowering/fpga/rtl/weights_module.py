"""The module that reads weights from memory: requests of bursts ahead, and a buffer for answers."""

from dataclasses import dataclass

from braid.dialects.braid_hls.design import stream_of
from braid.dialects.braid_hls.weights import WeightsOp
from braid.lowering.fpga.rtl.channel_module import places
from braid.lowering.fpga.rtl.hardware import HardwareModule, Wire, index_bits

ADDRESS_BITS = 64
_INCREMENTING, _BUFFERABLE = 1, 3
"""`ARBURST`, and `ARCACHE` of what may be put together on its way."""


@dataclass(frozen=True)
class MemoryPort:
    """A read channel of AXI4, number `number`, with data of this many bits."""

    number: int
    bits: int

    @property
    def inputs(self) -> list[tuple[str, int]]:
        """Ports of a design that go in, with their bits."""
        own = [("arready", 1), ("rdata", self.bits), ("rvalid", 1)]
        return [(f"weights{self.number}_base", ADDRESS_BITS), *self._named(own)]

    @property
    def outputs(self) -> list[tuple[str, int]]:
        """Ports of a design that go out, with their bits."""
        own = [
            ("araddr", ADDRESS_BITS),
            ("arlen", 8),
            ("arsize", 3),
            ("arburst", 2),
            ("arcache", 4),
            ("arprot", 3),
            ("arvalid", 1),
            ("rready", 1),
        ]
        return self._named(own)

    def _named(self, ports: list[tuple[str, int]]) -> list[tuple[str, int]]:
        return [(f"m_axi{self.number}_{name}", bits) for name, bits in ports]


def weights_module(name: str, op: WeightsOp) -> HardwareModule:
    """Return a module with the ports of `MemoryPort` without its number, and `take`, `valid`,
    `row`.

    `base` is where the first word is, at an address that 4096 divides; it has to stay. A request is
    made as soon as its burst fits; the requested data is taken whenever it comes. Errors that a
    memory reports, and its last words, are ignored.
    """
    module = HardwareModule(name)
    base, accepts = module.input("base", ADDRESS_BITS), module.input("arready", 1)
    data, comes = module.input("rdata", op.port.value.data), module.input("rvalid", 1)
    take = module.input("take", 1)
    freed = _ends_burst(module, op, take)
    asked = Wire("%asked", 1)
    bursts = op.bursts.value.data
    taken = places(module, "bursts", bursts, asked, freed)
    has_room = module.compare("ne", taken, module.constant(bursts, taken.bits))
    # Nothing is asked for while the reset is on.
    asks = module.apply("and", has_room, module.invert(Wire("%rst", 1)))
    module.define(asked, "and", asks, accepts)
    _request(module, op, base, asked, asks)
    module.output("rready", module.constant(1, 1))
    _buffer(module, op, data, comes, take)
    return module


def _ends_burst(module: HardwareModule, op: WeightsOp, take: Wire) -> Wire:
    """Return whether a word is taken that is the last of its burst."""
    word, last = module.counter(op.words, take, "word")
    burst = op.burst.value.data
    if burst == 1:
        return take
    if op.words <= burst:
        return module.apply("and", take, last)
    low = module.extract(word, 0, index_bits(burst))
    ends = module.apply("or", last, module.equals(low, burst - 1))
    return module.apply("and", take, ends)


def _request(module: HardwareModule, op: WeightsOp, base: Wire, asked: Wire, asks: Wire) -> None:
    """Define the address and the length of the next burst."""
    burst, width = op.burst.value.data, op.port.value.data // 8
    count = -(-op.words // burst)
    number, is_last = module.counter(count, asked, "burst")
    size = (burst * width).bit_length() - 1
    offset = module.concat(
        [
            module.constant(0, size),
            number,
            module.constant(0, ADDRESS_BITS - size - number.bits),
        ]
    )
    last = module.constant((op.words - 1) % burst, 8)
    module.output("araddr", module.apply("add", base, offset))
    module.output("arlen", module.mux(is_last, last, module.constant(burst - 1, 8)))
    module.output("arsize", module.constant(width.bit_length() - 1, 3))
    module.output("arburst", module.constant(_INCREMENTING, 2))
    module.output("arcache", module.constant(_BUFFERABLE, 4))
    module.output("arprot", module.constant(0, 3))
    module.output("arvalid", asks)


def _buffer(module: HardwareModule, op: WeightsOp, data: Wire, comes: Wire, take: Wire) -> None:
    """Buffer rows in the order in which they come: requests are answered in theirs."""
    row = module.extract(data, 0, stream_of(op.output).bits)
    stored = places(module, "stored", op.places, comes, take)
    if op.places == 1:
        head = module.register(row, comes)
    else:
        where, _ = module.counter(op.places, comes, "tail")
        front, _ = module.counter(op.places, take, "front")
        head = module.register_file(op.places, front, where, row, comes)
    module.output("valid", module.compare("ne", stored, module.constant(0, stored.bits)))
    module.output("row", head)


def memory_words(op: WeightsOp) -> list[int]:
    """Return the contents of memory, word by word, the first lane of a row lowest."""
    bits = stream_of(op.output).element.width.data
    mask = (1 << bits) - 1
    words: list[int] = []
    for row in op.rows.tolist():
        word = 0
        for lane, number in enumerate(row):
            word |= (number & mask) << lane * bits
        words.append(word)
    return words
