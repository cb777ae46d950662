"""The kernel of a group: by the cheapest family that takes it, else by the fallback."""

from collections.abc import Sequence

from braid.dialects.braid.regions import FusedOp
from braid.lowering.common.kernel_selection import KernelSelection
from braid.lowering.cpu.fallback.emit_fallback import emit_fallback
from braid.targets.kernels.kernel_family import Kernel, KernelFamily


def emit_selected(symbol: str, group: FusedOp, selection: KernelSelection) -> Kernel:
    """The kernel of `group` under this symbol; raises InvalidIRError as `choose` does."""
    chosen = selection.choose(group)
    if chosen is None:
        return emit_fallback(group, symbol)
    match, schedule = chosen
    return match.emit(symbol, schedule)


def emit_kernel(symbol: str, group: FusedOp, families: Sequence[KernelFamily]) -> Kernel:
    """As `emit_selected`, for one group alone."""
    return emit_selected(symbol, group, KernelSelection(families))
