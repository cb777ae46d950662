"""The module of a channel: places are taken when a write begins, and freed by reads."""

from braid.lowering.fpga.rtl.hardware import HardwareModule, Wire, index_bits


def channel_module(name: str, bits: int, depth: int) -> HardwareModule:
    """Return a channel of `depth` beats of this many bits.

    `reserve` takes a slot, which must be free by `room`; `write` with `data`, a fixed number of
    cycles later, fills it. `valid` says that there is a `head`, which `take` removes.
    """
    module = HardwareModule(name)
    reserve, write = module.input("reserve", 1), module.input("write", 1)
    data, take = module.input("data", bits), module.input("take", 1)
    taken = places(module, "taken", depth, reserve, take)
    stored = places(module, "stored", depth, write, take)
    if depth == 1:
        head = module.register(data, write)
    else:
        where, _ = module.counter(depth, write, "tail")
        front, _ = module.counter(depth, take, "front")
        head = module.register_file(depth, front, where, data, write)
    module.output("room", module.compare("ne", taken, module.constant(depth, taken.bits)))
    module.output("valid", module.compare("ne", stored, module.constant(0, stored.bits)))
    module.output("head", head)
    return module


def places(module: HardwareModule, name: str, depth: int, more: Wire, less: Wire) -> Wire:
    """Return how often `more` was, less how often `less` was: from 0 to `depth`."""
    bits = index_bits(depth + 1)
    value = Wire(module.name_for(name), bits)
    up = module.apply("add", value, module.constant(1, bits))
    down = module.apply("sub", value, module.constant(1, bits))
    changes = module.apply("xor", more, less)
    module.define_register(value, module.mux(more, up, down), changes, reset=0)
    return value
