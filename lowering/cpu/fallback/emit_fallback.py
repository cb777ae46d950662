"""Kernels for groups that no family takes: linalg and upstream's passes."""

from braid.dialects.braid.regions import FusedOp
from braid.targets.kernels.kernel_family import Kernel

VERSION = 5
"""Of this emitter, as the `version` of a family."""


def emit_fallback(group: FusedOp, symbol: str) -> Kernel:
    """A kernel for any group of ops with static shapes, in the layouts of its types.

    Raises as `bufferized_group`.
    """
    # What upstream's passes need takes long to import, and few models have such a group.
    from braid.lowering.common.bufferized_group import bufferized_group
    from braid.lowering.cpu.fallback.buffers import finish_buffers

    return finish_buffers(symbol, bufferized_group(group, symbol), len(group.inputs))
