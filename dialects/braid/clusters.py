"""Read and carry the placement of ops: `braid.device` and `braid.cluster`.

From `select-clusters` until `apply-clusters`, every op that is computed at run time has both, and
`braid.replicas` where several devices take turns. An op that replaces others gets their cluster
(`names.union_names`). Parameters and constants have no cluster, since each cluster that reads one
gets a copy.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, FloatAttr, IntegerAttr, StringAttr, f64, i64
from xdsl.ir import Attribute, Operation

from braid.dialects.braid.attribute_names import CLUSTER, DEVICE, REPLICAS, TOLERANCE
from braid.dialects.braid.regions import FusedOp


@dataclass(frozen=True, order=True)
class Placement:
    """The cluster of an op, its device, and the devices that take turns with it."""

    cluster: int
    device: str
    replicas: tuple[str, ...] = ()

    @property
    def devices(self) -> tuple[str, ...]:
        """All devices that it runs on."""
        return (self.device, *self.replicas)

    def __str__(self) -> str:
        return f"{self.cluster} on {' and '.join(self.devices)}"


MARKS = (CLUSTER, DEVICE, REPLICAS)
"""The attributes that say where an op runs."""


def device_name(op: Operation) -> str | None:
    """Return the device that `op`, or the function `op`, is for; None where it does not say."""
    device = op.attributes.get(DEVICE)
    return device.data if isinstance(device, StringAttr) else None


def placement_of(op: Operation) -> Placement | None:
    """Return where `op` runs; None for an op without a cluster or a device."""
    cluster, device = op.attributes.get(CLUSTER), device_name(op)
    if not isinstance(cluster, IntegerAttr) or device is None:
        return None
    return Placement(cluster.value.data, device, replicas_of(op))


def replicas_of(op: Operation) -> tuple[str, ...]:
    """Return the devices that take turns with the device of `op`, or of the function `op`."""
    names = op.attributes.get(REPLICAS)
    if not isinstance(names, ArrayAttr):
        return ()
    return tuple(n.data for n in cast("ArrayAttr[Attribute]", names) if isinstance(n, StringAttr))


def set_device(op: Operation, device: str, replicas: Iterable[str] = ()) -> None:
    """Let `op`, or the function `op`, run on a device, with those that take turns with it."""
    op.attributes[DEVICE] = StringAttr(device)
    op.attributes.pop(REPLICAS, None)
    if others := [StringAttr(name) for name in replicas]:
        op.attributes[REPLICAS] = ArrayAttr(others)


def set_placement(op: Operation, placement: Placement) -> None:
    """Make `op` part of the cluster, and set its devices."""
    op.attributes[CLUSTER] = IntegerAttr(placement.cluster, i64)
    set_device(op, placement.device, placement.replicas)


def tolerance_of(op: Operation) -> float:
    """Return by how much results of `op`, or of the function `op`, may differ; 0 by default."""
    tolerance = op.attributes.get(TOLERANCE)
    return tolerance.value.data if isinstance(tolerance, FloatAttr) else 0.0


def set_tolerance(op: Operation, tolerance: float) -> None:
    """Set the tolerance of `op`, unless it is 0."""
    if tolerance:
        op.attributes[TOLERANCE] = FloatAttr(tolerance, f64)


def clear_placement(op: Operation) -> None:
    """Remove the cluster, the devices and the tolerance from `op`."""
    for name in (*MARKS, TOLERANCE):
        op.attributes.pop(name, None)


def _marks(ops: Iterable[Operation]) -> dict[tuple[Attribute | None, ...], None]:
    """Return the different clusters and devices of those `ops` that have any."""
    found = (tuple(op.attributes.get(name) for name in MARKS) for op in ops)
    return dict.fromkeys(mark for mark in found if any(each is not None for each in mark))


def run_together(*ops: Operation) -> bool:
    """Return whether no two of `ops` are in different clusters or for different devices.

    Ops without a placement may join any cluster.
    """
    return len(_marks(ops)) <= 1


def union_placements(into: Operation, *replaced: Operation) -> None:
    """Give `into` the cluster, the device and the largest tolerance of the ops that it replaces.

    Control flow runs on the host and has no placement. Raises ValueError where these, or `into`,
    are in different clusters: no op is part of two.
    """
    if into.regions and not isinstance(into, FusedOp):
        return
    marks = _marks([into, *replaced])
    if len(marks) > 1:
        names = " and ".join(sorted({str(placement_of(op)) for op in (into, *replaced)}))
        raise ValueError(f"'{into.name}' would be in clusters {names}")
    for mark in marks:
        pairs = zip(MARKS, mark, strict=True)
        into.attributes |= {name: value for name, value in pairs if value is not None}
    set_tolerance(into, max(map(tolerance_of, (into, *replaced))))
