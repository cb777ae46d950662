"""Locate values and ops in blocks that are nested in each other."""

from collections.abc import Iterator

from xdsl.ir import Block, Operation, SSAValue

from braid.dialects.braid.regions import GroupOp


def parent_block(value: SSAValue) -> Block:
    """Return the block that `value` is an argument of, or in which the op stands that makes it."""
    owner = value.owner
    if isinstance(owner, Block):
        return owner
    assert owner.parent is not None
    return owner.parent


def ops_outside_groups(op: Operation) -> Iterator[Operation]:
    """Yield the ops nested in `op`, outer ones first, except those inside groups."""
    for region in op.regions:
        for block in region.blocks:
            for inner in block.ops:
                yield inner
                if not isinstance(inner, GroupOp):
                    yield from ops_outside_groups(inner)


def blocks_outside_groups(op: Operation) -> Iterator[Block]:
    """Return every block nested in `op`, outermost first, except those inside groups."""
    for region in op.regions:
        for block in region.blocks:
            yield block
            for inner in block.ops:
                if not isinstance(inner, GroupOp):
                    yield from blocks_outside_groups(inner)
