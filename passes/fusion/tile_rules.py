"""Rules for groups that are computed tile by tile: which tensors may exist as tiles only."""

from dataclasses import dataclass


@dataclass(frozen=True)
class TileRule:
    """For a producer and a consumer: from how many bytes of the tensor between them on …

    … the producer may join the consumer's group (`joins`), and such a tensor is reason enough
    for a group (`starts`, None if it never is). Behind a `last` producer nothing joins.
    """

    joins: int
    starts: int | None
    last: bool


NEVER = TileRule(joins=1 << 62, starts=None, last=False)
"""For pairs that no rule names."""
