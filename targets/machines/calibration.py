"""Keep what `braid targets calibrate` measured of the machine that braid runs on.

A calibration gives facts that `Machine` explains; they stand before those that braid ships. It is
kept in the record store under a digest of what was measured: the processor, how many of its cores
this process may use, LLVM's names for it, and the code generator that made what was timed. A record
of another machine, or an invalid one, counts as missing.
"""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from braid.support.records.record_store import Fields, Record, RecordStore, default_store
from braid.support.toolchain import toolchain
from braid.targets.machines.cpus import NATIVE
from braid.targets.machines.identity import machine_text, processor_name
from braid.targets.machines.machine import Machine

CALIBRATION = "calibration"
"""The kind of these records: `facts` by name, and for people `details` by name of a fact."""

VERSION = 2
"""Raised when what is measured, or how, changes: older records are not found then."""

RATES = ("flops", "cached_bandwidth", "memory_bandwidth")
"""Facts per second; in addition to `flops` there is one for each type, such as `flops_f64`."""

TIMES = ("launch_seconds", "join_seconds")
"""Facts in seconds."""

SHARES = ("thread_efficiency",)
"""Facts between 0 and 1."""

_FASTEST, _LONGEST = 1e18, 1.0
"""The limits beyond which a figure is not one of a machine."""


@dataclass(frozen=True)
class Calibration:
    """Facts of this machine by name; `details` describe the measurement of each fact to people."""

    facts: Mapping[str, float]
    details: Mapping[str, str]


def flops_fact(element_type: str) -> str:
    """Return the fact about the operations of this type, by its MLIR name; those of f32 are
    `flops`.
    """
    return "flops" if element_type == "f32" else f"flops_{element_type}"


def is_rate(name: str) -> bool:
    """Return whether the fact of this name is one per second."""
    return name in RATES or name.startswith("flops_")


def calibration_key(machine: Machine) -> str:
    """Return the digest of the conditions of a calibration of `machine`, on which this process
    runs.
    """
    parts = (str(VERSION), machine_text(machine), str(core_count()), *toolchain())
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def core_count() -> int:
    """Return the number of CPUs that this process may use."""
    return len(os.sched_getaffinity(0))


def keep_calibration(
    machine: Machine, calibration: Calibration, store: RecordStore | None = None
) -> None:
    """Add a calibration of `machine` to a store, by default the user's.

    Raises BraidError where the store cannot be written.
    """
    value = {"facts": dict(calibration.facts), "details": dict(calibration.details)}
    record = Record(CALIBRATION, calibration_key(machine), value, processor_name())
    (store or default_store()).append([record])


def load_calibration(machine: Machine, store: RecordStore | None = None) -> Calibration | None:
    """Return what a store, by default the user's, knows of `machine`.

    The result is None for a machine other than this process's, and if nothing was kept.
    """
    if machine.name != NATIVE:
        return None
    records = (store or default_store()).read(CALIBRATION)
    value = records.get(calibration_key(machine)) if records else None
    return None if value is None else calibration_of(value)


def calibrated(machine: Machine) -> Machine:
    """Return `machine` with its measured facts; the same machine if there are none."""
    calibration = load_calibration(machine)
    if calibration is None:
        return machine
    facts = {**dict(machine.facts), **calibration.facts}
    return replace(machine, facts=tuple(sorted(facts.items())))


def calibration_of(value: Fields) -> Calibration | None:
    """Return the calibration that a record holds, None where it holds something else."""
    facts, details = value.get("facts"), value.get("details", {})
    if not isinstance(facts, dict) or not isinstance(details, dict) or not facts:
        return None
    named = cast(dict[str, Any], facts)
    if not all(_is_plausible(name, figure) for name, figure in named.items()):
        return None
    texts = cast(dict[str, Any], details)
    return Calibration(named, {name: str(text) for name, text in texts.items()})


def _is_plausible(name: str, figure: object) -> bool:
    """Return whether this is a figure that a calibration makes; also says no to NaN."""
    if not isinstance(figure, float):
        return False
    if name in TIMES:
        return 0 <= figure < _LONGEST
    if name in SHARES:
        return 0 < figure <= 1
    return is_rate(name) and 1 < figure < _FASTEST
