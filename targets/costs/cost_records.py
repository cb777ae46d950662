"""Measured costs of kernels, in this user's record store.

A record has the time of one run of a group in one choice of layouts, on one machine, with one
version of the kernels. It is found under a digest of all of these, so that a record that no longer
fits is never found.
"""

import math
from collections.abc import Mapping

from braid.support.diagnostics import Diagnostic, emit
from braid.support.errors import BraidError
from braid.support.records.record_store import Fields, Record, RecordStore, default_store
from braid.targets.machines.identity import processor_name

COST = "cost"
"""The kind of these records: `seconds` of one run, and a description of `what` was measured, for
people."""


def load_records(store: RecordStore | None = None) -> Mapping[str, float]:
    """Return the costs in a store, by default the user's; the last one of a key counts."""
    found = (store or default_store()).read(COST)
    return {key: value["seconds"] for key, value in found.items() if holds_seconds(value)}


def append_records(
    seconds: Mapping[str, float], details: Mapping[str, str], store: RecordStore | None = None
) -> None:
    """Add measured seconds by `record_key` to a store, by default the user's.

    `details` describe each measurement to people, by key. If the store cannot be written, a warning
    says that the measurements are lost.
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
    """Withdraw what is recorded under these keys; `details` describe it.

    Raises BraidError where the store cannot be written.
    """
    machine = processor_name()
    default_store().append(Record(COST, key, withdrawn(d), machine) for key, d in details.items())


def withdrawn(detail: str) -> Fields:
    """Return the value of a row without seconds."""
    return {"what": detail}


def holds_seconds(value: Fields) -> bool:
    """Return whether a value has the seconds of a measurement."""
    seconds = value.get("seconds")
    return isinstance(seconds, float) and 0 <= seconds < math.inf
