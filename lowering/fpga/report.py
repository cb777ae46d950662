"""Report as text the performance of a circuit, and its resources on a part."""

from collections.abc import Iterator

import numpy as np

from braid.dialects.braid_hls.design import DesignOp
from braid.dialects.braid_hls.permute import PermuteOp
from braid.dialects.braid_hls.stage import StageOp
from braid.lowering.fpga.circuit import Circuit
from braid.lowering.fpga.design.streams import depths_of, network_of, weights_of, workers_of
from braid.lowering.fpga.rtl.design_module import resources_of
from braid.lowering.fpga.rtl.resources import PARTS
from braid.solvers.streams import earliest, fill_levels
from braid.solvers.streams.depths import IMAGES
from braid.solvers.streams.network import Integers
from braid.targets.machines.machine import Machine

_BARS = " ▁▂▃▄▅▆▇█"
_COLUMNS = 48


def report(circuit: Circuit, machine: Machine) -> str:
    """Return text: stages with their loops, the slowest marked, channels, times, and resources of
    the part.
    """
    design = circuit.converted.design
    lines = [
        f"{circuit.name}: {circuit.interval} cycles from image to image, {circuit.cycles} of one; "
        f"{circuit.clock / circuit.interval:,.0f} frames per second at {circuit.clock / 1e6:g} MHz",
        *_sharing(circuit),
        "",
        f"{'stage':14}{'outputs':>10}{'folds':>9}{'II':>4}{'latency':>9}{'cycles':>9}",
    ]
    for one in workers_of(design):
        slowest = "  <- slowest" if one.iterations == circuit.interval else ""
        lines.append(
            f"{one.label.data:14}{_shape(one)}{one.ii.value.data:4}{one.latency.value.data:9}"
            f"{one.iterations:9}{slowest}"
        )
    lines += ["", *_channels(design), *_memories(design), ""]
    for words, (taken, given) in taken_of(circuit, machine).items():
        lines.append(f"{words:20}{taken:>9,} of {given:>9,.0f} ({taken / given:.1%}), estimated")
    return "\n".join(lines) + "\n"


def _sharing(circuit: Circuit) -> Iterator[str]:
    """Yield what the part's other circuits have to do with it."""
    slowest = circuit.schedule.slowest
    if slowest > circuit.interval:
        yield f"shares the part with a circuit of {slowest} cycles, which follow from its demands"


def _shape(one: StageOp | PermuteOp) -> str:
    """Return outputs and folds; of a permute the beats that leave, and banks and passes."""
    if isinstance(one, PermuteOp):
        return f"{one.beats:10}{f'{one.banks.value.data}x{one.ii.value.data}':>9}"
    (rows, columns), (groups, parts) = one.loops.outputs, one.loops.folds
    return f"{f'{rows}x{columns}':>10}{f'{groups}x{parts}':>9}"


def _channels(design: DesignOp) -> Iterator[str]:
    """Return for each channel how full it is over the time of two successive images."""
    network, depths = network_of(design), depths_of(design)
    times = earliest(network, IMAGES, depths)
    assert times is not None, "the depths were chosen so that it ends"
    over = f"filled over {times.cycles(network)} cycles of {IMAGES} images"
    yield f"{'channel':28}{'depth':>7}{'bits':>7}  {over}"
    names = [process.name for process in network.processes]
    levels = fill_levels(network, times)
    for channel, depth, level in zip(network.channels, depths, levels, strict=True):
        ends = f"{names[channel.writer]} -> {names[channel.reader]}"
        yield f"{ends:28}{depth:7}{channel.bits:7}  {_curve(level, depth)}"


def _memories(design: DesignOp) -> Iterator[str]:
    """Yield the reads from the memory next to the part."""
    found = weights_of(design)
    if found:
        yield ""
        yield f"{'from memory':28}{'words':>7}{'bits':>7}  an image"
    for at, op in enumerate(found):
        image = op.beats * op.port.value.data // 8
        asks = f"bursts of {op.burst.value.data}, {op.bursts.value.data} ahead"
        yield f"{f'weights{at}':28}{op.words:7}{op.port.value.data:7}  {image:,} bytes, {asks}"


def _curve(levels: Integers, depth: int) -> str:
    """Return the most beats of each stretch of time as a bar; full where a beat more has no
    place.
    """
    stretches = np.array_split(levels, min(_COLUMNS, len(levels)))
    most = len(_BARS) - 1
    return "".join(_BARS[-(-int(one.max()) * most // depth)] for one in stretches)


def taken_of(circuit: Circuit, machine: Machine) -> dict[str, tuple[float, float]]:
    """Return the resources of a circuit, and those of the part, by name."""
    used = resources_of(circuit.converted.design)
    taken = {words: (getattr(used, name), machine.fact(name)) for name, words in PARTS}
    if used.memory:
        given = 8 * machine.fact("memory_bandwidth") / machine.fact("clock")
        taken["memory bits a cycle"] = (used.memory, given)
    return taken
