"""List what was tried on the devices of a target, by the kind of op, for people."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from braid.targets.costs.probe_records import Probe, device_scope, probes_in, stored_probes
from braid.targets.costs.probed_support import places
from braid.targets.machines.mapping_list import EVERY_OP, MappingEntry
from braid.targets.machines.target import BackendDescription, Target


@dataclass(frozen=True)
class TriedOp:
    """All `count` different ops of one kind and type that were tried on a device.

    `priority` is None if the device does not run them, and `source` is the mapping list or a trial,
    with the message of its last failure. `seconds` is the median of their medians, `spread` that of
    their spreads.
    """

    name: str
    device: str
    priority: int | None
    source: str
    count: int
    runs: int
    failures: int
    seconds: float
    spread: float


def ops_tried(target: Target) -> list[TriedOp]:
    """Return a row for each kind and device, devices that are alike once."""
    records = stored_probes()
    tables: dict[str, dict[str, list[Probe]]] = {}
    seen: set[str] = set()
    for device in target.devices if records else ():
        scope = device_scope(target.backend_of(device), of_op=True)
        if scope in seen:
            continue
        seen.add(scope)
        for probe in probes_in(scope, records):
            own = tables.setdefault(f"{probe.op} {probe.type}", {})
            own.setdefault(device.name, []).append(probe)
    return [
        _row(kind, device, table, target)
        for kind, table in sorted(tables.items())
        for device in table
    ]


def _row(kind: str, device: str, table: dict[str, list[Probe]], target: Target) -> TriedOp:
    probes = table[device]
    worked = [probe for probe in probes if probe.works]
    entries = {name: _entry(kind, target.backend_of(target.device(name))) for name in table}
    priority, source = _decided(device, table, entries)
    return TriedOp(
        kind,
        device,
        priority,
        source,
        len(probes),
        sum(probe.runs for probe in probes),
        sum(probe.failures for probe in probes),
        median([probe.seconds for probe in worked]) if worked else 0.0,
        median([probe.spread for probe in worked]) if worked else 0.0,
    )


def _decided(
    device: str, table: dict[str, list[Probe]], entries: dict[str, MappingEntry | None]
) -> tuple[int | None, str]:
    """Return the priority of most ops of the kind on a device, and who says so."""
    probes, entry = table[device], entries[device]
    failures = [probe.message for probe in probes if not probe.works]
    if entry is not None and entry.operation != EVERY_OP:
        said = f"list; yet it fails: {failures[-1]}" if failures else "list"
        return entry.priority, said
    if len(failures) == len(probes):
        return None, f"tried: {failures[-1]}"
    some = f"; {len(failures)} of {len(probes)} ops fail: {failures[-1]}" if failures else ""
    named = [e for e in entries.values() if e is not None and e.operation != EVERY_OP and e.is_own]
    totals = _common_seconds(table)
    if len(table) > 1 and not named and totals is not None and device in totals:
        return places(totals)[device], f"tried{some}"
    return 1 if entry is None else entry.priority, ("tried" if entry is None else "list") + some


def _common_seconds(table: dict[str, list[Probe]]) -> dict[str, float] | None:
    """Return by device, where any op works, the seconds of the ops that work on all of these."""
    works = {
        name: {probe.text: probe.seconds for probe in probes if probe.works}
        for name, probes in table.items()
    }
    able = {name: own for name, own in works.items() if own}
    common = set[str].intersection(*(set(own) for own in able.values())) if able else set[str]()
    if not common:
        return None
    return {name: sum(own[text] for text in common) for name, own in able.items()}


def _entry(kind: str, backend: BackendDescription) -> MappingEntry | None:
    """Return the first entry of the list about this kind, whatever it asks for besides."""
    name = kind.partition(" ")[0]
    entries: Sequence[MappingEntry] = backend.operations
    return next((entry for entry in entries if entry.names(name)), None)
