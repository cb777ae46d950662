"""`select-channel-depths`: how many beats each channel of a design holds."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from braid.analysis.diagnostics.remarks import emit_remark
from braid.dialects.braid_hls.design import DesignOp
from braid.lowering.fpga.design.streams import give_depths, network_of
from braid.lowering.fpga.remarks import optimum
from braid.lowering.fpga.schedule.select import check_applied
from braid.solvers.streams.depths import fewest_depths


@dataclass(frozen=True)
class SelectChannelDepthsPass(ModulePass):
    """Writes `depth` on the channels of all designs.

    The depths are those with which images that follow each other end in the same cycle as with
    unbounded channels and go on at the rate of the slowest stage, and none can be lowered alone;
    see `solvers/streams/depths.py`. A remark says how many cycles that is, and how many bits
    channels hold. `trials` limits how often lower depths are tried.

    ```mlir
    %b = braid_hls.channel %a {depth = 12 : i64} : …
    ```
    """

    name = "select-channel-depths"

    trials: int = 200

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Decide for each design."""
        for design in op.ops:
            if isinstance(design, DesignOp):
                check_applied(design)
                self._decide(design)

    def _decide(self, design: DesignOp) -> None:
        network = network_of(design)
        found = fewest_depths(network, trials=self.trials)
        give_depths(design, found.depths)
        bits = sum(
            depth * channel.bits
            for depth, channel in zip(found.depths, network.channels, strict=True)
        )
        proven = "none can be lowered" if found.fewest else "some may be lowered"
        if not found.goes_on:
            proven += ", and later images may wait"
        emit_remark(
            design,
            self.name,
            f"{found.images} images in {found.cycles} cycles, as with unbounded channels; "
            f"{bits} bits in {len(found.depths)} channels, {proven}",
            **optimum(found.cycles),
            bits=bits,
        )
