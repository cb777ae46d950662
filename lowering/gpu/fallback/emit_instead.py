"""The kernel of a group whose family cannot make the kernel that it has offered."""

from braid.analysis.diagnostics.locations import source_location
from braid.dialects.braid.regions import FusedOp
from braid.lowering.gpu.fallback.emit_fallback import emit_fallback
from braid.lowering.gpu.launch.gpu_kernel import GpuKernel
from braid.support.diagnostics import Diagnostic, emit


def emit_instead(group: FusedOp, symbol: str, lacks: str) -> GpuKernel:
    """Return the generic kernel of a group whose code differs from what a family expects.

    Warns as `warn_of_another`. Raises as `emit_fallback`.
    """
    warn_of_another("generic", group, symbol, lacks)
    return emit_fallback(group, symbol)


def warn_of_another(kind: str, group: FusedOp, symbol: str, lacks: str) -> None:
    """Warn that a group gets a kernel of this kind, and decisions went by the one of a family.

    `lacks` names the part that the family did not find in the group's code.
    """
    emit(
        Diagnostic(
            "warning",
            f"'{symbol}' gets the {kind} kernel: its code has no {lacks}, as the family that was "
            "chosen for it expects",
            source_location(group),
            hint="it is slower than was predicted; please report the model",
        )
    )
