"""Parts of a dim, and what a part of an op's result needs of its operands."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from xdsl.ir import Attribute

SPLIT = "braid.split"
"""`array<i64>`: into how many parts each dim of the result is split; entries beyond its rank
are for the reduced dims, in the order of the op's structure."""


@dataclass(frozen=True)
class Part:
    """Elements `start` to `start + size` of dim `dim` of a tensor."""

    dim: int
    start: int
    size: int


@dataclass(frozen=True)
class Tile:
    """A part of an op: the part of each operand (others are needed whole), changed attributes."""

    operands: Mapping[int, Part]
    attributes: Mapping[str, Attribute] = field(default_factory=dict[str, Attribute])


def parts_of(dim: int, extent: int, count: int, unit: int = 1) -> list[Part]:
    """`count` parts of a dim whose sizes differ by at most one `unit`, of which extent is made."""
    whole, rest = divmod(extent // unit, count)
    parts: list[Part] = []
    start = 0
    for index in range(count):
        size = (whole + (index < rest)) * unit
        parts.append(Part(dim, start, size))
        start += size
    return parts
