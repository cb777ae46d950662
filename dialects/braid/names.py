"""Stable names of ops: `braid.name`, which survives rewriting.

An op carries the names of every op of the original model that it stands for, so that a profile, a
report or an error can speak of the model's own layers after any number of rewrites. A single name
is a string attribute, several names are an array.
"""

from collections.abc import Iterable
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, StringAttr, UnknownLoc
from xdsl.ir import Attribute, Operation, SSAValue

from braid.dialects.braid.attribute_names import NAME
from braid.dialects.braid.clusters import run_together, union_placements


def names_of(op: Operation) -> tuple[str, ...]:
    """Return the stable names of `op`, without duplicates, in order; empty where it has none."""
    attribute = op.attributes.get(NAME)
    if isinstance(attribute, StringAttr):
        return (attribute.data,)
    if isinstance(attribute, ArrayAttr):
        elements = cast("ArrayAttr[Attribute]", attribute).data
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

    A value computed at run time also gets their cluster (see `clusters`). Raises ValueError for ops
    of different clusters, including `into`.
    """
    if into.operands:
        union_placements(into, *replaced)
    if any(NAME in op.attributes for op in replaced):
        set_names(into, [name for op in (into, *replaced) for name in names_of(op)])


def derive_names(new: Operation, source: Operation, what: str) -> None:
    """Name `new`, which does a part of the work of `source` and runs where that does, after it."""
    union_placements(new, source)
    set_names(new, [f"{name}/{what}" for name in names_of(source)])


def may_stand_for(values: Iterable[SSAValue | None], op: Operation) -> bool:
    """Return whether `values` can replace the results of `op` without loss of its names.

    They cannot where an op makes one that runs elsewhere: it has no part in the cluster of `op`.
    """
    makers = (value.owner for value in values if value is not None)
    return all(
        run_together(maker, op)
        for maker in makers
        if isinstance(maker, Operation) and maker.operands
    )


def inherit_names(
    op: Operation, values: Iterable[SSAValue | None], inserted: Iterable[Operation] = ()
) -> None:
    """Give the names of `op` to all ops that make `values`, by which it is replaced.

    The `inserted` ops get its cluster, and its location unless they have one. An op that was there
    before and runs elsewhere does not get the names.
    """
    for new in inserted:
        if new.operands:
            union_placements(new, op)
        if isinstance(new.location, UnknownLoc):
            new.location = op.location
    for maker in dict.fromkeys(value.owner for value in values if value is not None):
        if isinstance(maker, Operation) and may_stand_for(maker.results, op):
            union_names(maker, op)
            if isinstance(maker.location, UnknownLoc):
                maker.location = op.location
