"""Kernels for groups that no family takes: linalg and upstream's passes."""

from braid.dialects.braid.regions import FusedOp
from braid.targets.kernels.kernel_family import Kernel

VERSION = 6
"""The version of this emitter, as the `version` of a family."""


def emit_fallback(group: FusedOp, symbol: str) -> Kernel:
    """Return a kernel for any group of ops, in the layouts of its types.

    Open dims have to have sizes. Raises as `bufferized_group` and `emit_open`.
    """
    # Their modules take long to import, and few models have such a group.
    from braid.lowering.cpu.fallback.open_groups.emit_open import emit_open, is_open

    if is_open(group):
        return emit_open(group, symbol)
    from braid.lowering.common.bufferized_group import bufferized_group
    from braid.lowering.cpu.fallback.buffers import finish_buffers

    return finish_buffers(symbol, bufferized_group(group, symbol), len(group.inputs))
