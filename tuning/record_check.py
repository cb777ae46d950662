"""Find the records that this braid does not use, with the reasons: `braid records check`.

A key is a digest of what a record is about, so that a record without a model to look it up shows
only by its value and its row whether it can count. Records of other machines are theirs to judge.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache

from braid.support.records.record_store import Record
from braid.support.toolchain import braid_version
from braid.targets.backend import Job
from braid.targets.backends import backend_names, grouping_of, kernel_families
from braid.targets.costs.cost_records import COST, holds_seconds, withdrawn
from braid.targets.costs.probe_records import PROBE, probe_of
from braid.targets.costs.schedule_records import SCHEDULE_KIND, tuned_kernel
from braid.targets.machines.calibration import CALIBRATION, calibration_key, calibration_of
from braid.targets.machines.cpus import NATIVE, cpu_machine, cpu_names
from braid.targets.machines.identity import processor_name
from braid.targets.machines.load import load_target, target_names
from braid.tuning.model_tuning import TRIALS, trials_of
from braid.tuning.model_verdict import MODEL_KIND, Verdict

Reason = str
MALFORMED: Reason = "its value does not have the fields of its kind"

_OF_THIS_PROCESSOR = frozenset({CALIBRATION, COST})
"""Kinds whose keys name the processor that they were measured on."""


def unused_records(records: Iterable[Record]) -> Iterator[tuple[Record, Reason]]:
    """Yield the records that nothing uses, with the reason.

    Records that were replaced by later ones of the same key are left out, and so are facts that
    another processor measured about itself.
    """
    versions = family_versions()
    last = {(record.kind, record.key): record for record in records}
    for record in last.values():
        if not is_of_other_machine(record) and (reason := _reason(record, versions)):
            yield record, reason


def is_of_other_machine(record: Record) -> bool:
    """Return whether another processor measured itself."""
    return record.kind in _OF_THIS_PROCESSOR and record.machine != processor_name()


@cache
def family_versions() -> Mapping[str, frozenset[int]]:
    """Return the versions of all kernel families by name, on all targets and CPUs that have
    names.
    """
    found: dict[str, set[int]] = {}
    for name in sorted(target_names()):
        target = load_target(name)
        for device in target.devices:
            if device.backend not in backend_names():
                continue
            families = list(kernel_families(device))
            if (grouping := grouping_of(device)) is not None:
                families.append(grouping.group_family(Job(target, device)))
            for family in families:
                found.setdefault(family.name, set()).add(family.version)
    for cpu in cpu_names():  # some families are only for a few groups
        for family in kernel_families(load_target().with_cpu(cpu).host_device):
            found.setdefault(family.name, set()).add(family.version)
    return {name: frozenset(versions) for name, versions in found.items()}


def _reason(record: Record, versions: Mapping[str, frozenset[int]]) -> Reason | None:
    if record.kind == SCHEDULE_KIND:
        return _of_schedule(record, versions)
    if record.kind == CALIBRATION:
        return _of_calibration(record)
    holds = _HOLDS.get(record.kind)
    if holds is None:
        return f"nothing reads records of kind '{record.kind}'"
    if not holds(record):
        return MALFORMED
    if record.kind in _OF_A_VERSION and record.version != braid_version():
        return f"braid {record.version} measured it, this is braid {braid_version()}"
    return None


def _of_schedule(record: Record, versions: Mapping[str, frozenset[int]]) -> Reason | None:
    kernel = tuned_kernel(record.value)
    if kernel is None:
        return MALFORMED
    if kernel.chosen is None:  # the default stays, whichever that is
        return None
    name = kernel.chosen.family
    known = versions.get(name)
    if known is None:
        return f"there is no kernel family '{name}'"
    if kernel.version not in known:
        now = ", ".join(map(str, sorted(known)))
        return f"kernel family '{name}' has version {now}, it was searched with {kernel.version}"
    return None


def _of_calibration(record: Record) -> Reason | None:
    if calibration_of(record.value) is None:
        return MALFORMED
    if record.key != calibration_key(cpu_machine(NATIVE)):
        return "it was measured on other cores, or with another code generator or version of braid"
    return None


def _is_cost(record: Record) -> bool:
    """Return whether there are seconds, or nothing in their place: then they were withdrawn."""
    return holds_seconds(record.value) or record.value.keys() == withdrawn("").keys()


_HOLDS: Mapping[str, Callable[[Record], bool]] = {
    COST: _is_cost,
    MODEL_KIND: lambda record: Verdict.of(record.value) is not None,
    PROBE: lambda record: probe_of(record.value) is not None,
    TRIALS: lambda record: trials_of(record.value) != ([], []),
}
"""A check for each kind of record, which returns whether a record is valid."""

_OF_A_VERSION = frozenset({COST, PROBE})
"""Kinds whose keys name the version of braid."""
