"""The tables `[[device]]` and `[[machine]]` of a target file."""

import re
from collections.abc import Iterator, Mapping, Sequence

from braid.targets.machines.cpus import check_cpu, cpu_machine
from braid.targets.machines.machine import Machine
from braid.targets.machines.table import Table
from braid.targets.machines.target import BackendDescription, Device, Memory

_PLUGIN = re.compile(r"[\w-]*")  # part of a file's name


def parse_devices(
    table: Table, backends: Sequence[BackendDescription], host: Device | None
) -> tuple[Device, ...]:
    """The devices of a target, one for each backend where its file names none.

    Those of `host`'s backend are by default of the same machine, others of one that has but the
    target's name. Raises `BraidError` for what is malformed, twice there, or of no backend.
    """
    machines = {entry.get("name", str): _machine(entry) for entry in table.tables("machine")}
    own = Machine(table.get("name", str))
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
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise table.error(f"devices {twice} are described twice")
    return tuple(devices)


def parse_memory(table: Table) -> Memory:
    """A `[[memory]]` of a backend or a device."""
    table.expect_only("name", "bytes", "bandwidth")
    return Memory(
        table.get("name", str), table.positive("bytes", int), table.get("bandwidth", float, 0.0)
    )


def _entry(table: Table, backend: str) -> Table:
    data: Mapping[str, str] = {"name": backend, "backend": backend}
    return Table(data, table.path, table.location)


def _devices(
    table: Table, backend: BackendDescription, machine: str, described: Machine | None
) -> Iterator[Device]:
    """The devices of one entry, which are alike but for their numbers."""
    table.expect_only("name", "backend", "machine", "plugin", "count", "memory")
    if described is None:
        table.located(lambda: check_cpu(machine))
    memories = tuple(parse_memory(entry) for entry in table.tables("memory"))
    for unit in backend.units if memories else ():
        table.require_known("memory", unit.memory, {"", *(memory.name for memory in memories)})
    name, numbered = table.get("name", str), ":" in table.get("name", str)
    if numbered and "count" in table.data:
        raise table.error(f"'{name}' has a number of its own, and 'count' gives numbers")
    plugin = table.get("plugin", str, "")
    if not _PLUGIN.fullmatch(plugin):
        raise table.error(
            f"'{plugin}' is not the name of a device plugin",
            hint="plugins are found by name; BRAID_DEVICE_PATH says in which directories",
        )
    for index in range(1 if numbered else table.get("count", int, 1)):
        each = name if numbered else f"{name}:{index}"
        yield Device(each, backend.name, machine, described, memories, plugin)


def _machine(table: Table) -> Machine:
    """A machine of the file: a known CPU with other facts, one of LLVM's, or nothing but facts."""
    table.expect_only("name", "cpu", "triple", "features", "facts")
    name, cpu = table.get("name", str), table.get("cpu", str, "")
    triple, features = table.get("triple", str, ""), table.get("features", str, "")
    if triple or not cpu:
        base = Machine(name, triple, cpu, features)
    else:
        base = table.located(lambda: cpu_machine(f"{cpu},{features}" if features else cpu))
    given = Table(table.get("facts", dict, {}), f"{table.path}.facts", table.location)
    facts = {**dict(base.facts), **{key: given.get(key, float) for key in given.data}}
    return Machine(name, base.triple, base.cpu, base.features, tuple(sorted(facts.items())))
