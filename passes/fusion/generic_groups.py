"""Cost comparison of a group computed by generic loops with the kernels of its parts."""

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from math import inf

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation
from xdsl.rewriter import InsertPoint, Rewriter

from braid.dialects.braid.base import shape_of
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.regions import FusedOp
from braid.passes.fusion.fused_group import fused_group
from braid.targets.costs.cost_source import CostSource

Members = Sequence[Operation]


@contextmanager
def trial_group(members: Members) -> Generator[FusedOp]:
    """Insert a group of copies of `members` at the last one; erase it after the block."""
    group, _ = fused_group(members)
    Rewriter.insert_op(group, InsertPoint.before(members[-1]))
    try:
        yield group
    finally:
        Rewriter.erase_op(group)


def is_slower_than_parts(
    members: Members, parts: Callable[[], Iterable[Members]], costs: CostSource
) -> bool:
    """Return whether only generic loops compute `members` as a group, slower than `parts` apart.

    `parts` is called only if no other kernel family supports the group. Each part is one kernel
    with its launch overhead. The result is False for devices without kernel families, for those
    that issue instructions op by op, and for groups with dynamic shapes.
    """
    if len(members) < 2 or not _has_families(members, costs) or is_specialized(members, costs):
        return False
    with trial_group(members) as group:
        if not _has_static_shapes(group):
            return False
        together = _seconds(group, costs, inf)
    apart = 0.0
    for part in parts():
        with trial_group(part) as group:
            apart += _seconds(group, costs, None)
    return apart < together


def specialized_parts(members: Members, costs: CostSource) -> list[list[Operation]]:
    """Split `members`, in program order, greedily into the longest parts that a family supports.

    An op that only generic loops support is a part of its own.
    """
    parts: list[list[Operation]] = []
    for op in members:
        if parts and is_specialized([*parts[-1], op], costs):
            parts[-1].append(op)
        else:
            parts.append([op])
    return parts


def is_specialized(members: Members, costs: CostSource) -> bool:
    """Return whether a family other than the generic loops supports `members` as a group."""
    with trial_group(members) as group:
        return costs.of(group).kernels.matches.is_specialized(group)


def _has_families(members: Members, costs: CostSource) -> bool:
    device = costs.of(members[-1])
    return device.backend.issue is None and bool(device.kernels.matches.families)


def _has_static_shapes(group: FusedOp) -> bool:
    values = (*group.operands, *group.results)
    return all(isinstance(v.type, TensorType) and DYNAMIC not in shape_of(v) for v in values)


def _seconds(group: FusedOp, costs: CostSource, otherwise: float | None) -> float:
    """Return the predicted seconds of a group in its fastest layouts, launch included.

    If no family supports the group, return `otherwise`, or with None the roofline's estimate.
    """
    device = costs.of(group)
    if otherwise is not None and not device.kernels.options(group):
        return otherwise
    return device.launch_seconds + min(cost.seconds for _, cost in device.choices(group))
