"""Where ops run: `braid.device` and `braid.cluster`, and how rewriting carries them.

From `select-clusters` until `apply-clusters`, every op that is computed at run time has both. An
op that replaces others gets theirs (`names.union_names`); parameters and constants have none,
since each cluster that reads one gets a copy.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.dialects.builtin import IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute, Operation

from braid.dialects.braid.attribute_names import CLUSTER, DEVICE
from braid.dialects.braid.regions import FusedOp


@dataclass(frozen=True, order=True)
class Placement:
    """The cluster of an op, and the device that it runs on."""

    cluster: int
    device: str

    def __str__(self) -> str:
        return f"{self.cluster} on {self.device}"


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


def _marks(ops: Iterable[Operation]) -> dict[tuple[Attribute | None, Attribute | None], None]:
    """Clusters and devices of those that have any of it."""
    found = ((op.attributes.get(CLUSTER), op.attributes.get(DEVICE)) for op in ops)
    return dict.fromkeys(mark for mark in found if mark != (None, None))


def run_together(*ops: Operation) -> bool:
    """Whether no two of `ops` are in different clusters or for different devices.

    Those that say nothing are with any.
    """
    return len(_marks(ops)) <= 1


def union_placements(into: Operation, *replaced: Operation) -> None:
    """Gives `into` the cluster and the device of the ops that it replaces.

    Control flow is the host's, and has none. Raises ValueError where these, or `into`, are in
    different clusters: no op is part of two.
    """
    if into.regions and not isinstance(into, FusedOp):
        return
    marks = _marks([into, *replaced])
    if len(marks) > 1:
        names = " and ".join(sorted({str(placement_of(op)) for op in (into, *replaced)}))
        raise ValueError(f"'{into.name}' would be in clusters {names}")
    for mark in marks:
        pairs = zip((CLUSTER, DEVICE), mark, strict=True)
        into.attributes |= {name: value for name, value in pairs if value is not None}
