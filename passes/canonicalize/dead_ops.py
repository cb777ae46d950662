"""Erasing ops with unused results."""

from xdsl.ir import Region
from xdsl.pattern_rewriter import PatternRewriterListener
from xdsl.transforms.dead_code_elimination import is_trivially_dead, region_dce


def erase_dead_ops(region: Region, listener: PatternRewriterListener | None = None) -> bool:
    """Erase ops in `region`, and in nested ones, whose results are all unused.

    Returns whether there were any; `listener` is notified of each. A block is walked once, from its
    end: users come before their operands, so that operands are not visited again. If a
    region has several blocks, liveness is propagated between them, which takes longer.
    """
    if len(region.blocks) > 1:
        return region_dce(region, listener)
    has_erased = False
    for block in region.blocks:
        for op in reversed(block.ops):
            if is_trivially_dead(op):
                if listener is not None:
                    listener.handle_operation_removal(op)
                block.erase_op(op)
                has_erased = True
                continue
            for inner in op.regions:
                has_erased |= erase_dead_ops(inner, listener)
    return has_erased
