"""The code of a group's kernel: of the family that `KernelChoice` takes, else the fallback."""

from collections.abc import Sequence

from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.fallback.emit_fallback import emit_fallback
from braid.targets.costs.kernel_choice import KernelChoice
from braid.targets.kernels.kernel_family import Kernel, KernelFamily


def emit_chosen(symbol: str, group: FusedOp, kernels: KernelChoice) -> Kernel:
    """Return the kernel of `group` under this symbol; raises InvalidIRError as `choose` does."""
    chosen = kernels.choose(group)
    if chosen is None:
        return emit_fallback(group, symbol)
    match, schedule = chosen
    return match.emit(symbol, schedule)


def emit_kernel(symbol: str, group: FusedOp, families: Sequence[KernelFamily]) -> Kernel:
    """Emit one group alone, as `emit_chosen` does."""
    return emit_chosen(symbol, group, KernelChoice(families))
