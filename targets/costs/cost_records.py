"""Measured costs of kernels, in this user's record store.

A record says how long one run of a group took in one choice of layouts, on one machine, with one
version of the kernels. It is found under a digest of all of these, so that a record that no
longer fits is never found.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.regions import FusedOp
from braid.support.diagnostics import Diagnostic, emit
from braid.support.errors import BraidError
from braid.support.record_store import Fields, Record, RecordStore, default_store
from braid.targets.kernels.kernel_family import KernelFamily
from braid.targets.kernels.keys import GroupKey, KernelKey, canonical_kernel_text, stored_text
from braid.targets.machines.cpus import NATIVE, cpu_machine
from braid.targets.machines.identity import processor_name

COST = "cost"
"""The kind of these records: `seconds` of one run, and `what` was measured, for people."""


class GroupRecords(Protocol):
    """What is known of the kernels of one group from measurements."""

    def seconds(self, choice: LayoutChoice, maker: KernelFamily | None) -> float | None:
        """One run of the kernel that `maker` makes in `choice`; None if not measured."""
        ...


class CostRecords(Protocol):
    """What is known of kernels from measurements."""

    def of_group(self, group: FusedOp) -> GroupRecords:
        """The records of `group`; the layouts in its types do not count."""
        ...


@dataclass(frozen=True)
class RecordTable:
    """Records in memory, by `record_key`."""

    table: Mapping[str, float] = field(default_factory=dict[str, float])

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self.table)

    def of_group(self, group: FusedOp) -> GroupRecords:
        """See `CostRecords`."""
        return _TableOfGroup(self.table, group, canonical_kernel_text(group) if self.table else "")


@dataclass(frozen=True)
class _TableOfGroup:
    table: Mapping[str, float]
    group: FusedOp
    body: str

    def seconds(self, choice: LayoutChoice, maker: KernelFamily | None) -> float | None:
        """See `GroupRecords`."""
        if not self.table:
            return None
        return self.table.get(record_key(self.group, choice, maker, self.body))


def record_key(
    group: FusedOp, choice: LayoutChoice, maker: KernelFamily | None, body: str | None = None
) -> str:
    """Digest of what a measurement is of: the kernel that `maker` makes on this machine.

    The layouts in the types of `group` do not count. `body` is its canonical text where that is
    known.
    """
    key = GroupKey.of(stored_text(group, choice, body), cpu_machine(NATIVE))
    return KernelKey.of(group, key, maker).digest


def load_records(store: RecordStore | None = None) -> RecordTable:
    """The costs in a store, by default the user's; the last one of a key counts."""
    found = (store or default_store()).read(COST)
    return RecordTable(
        {key: value["seconds"] for key, value in found.items() if holds_seconds(value)}
    )


def append_records(
    seconds: Mapping[str, float], details: Mapping[str, str], store: RecordStore | None = None
) -> None:
    """Add measured seconds by `record_key` to a store, by default the user's.

    `details` say to people, by key, what was measured. Where the store cannot be written, a
    warning says that the measurements are lost.
    """
    machine = processor_name()
    rows = [
        Record(COST, key, {"seconds": value, "what": details.get(key, "")}, machine)
        for key, value in seconds.items()
    ]
    try:
        (store or default_store()).append(rows)
    except BraidError as error:
        emit(Diagnostic("warning", error.message, hint=error.hint))


def withdraw_records(details: Mapping[str, str]) -> None:
    """Lets what is recorded under these keys count no more; `details` say what it was of.

    Raises BraidError where the store cannot be written.
    """
    machine = processor_name()
    default_store().append(Record(COST, key, withdrawn(d), machine) for key, d in details.items())


def withdrawn(detail: str) -> Fields:
    """The value of a row without seconds."""
    return {"what": detail}


def holds_seconds(value: Fields) -> bool:
    """Return whether a value has the seconds of a measurement."""
    seconds = value.get("seconds")
    return isinstance(seconds, float) and 0 <= seconds < math.inf
