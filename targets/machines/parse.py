"""The tables of a target file as a target; mistakes are diagnostics that name file and table."""

from collections.abc import Sequence, Set
from dataclasses import replace

from braid.targets.machines.mapping_list import parse_mapping_list
from braid.targets.machines.parse_devices import parse_devices, parse_memory
from braid.targets.machines.table import Table
from braid.targets.machines.target import (
    OF_MACHINES,
    BackendDescription,
    Issue,
    Link,
    Pool,
    SharedPort,
    Target,
    Unit,
    hosted,
)

_INSTRUCTIONS = frozenset({"load", "store", "matrix", "vector"})
"""Resources of units that are programmed by instructions."""


def parse_target(table: Table, default: Target | None) -> Target:
    """Return the target that the outermost table describes.

    A file without a host has the host of `default`, with its backend; a file without devices has
    one for each backend. Raises `BraidError` if it is malformed.
    """
    table.expect_only("name", "host", "backend", "device", "machine", "link")
    name = table.name()
    backends = tuple(_backend(entry) for entry in table.named("backend"))
    if not backends:
        raise table.error("no [[backend]]")
    devices = parse_devices(table, backends, None if default is None else default.host_device)
    host = table.get("host", str, "" if default is None else default.host)
    names = {device.name for device in devices}
    if default is None or "host" in table.data or host in names:
        table.require_known("device", host, names)
    else:
        devices = (*devices, default.host_device)
        own = {backend.name for backend in backends}
        if default.host_device.backend not in own:
            backends = (*backends, default.backend(default.host_device.backend))
    links = _links(table, {device.name for device in devices})
    return Target(name, backends, hosted(devices, host), links, host)


def _backend(table: Table) -> BackendDescription:
    table.expect_only(
        "name",
        "operations",
        "priority",
        "launch_seconds",
        "unit",
        "memory",
        "port",
        "issue",
        "pool",
    )
    ports = tuple(_port(entry) for entry in table.named("port"))
    issue, pool = table.optional("issue"), table.optional("pool")
    known = {"", *(port.name for port in ports)}
    memories = tuple(parse_memory(entry) for entry in table.named("memory"))
    holders = {"", *(memory.name for memory in memories)}
    units = tuple(_unit(entry, known, holders) for entry in table.named("unit"))
    if issue is not None:
        _check_chip(table, units)
    return BackendDescription(
        name=table.name(),
        operations=parse_mapping_list(table),
        launch_seconds=table.get("launch_seconds", float, 0.0),
        units=units,
        memories=memories,
        ports=ports,
        issue=None if issue is None else _issue(issue, known),
        pool=None if pool is None else _pool(pool),
    )


def _check_chip(table: Table, units: Sequence[Unit]) -> None:
    """Check that a chip programmed by instructions has units for them, and a way in and out."""
    for entry, unit in zip(table.tables("unit"), units, strict=True):
        entry.require_known("kind of instruction", unit.resource, _INSTRUCTIONS)
        entry.require_known("kind of instruction", unit.only_with, {*_INSTRUCTIONS, ""})
    if all(unit.resource != "load" for unit in units):
        raise table.error(
            "there is no unit for 'load'",
            hint="a backend with [[backend.issue]] loads and stores what its units compute on; "
            "without a unit for 'store', that for 'load' stores as well",
        )
    _check_sharing(table, units)


def _check_sharing(table: Table, units: Sequence[Unit]) -> None:
    """Check that units that compute the same are alike: they share the work."""
    first: dict[tuple[str, str], Unit] = {}
    for entry, unit in zip(table.tables("unit"), units, strict=True):
        if unit.resource in ("matrix", "vector"):
            other = first.setdefault((unit.resource, unit.only_with), unit)
            if replace(other, name=unit.name) != unit:
                raise entry.error(
                    f"unit '{unit.name}' is for '{unit.resource}' as '{other.name}', but not alike",
                    hint="units that share the work differ by name alone",
                )


def _unit(table: Table, ports: Set[str], memories: Set[str]) -> Unit:
    table.expect_only("name", "resource", "rate", "startup_seconds", "port", "only_with", "memory")
    unit = Unit(
        name=table.name(),
        resource=table.get("resource", str),
        rate=_rate(table),
        startup_seconds=table.get("startup_seconds", float, 0.0),
        port=table.get("port", str, ""),
        only_with=table.get("only_with", str, ""),
        memory=table.get("memory", str, ""),
    )
    table.require_known("port", unit.port, ports)
    table.require_known("memory", unit.memory, memories)
    return unit


def _rate(table: Table) -> float:
    """Return 0 for what the machine of a device knows; see `Unit`."""
    known = "rate" not in table.data and table.data.get("resource") in OF_MACHINES
    return 0.0 if known else table.positive("rate", float)


def _port(table: Table) -> SharedPort:
    table.expect_only("name", "bandwidth")
    return SharedPort(table.name(), table.positive("bandwidth", float))


def _issue(table: Table, ports: Set[str]) -> Issue:
    table.expect_only("instruction_bytes", "port")
    issue = Issue(table.get("instruction_bytes", int), table.get("port", str))
    table.require_known("port", issue.port, ports)
    return issue


def _pool(table: Table) -> Pool:
    table.expect_only("name", "count", "join_seconds", "efficiency")
    pool = Pool(
        table.name(),
        table.get("count", int, 0),
        table.get("join_seconds", float) if "join_seconds" in table.data else None,
        table.get("efficiency", float) if "efficiency" in table.data else None,
    )
    if pool.efficiency is not None and pool.efficiency > 1:
        raise table.error(f"'efficiency' is {pool.efficiency}, expected at most 1")
    return pool


def _links(table: Table, devices: Set[str]) -> tuple[Link, ...]:
    """Return the links, at most one each way between two devices."""
    links: dict[tuple[str, str], Link] = {}
    for entry in table.tables("link"):
        link = _link(entry, devices)
        ends = (link.source, link.destination)
        if link.source == link.destination:
            raise entry.error(f"it leads from '{link.source}' to itself")
        if ends in links:
            raise entry.error(f"there already is a link from '{ends[0]}' to '{ends[1]}'")
        links[ends] = link
    return tuple(links.values())


def _link(table: Table, devices: Set[str]) -> Link:
    table.expect_only("source", "destination", "bandwidth", "latency")
    link = Link(
        table.get("source", str),
        table.get("destination", str),
        table.positive("bandwidth", float),
        table.get("latency", float),
    )
    table.require_known("device", link.source, devices)
    table.require_known("device", link.destination, devices)
    return link
