"""Parts of a dim, and what a part of an op's result needs of its operands."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field

from xdsl.ir import Attribute


@dataclass(frozen=True)
class Part:
    """Elements `start` to `start + size` of dim `dim` of a tensor."""

    dim: int
    start: int
    size: int


@dataclass(frozen=True)
class Tile:
    """A part of an op: the part of each operand (others are needed whole), changed attributes.

    `computed` is the part of the result that the op makes, where that is more than is wanted.
    """

    operands: Mapping[int, Part]
    attributes: Mapping[str, Attribute] = field(default_factory=dict[str, Attribute])
    computed: Part | None = None


def parts_of(dim: int, extent: int, count: int, unit: int = 1) -> list[Part]:
    """`count` parts of a dim whose sizes differ by at most one `unit`, of which extent is made.

    Twice as many parts are the halves of these parts, and so for every multiple.
    """
    units = extent // unit
    cuts = [-(-index * units // count) * unit for index in range(count + 1)]
    return [Part(dim, begin, end - begin) for begin, end in itertools.pairwise(cuts)]
