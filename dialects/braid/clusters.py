"""Where ops run: `braid.device` and `braid.cluster`, and how rewriting carries them.

From `select-clusters` until `apply-clusters`, every op that is computed at run time has both. An
op that replaces others gets theirs (`names.union_names`); parameters and constants have none,
since each cluster that reads one gets a copy.
"""

from dataclasses import dataclass

from xdsl.dialects.builtin import IntegerAttr, StringAttr, i64
from xdsl.ir import Operation

from braid.dialects.braid.attribute_names import CLUSTER, DEVICE


@dataclass(frozen=True, order=True)
class Placement:
    """The cluster of an op, and the device that it runs on."""

    cluster: int
    device: str


def device_name(op: Operation) -> str | None:
    """The device that `op`, or the function `op`, is for; None where it does not say."""
    device = op.attributes.get(DEVICE)
    return device.data if isinstance(device, StringAttr) else None


def placement_of(op: Operation) -> Placement | None:
    """Where `op` runs; None for an op without a cluster or a device."""
    cluster, device = op.attributes.get(CLUSTER), device_name(op)
    if not isinstance(cluster, IntegerAttr) or device is None:
        return None
    return Placement(cluster.value.data, device)


def set_placement(op: Operation, placement: Placement) -> None:
    """Makes `op` one of the cluster."""
    op.attributes[CLUSTER] = IntegerAttr(placement.cluster, i64)
    op.attributes[DEVICE] = StringAttr(placement.device)


def clear_placement(op: Operation) -> None:
    """Removes cluster and device."""
    op.attributes.pop(CLUSTER, None)
    op.attributes.pop(DEVICE, None)


def run_together(*ops: Operation) -> bool:
    """Whether no two of `ops` are in different clusters; those without one are with any."""
    return len({op.attributes[CLUSTER] for op in ops if CLUSTER in op.attributes}) <= 1


def union_placements(into: Operation, *replaced: Operation) -> None:
    """Gives a new op, `into`, the cluster of the ops that it replaces.

    An op that was there before stays where it is, as where an op is folded to one of its operands.
    Raises ValueError where those replaced are in different clusters: no op is part of two.
    """
    if placement_of(into) is not None:
        return
    placements = {p for op in replaced if (p := placement_of(op)) is not None}
    if len(placements) > 1:
        names = " and ".join(f"{p.cluster} on {p.device}" for p in sorted(placements))
        raise ValueError(f"'{into.name}' would be in clusters {names}")
    for placement in placements:
        set_placement(into, placement)
