"""Rules for groups that are computed tile by tile: which tensors may exist as tiles only."""

from dataclasses import dataclass


@dataclass(frozen=True)
class TileRule:
    """From which size of the tensor between a producer and a consumer on they are computed by
    tiles.

    From `joins` bytes on the producer may join the consumer's group, and from `starts` bytes on
    such a tensor is reason enough for a group (None if it never is). Before a `last` producer
    nothing joins.
    """

    joins: int
    starts: int | None
    last: bool


NEVER = TileRule(joins=1 << 62, starts=None, last=False)
"""The rule for pairs that no rule names."""
