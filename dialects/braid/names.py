"""Stable names of ops: `braid.name`, which survives rewriting.

An op carries the names of every op of the original model that it stands for, so that a profile,
a report or an error can speak of the model's own layers after any number of rewrites. One name
is a string attribute, several are an array of them.
"""

from collections.abc import Iterable
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import Attribute, Operation

from braid.dialects.braid.attribute_names import NAME
from braid.dialects.braid.clusters import union_placements


def names_of(op: Operation) -> tuple[str, ...]:
    """The stable names of `op`, without duplicates, in order; empty where it has none."""
    attribute = op.attributes.get(NAME)
    if isinstance(attribute, StringAttr):
        return (attribute.data,)
    if isinstance(attribute, ArrayAttr):
        elements = cast(ArrayAttr[Attribute], attribute).data
        return tuple(element.data for element in elements if isinstance(element, StringAttr))
    return ()


def set_names(op: Operation, names: Iterable[str]) -> None:
    """Make `names`, without duplicates, the stable names of `op`."""
    unique = [StringAttr(name) for name in dict.fromkeys(names)]
    if not unique:
        op.attributes.pop(NAME, None)
    elif len(unique) == 1:
        op.attributes[NAME] = unique[0]
    else:
        op.attributes[NAME] = ArrayAttr(unique)


def union_names(into: Operation, *replaced: Operation) -> None:
    """Add the names of the ops that `into` replaces to its own, which come first.

    What is computed at run time is also where they are (see `clusters`). Raises ValueError for
    ops of different clusters.
    """
    if into.operands:
        union_placements(into, *replaced)
    if any(NAME in op.attributes for op in replaced):
        set_names(into, [name for op in (into, *replaced) for name in names_of(op)])
