"""Assign a block's threads to copies or products, as CUTLASS's warp-specialized kernels do."""

from collections.abc import Callable, Sequence

from braid.lowering.gpu.contraction.code import Code, Value
from braid.lowering.gpu.kernels.hopper.instructions import WARPGROUP, prefetch_map


def emit_roles(
    code: Code,
    groups: int,
    maps: Sequence[Value],
    initialize: Callable[[Code], None],
    copy: Callable[[Code, Value], None],
    multiply: Callable[[Code, Value, Value], None],
) -> None:
    """Let `groups` groups of 128 threads multiply, and one more copy.

    Before, one thread fetches the tensor maps and `initialize`s mbarriers. `copy` takes the thread,
    `multiply` the thread and its group.
    """
    thread = code.thread()

    def start(own: Code) -> None:
        for map in maps:
            prefetch_map(own, map)
        initialize(own)

    code.choose(code.equal(thread, 0), start)
    code.barrier()
    group = code.uniform(code.div(thread, WARPGROUP))
    code.choose(
        code.equal(group, groups),
        lambda own: copy(own, thread),
        lambda own: multiply(own, thread, group),
    )
