"""The module around a design that starts it for one image and reports its end."""

from collections.abc import Sequence
from dataclasses import dataclass

from braid.lowering.fpga.rtl.hardware import HardwareModule, Wire, index_bits
from braid.lowering.fpga.rtl.ports import StreamPort
from braid.lowering.fpga.rtl.weights_module import MemoryPort

SUFFIX = "_control"
"""The suffix of the name of the module, after the design's."""


@dataclass(frozen=True)
class Counted:
    """A port, and how many beats of an image go through it."""

    port: StreamPort
    beats: int


def control_module(
    top: str,
    inputs: Sequence[Counted],
    outputs: Sequence[Counted],
    memories: Sequence[MemoryPort] = (),
) -> str:
    """Return `{top}_control`: the streams of the design `top`, controlled by the signals of
    `ap_ctrl_hs`.

    `ap_start` is held until `ap_ready`, which comes with `ap_done` in the cycle in which the image
    has left; `ap_idle` says that none is under way. Beats wait outside until it has begun. Ports to
    memories are those of the design, which reads ahead.
    """
    module = HardwareModule(f"{top}{SUFFIX}")
    start, busy = module.input("ap_start", 1), Wire("%busy", 1)
    done = Wire("%done", 1)
    ports: list[str] = []
    complete: list[Wire] = []
    for one in inputs:
        ports += _input(module, one, busy, done, complete)
    for one in outputs:
        ports += _output(module, one, done, complete)
    results = [f"s{one.port.number}_tready: i1" for one in inputs]
    names = [f"%ready{one.port.number}" for one in inputs]
    for one in outputs:
        i = one.port.number
        results += [f"m{i}_tdata: i{one.port.bits}", f"m{i}_tvalid: i1"]
        names += [f"%data{i}", f"%valid{i}"]
    for memory in memories:
        ports += [
            f"{name}: {module.input(name, bits).name}: i{bits}" for name, bits in memory.inputs
        ]
        for name, bits in memory.outputs:
            module.output(name, Wire(f"%{name}", bits))
            results.append(f"{name}: i{bits}")
            names.append(f"%{name}")
    module.line(
        f'{", ".join(names)} = hw.instance "design" @{top}(clk: %clk: !seq.clock, rst: %rst: i1, '
        f"{', '.join(ports)}) -> ({', '.join(results)})"
    )
    module.define(done, "and", busy, *complete)
    begun = module.apply("or", busy, start)
    running = module.apply("and", begun, module.invert(done))
    module.define_register(busy, running, reset=0)
    module.output("ap_done", done)
    module.output("ap_ready", done)
    module.output("ap_idle", module.invert(busy))
    return module.text()


def _input(
    module: HardwareModule, one: Counted, busy: Wire, done: Wire, complete: list[Wire]
) -> list[str]:
    i = one.port.number
    data = module.input(f"s{i}_tdata", one.port.bits)
    valid = module.input(f"s{i}_tvalid", 1)
    count, full = _count(module, f"read{i}", one.beats)
    is_open = module.apply("and", busy, module.invert(full))
    given = module.apply("and", valid, is_open)
    ready = module.apply("and", Wire(f"%ready{i}", 1), is_open)
    module.output(f"s{i}_tready", ready)
    _define(module, count, module.apply("and", given, ready), done)
    complete.append(full)
    return [f"s{i}_tdata: {data.name}: i{one.port.bits}", f"s{i}_tvalid: {given.name}: i1"]


def _output(module: HardwareModule, one: Counted, done: Wire, complete: list[Wire]) -> list[str]:
    i = one.port.number
    ready = module.input(f"m{i}_tready", 1)
    count, full = _count(module, f"written{i}", one.beats)
    module.output(f"m{i}_tdata", Wire(f"%data{i}", one.port.bits))
    module.output(f"m{i}_tvalid", Wire(f"%valid{i}", 1))
    _define(module, count, module.apply("and", Wire(f"%valid{i}", 1), ready), done)
    complete.append(full)
    return [f"m{i}_tready: {ready.name}: i1"]


def _count(module: HardwareModule, name: str, beats: int) -> tuple[Wire, Wire]:
    """Return a counter that is defined later, and whether it is at its end."""
    count = Wire(f"%{name}", index_bits(beats + 1))
    return count, module.equals(count, beats)


def _define(module: HardwareModule, count: Wire, step: Wire, done: Wire) -> None:
    """Count steps, from 0 again when all is done."""
    more = module.apply("add", count, module.constant(1, count.bits))
    value = module.mux(done, module.constant(0, count.bits), more)
    module.define_register(count, value, module.apply("or", done, step), reset=0)
