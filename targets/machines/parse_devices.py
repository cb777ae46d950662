"""The tables `[[device]]` and `[[machine]]` of a target file."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from braid.targets.machines.calibration import SHARES, is_rate
from braid.targets.machines.cpus import check_cpu, cpu_machine
from braid.targets.machines.machine import Machine
from braid.targets.machines.table import Table
from braid.targets.machines.target import BackendDescription, Device, Memory

_PLUGIN = re.compile(r"[\w-]*")  # part of a file's name
_MOST_DEVICES = 4096


def parse_devices(
    table: Table, backends: Sequence[BackendDescription], host: Device | None
) -> tuple[Device, ...]:
    """Return the devices of a target, one for each backend where its file names none.

    Devices with the backend of `host` have by default the same machine, others one that has only
    the target's name. Raises `BraidError` for what is malformed, twice there, or of no backend.
    """
    machines = {entry.name(): _machine(entry) for entry in table.named("machine")}
    own = Machine(table.name())
    by_name = {backend.name: backend for backend in backends}
    devices: list[Device] = []
    for entry in table.tables("device") or [_entry(table, name) for name in by_name]:
        backend = entry.get("backend", str)
        entry.require_known("backend", backend, set(by_name))
        shared = host is not None and host.backend == backend
        default = host.machine_name if host is not None and shared else own.name
        named = entry.get("machine", str, default)
        described = machines.get(named, own if named == own.name else None)
        devices += _devices(entry, by_name[backend], named, described)
    names = [device.name for device in devices]
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise table.error(f"devices {twice} are described twice")
    return tuple(devices)


def parse_memory(table: Table) -> Memory:
    """Return a `[[memory]]` of a backend or a device."""
    table.expect_only("name", "bytes", "bandwidth")
    return Memory(table.name(), table.positive("bytes", int), table.get("bandwidth", float, 0.0))


def _entry(table: Table, backend: str) -> Table:
    data: Mapping[str, str] = {"name": backend, "backend": backend}
    return Table(data, table.path, table.location)


def _devices(
    table: Table, backend: BackendDescription, machine: str, described: Machine | None
) -> Iterator[Device]:
    """Yield the devices of one entry, which differ only in their numbers."""
    table.expect_only(
        *("name", "backend", "machine", "plugin", "count", "memory", "start_seconds", "own_memory")
    )
    if described is None:
        table.located(lambda: check_cpu(machine))
    memories = tuple(parse_memory(entry) for entry in table.named("memory"))
    for unit in backend.units if memories else ():
        table.require_known("memory", unit.memory, {"", *(memory.name for memory in memories)})
    name, numbered = table.name(), ":" in table.name()
    if numbered and "count" in table.data:
        raise table.error(f"'{name}' has a number of its own, and 'count' gives numbers")
    plugin = table.get("plugin", str, "")
    if not _PLUGIN.fullmatch(plugin):
        raise table.error(
            f"'{plugin}' is not the name of a device plugin",
            hint="plugins are found by name; BRAID_DEVICE_PATH says in which directories",
        )
    start = table.get("start_seconds", float, 0.0)
    own_memory = table.get("own_memory", bool, False)
    count = 1 if numbered or "count" not in table.data else table.positive("count", int)
    if count > _MOST_DEVICES:
        raise table.error(f"'count' is {count}, expected at most {_MOST_DEVICES}")
    for index in range(count):
        each = name if numbered else f"{name}:{index}"
        yield Device(
            *(each, backend.name, machine, described, memories, plugin, start),
            own_memory=own_memory,
        )


def _machine(table: Table) -> Machine:
    """Return a machine of the file: a known CPU with other facts, one of LLVM's, or nothing but
    facts.
    """
    table.expect_only("name", "cpu", "triple", "features", "facts", "part")
    name, cpu = table.name(), table.get("cpu", str, "")
    triple, features = table.get("triple", str, ""), table.get("features", str, "")
    if triple or not cpu:
        base = Machine(name, triple, cpu, features)
    else:
        base = table.located(lambda: cpu_machine(f"{cpu},{features}" if features else cpu))
    given = Table(table.get("facts", dict, {}), f"{table.path}.facts", table.location)
    facts = {**dict(base.facts), **{key: _fact(given, key) for key in given.data}}
    kept, part = tuple(sorted(facts.items())), table.get("part", str, "")
    return Machine(name, base.triple, base.cpu, base.features, kept, part)


def _fact(table: Table, name: str) -> float:
    """Return a figure of a machine: what costs divide by is not 0, and a share is a part."""
    value = table.positive(name, float) if is_rate(name) else table.get(name, float)
    if name in SHARES and value > 1:
        raise table.error(f"'{name}' is {value}, expected at most 1")
    return value
