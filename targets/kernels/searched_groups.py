"""Find the groups that were searched: those with a schedule in this user's record store."""

import hashlib
from collections.abc import Mapping

from braid.dialects.braid.regions import FusedOp
from braid.support.records.record_store import Fields, default_store
from braid.targets.kernels.keys import GroupKey, canonical_kernel_text
from braid.targets.machines.machine import Machine

SCHEDULE_KIND = "schedule"
"""The kind of record that says how a group is best made."""


def body_key(group: FusedOp, machine: Machine) -> str:
    """Return the digest of what `group` computes on `machine`, equal for all layouts."""
    text = GroupKey.of(canonical_kernel_text(group), machine).text
    return hashlib.sha256(text.encode()).hexdigest()


def was_searched(group: FusedOp, machine: Machine) -> bool:
    """Return whether there is a record of what `group` computes, in whatever layouts."""
    bodies = _bodies_of(default_store().read(SCHEDULE_KIND))
    return bool(bodies) and body_key(group, machine) in bodies


_read: list[tuple[Mapping[str, Fields], frozenset[str]]] = []
"""The rows that were read last, and the bodies that they are of."""


def _bodies_of(rows: Mapping[str, Fields]) -> frozenset[str]:
    if not _read or _read[0][0] is not rows:
        found = (row.get("body") for row in rows.values())
        bodies = frozenset(body for body in found if isinstance(body, str) and body)
        _read[:] = [(rows, bodies)]
    return _read[0][1]
