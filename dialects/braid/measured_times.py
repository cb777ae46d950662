"""Times of a profile on ops: to which ops of the model they belong, and how rewrites keep them.

Ops that were measured as one kernel all carry its time, with the names of all of them in
`braid.measured_with`. A group with all of these ops takes that time; a subset takes an unknown part
of it.
"""

from collections.abc import Iterable, Sequence
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, FloatAttr, StringAttr, f64
from xdsl.ir import Attribute, Operation

from braid.dialects.braid.attribute_names import LAYOUT_SECONDS, MEASURED_WITH, SECONDS
from braid.dialects.braid.names import names_of


def measured_names(op: Operation) -> frozenset[str]:
    """Return the names of the ops that ran together when the times of `op` were measured."""
    attribute = op.attributes.get(MEASURED_WITH)
    if not isinstance(attribute, ArrayAttr):
        return frozenset(names_of(op))
    elements = cast("ArrayAttr[Attribute]", attribute).data
    return frozenset(each.data for each in elements if isinstance(each, StringAttr))


def set_measured(op: Operation, names: Iterable[str]) -> None:
    """Record that the times of `op` belong to the ops with these names."""
    names = dict.fromkeys(names)
    if names.keys() <= set(names_of(op)):
        op.attributes.pop(MEASURED_WITH, None)
    else:
        op.attributes[MEASURED_WITH] = ArrayAttr([StringAttr(name) for name in names])


def was_measured(op: Operation) -> bool:
    """Return whether `op` has times, and stands for all ops whose they are."""
    return SECONDS in op.attributes and measured_names(op) <= set(names_of(op))


def drop_measured(op: Operation) -> None:
    """Remove measured times from `op`, which now does something else."""
    for name in (SECONDS, LAYOUT_SECONDS, MEASURED_WITH):
        op.attributes.pop(name, None)


def sum_measured(into: Operation, members: Sequence[Operation]) -> None:
    """Give `into`, which has the names of its `members`, their times: each kernel's once.

    It gets none where a member with a name was not measured, or where a kernel did more than the
    members do together. Members without names came by rewriting, as parts of the others. Times by
    layout are those of a kernel as a whole, and do not add up.
    """
    kernels: dict[frozenset[str], Operation] = {}
    for op in members:
        if names_of(op):
            kernels.setdefault(measured_names(op), op)
            if SECONDS not in op.attributes:
                return
    together = {name for op in members for name in names_of(op)}
    if not kernels or not frozenset[str]().union(*kernels) <= together:
        return
    if len(kernels) == 1:
        (only,) = kernels.values()
        for name in (SECONDS, LAYOUT_SECONDS):
            if name in only.attributes:
                into.attributes[name] = only.attributes[name]
        return
    times = [cast(FloatAttr, op.attributes[SECONDS]).value.data for op in kernels.values()]
    into.attributes[SECONDS] = FloatAttr(sum(times), f64)
