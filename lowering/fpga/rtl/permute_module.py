"""The module that permutes an image: control, the banks of a memory, its lanes."""

from collections.abc import Sequence

import numpy as np

from braid.dialects.braid_hls.design import stream_of
from braid.dialects.braid_hls.permute import PERMUTE_LATENCY, PermuteOp
from braid.lowering.fpga.design.memory_reads import memory_reads
from braid.lowering.fpga.rtl.channel_module import places
from braid.lowering.fpga.rtl.hardware import HardwareModule, Wire, index_bits
from braid.lowering.fpga.rtl.sequence import Sequences
from braid.solvers.hls.banks import Integers


def permute_module(name: str, op: PermuteOp) -> HardwareModule:
    """Return the module, with the ports of a stage's.

    An image is written when one of the places is free, and read when it is all there.
    """
    module = HardwareModule(name)
    valid, data = module.input("valid0", 1), module.input("data0", stream_of(op.input).bits)
    room = module.input("room", 1)
    fill, drain = Wire("%fill", 1), Wire("%drain", 1)
    banks, images = op.banks.value.data, op.images.value.data
    deep = -(-op.words // banks)

    word, last_word = module.counter(op.words, fill, "word")
    one_pass, last_pass = module.counter(op.ii.value.data, drain, "pass")
    beat, last_beat = module.counter(op.beats, module.apply("and", drain, last_pass), "beat")
    first_word = module.equals(word, 0)
    first = module.apply("and", module.equals(one_pass, 0), module.equals(beat, 0))
    last = module.apply("and", last_pass, last_beat)
    begun, ended = module.apply("and", fill, first_word), module.apply("and", drain, last)
    taken = places(module, "taken", images, begun, ended)
    started = module.apply("and", drain, first)
    whole = places(module, "whole", images, module.apply("and", fill, last_word), started)
    is_free = module.compare("ne", taken, module.constant(images, taken.bits))
    may_begin = module.apply("or", module.invert(first_word), is_free)
    module.define(fill, "and", valid, may_begin)
    is_there = module.compare("ne", whole, module.constant(0, whole.bits))
    there = module.apply("or", module.invert(first), is_there)
    free = module.apply("or", module.invert(last_pass), room)
    module.define(drain, "and", there, free)

    group = _group(module, op, _Memory(module, op, data, fill, deep), drain)
    _outputs(module, op, fill, module.apply("and", drain, last_pass), drain, group)
    return module


class _Memory:
    """Banks of words: an image after the other in each."""

    def __init__(
        self, module: HardwareModule, op: PermuteOp, data: Wire, fill: Wire, deep: int
    ) -> None:
        banks, images = op.banks.value.data, op.images.value.data
        self.module, self.data, self.deep, self.images = module, data, deep, images
        self.size = deep * images
        written = Sequences(module, fill)
        words = np.arange(op.words)
        own = words[None] // banks + np.arange(images)[:, None] * deep
        self.address = written.wire(own.ravel(), index_bits(self.size))
        bank = written.wire(words % banks, index_bits(banks))
        self.enables = [
            module.apply("and", fill, module.equals(bank, one)) if banks > 1 else fill
            for one in range(banks)
        ]

    def read(self, bank: int, address: Wire) -> Wire:
        """Return the word at an address, a cycle later."""
        return self.module.memory(self.size, address, self.address, self.data, self.enables[bank])


def _group(module: HardwareModule, op: PermuteOp, memory: _Memory, drain: Wire) -> Wire:
    """Return the lanes that a pass gives, in cycle `PERMUTE_LATENCY`."""
    reads = memory_reads(op)
    sequences = Sequences(module, drain)
    places_of = np.arange(memory.images)[:, None] * memory.deep
    words: list[Wire] = []
    for bank, own in enumerate(reads.addresses.T):
        addresses = (own[None] + places_of).ravel()
        words.append(memory.read(bank, sequences.wire(addresses, index_bits(memory.size))))
    width = stream_of(op.input).element.width.data
    lanes: list[Wire] = []
    for banks, numbers in zip(reads.banks.T, reads.lanes.T, strict=True):
        choices, which = _numbered(banks, numbers)
        wires = [module.extract(words[bank], lane * width, width) for bank, lane in choices]
        if len(wires) > 1:
            index = module.later(sequences.wire(which, index_bits(len(wires))), 1)
            wires = [module.choose(index, wires)]
        lanes.append(module.later(wires[0], 1))
    return module.concat(lanes)


def _numbered(banks: Integers, lanes: Integers) -> tuple[Sequence[tuple[int, int]], Integers]:
    """Return the pairs that occur, and the index of each pass's pair."""
    pairs, which = np.unique(np.stack([banks, lanes], axis=1), axis=0, return_inverse=True)
    return [(int(bank), int(lane)) for bank, lane in pairs], which.ravel()


def _outputs(
    module: HardwareModule, op: PermuteOp, take: Wire, writes: Wire, drain: Wire, group: Wire
) -> None:
    """Gather the passes of a beat."""
    held: list[Wire] = []
    given = module.later(drain, PERMUTE_LATENCY, reset=0)
    newest = group
    for _ in range(op.ii.value.data - 1):
        newest = module.register(newest, given)
        held.insert(0, newest)
    module.output("take", take)
    module.output("reserve", writes)
    module.output("write", module.later(writes, PERMUTE_LATENCY, reset=0))
    module.output("result", module.concat([*held, group]))
