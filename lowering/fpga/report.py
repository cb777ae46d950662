"""What a circuit does, and takes of a part, as text."""

from braid.dialects.braid_hls.stage import StageOp
from braid.lowering.fpga.circuit import Circuit
from braid.lowering.fpga.rtl.design_module import resources_of
from braid.lowering.fpga.streams import channels_of
from braid.targets.machines.machine import Machine

_PARTS = (
    ("dsp", "DSP slices"),
    ("bram36", "block RAMs"),
    ("lut", "look-up tables"),
    ("ff", "flip-flops"),
)


def report(circuit: Circuit, machine: Machine) -> str:
    """Stages with their loops, the slowest marked, channels, times, and resources of the part."""
    design = circuit.converted.design
    stages = [op for op in design.body.block.ops if isinstance(op, StageOp)]
    lines = [
        f"{circuit.name}: {circuit.interval} cycles from image to image, {circuit.cycles} of one; "
        f"{circuit.clock / circuit.interval:,.0f} frames per second at {circuit.clock / 1e6:g} MHz",
        "",
        f"{'stage':14}{'outputs':>10}{'folds':>9}{'II':>4}{'latency':>9}{'cycles':>9}",
    ]
    for stage in stages:
        loops = stage.loops
        rows, columns = loops.outputs
        groups, parts = loops.folds
        slowest = "  <- slowest" if loops.iterations == circuit.interval else ""
        lines.append(
            f"{stage.label.data:14}{f'{rows}x{columns}':>10}{f'{groups}x{parts}':>9}"
            f"{stage.ii.value.data:4}{stage.latency.value.data:9}{loops.iterations:9}{slowest}"
        )
    depths = [channel.depth.value.data for channel in channels_of(design)]
    lines += ["", f"{len(depths)} channels of {depths} beats", ""]
    for words, (taken, given) in taken_of(circuit, machine).items():
        lines.append(f"{words:16}{taken:>9,} of {given:>9,.0f} ({taken / given:.1%}), estimated")
    return "\n".join(lines) + "\n"


def taken_of(circuit: Circuit, machine: Machine) -> dict[str, tuple[float, float]]:
    """What a circuit takes of a part, and what that has, by the names of resources."""
    used = resources_of(circuit.converted.design)
    return {words: (getattr(used, name), machine.fact(name)) for name, words in _PARTS}
