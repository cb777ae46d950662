"""Target descriptions: what a machine can do, how fast, and who writes its kernels."""

import tomllib
from collections.abc import Generator, Sequence, Set
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path

from braid.errors import BraidError, SourceLocation
from braid.targets.installed import installed_families, installed_targets
from braid.targets.table import Table

INSTRUCTIONS = frozenset({"load", "store", "matrix", "vector"})
"""Resources of units that are programmed by instructions."""

_HIDDEN = ContextVar("_HIDDEN", default=False)
"""Whether kernel families are left out."""

_DIRECTORY = Path(__file__).parent


@dataclass(frozen=True)
class Unit:
    """A part of a backend that works on its own; `rate` counts `resource` per second.

    On a chip that is programmed by instructions, `resource` is the kind of instruction that it
    executes: `load` and `store` count bytes, `matrix` and `vector` scalar operations. Each takes
    `startup_seconds` besides. Transfers go through `port`, where one is named; a unit with
    `only_with` takes part only in ops that use that resource. The operands and results of its
    ops lie in `memory`, by default the backend's first.
    """

    name: str
    resource: str
    rate: float
    startup_seconds: float = 0.0
    port: str = ""
    only_with: str = ""
    memory: str = ""


@dataclass(frozen=True)
class Port:
    """A way into or out of a backend that units share; bandwidth in bytes per second."""

    name: str
    bandwidth: float


@dataclass(frozen=True)
class Issue:
    """How instructions reach the units: in order, `instruction_bytes` each, through `port`."""

    instruction_bytes: int
    port: str


@dataclass(frozen=True)
class Pool:
    """Processors of a backend that are alike and run ops side by side, such as threads of a CPU.

    Each has all the units, at their rates. There are `count`, or for 0 as many as are asked for.
    An op may run on all of them at once: that takes `join_seconds` besides, and each one but the
    first adds only the part `efficiency` of a processor.
    """

    name: str
    count: int
    join_seconds: float
    efficiency: float

    def seconds_on_all(self, seconds: float, count: int) -> float:
        """How long an op of so many `seconds` takes on `count` of the processors at once."""
        return self.join_seconds + seconds / (1 + (count - 1) * self.efficiency)


@dataclass(frozen=True)
class Memory:
    """A memory space: its size in bytes and its bandwidth in bytes per second."""

    name: str
    bytes: int
    bandwidth: float


@dataclass(frozen=True)
class Link:
    """A way from one backend to another: bandwidth in bytes per second, latency in seconds."""

    source: str
    destination: str
    bandwidth: float
    latency: float


@dataclass(frozen=True)
class Backend:
    """One processor of a target.

    `operations` are the names of the ops it can run, such as `braid.conv` (`*`: all); among
    backends that can run an op, the one of higher `priority` is preferred. `launch_seconds` is what
    starting a kernel costs. `kernel_families` are import paths `module:class`. An op passes through
    the `units` in their order; `memories` begin with the one in which an op's operands must be.
    `issue` is None for a backend that is not programmed by instructions, `pool` for one that runs
    one op at a time.
    """

    name: str
    operations: tuple[str, ...]
    priority: int
    launch_seconds: float
    kernel_families: tuple[str, ...]
    units: tuple[Unit, ...]
    memories: tuple[Memory, ...]
    ports: tuple[Port, ...] = ()
    issue: Issue | None = None
    pool: Pool | None = None

    def memory_of(self, unit: Unit) -> Memory | None:
        """Where the operands of the ops of `unit` lie; None for a backend without memories."""
        named = (memory for memory in self.memories if memory.name == unit.memory)
        return next(named, self.memories[0] if self.memories else None)

    def supports(self, operation: str) -> bool:
        """Whether the op of this name, such as `braid.conv`, can run here."""
        return "*" in self.operations or operation in self.operations

    def rate(self, resource: str) -> float:
        """How much of `resource` (`flops`, `bytes`) all units together do in a second.

        Raises `BraidError` where no unit has that resource.
        """
        total = sum(unit.rate for unit in self.units if unit.resource == resource)
        if not total:
            known = sorted({unit.resource for unit in self.units})
            raise BraidError(f"backend '{self.name}' has no unit for '{resource}', only {known}")
        return total

    def families(self) -> tuple[object, ...]:
        """One instance of every kernel family, in order of preference.

        Those that installed packages add for backends of this name stand first. There are none
        inside of `without_families`. Raises `BraidError` where one of them cannot be imported.
        """
        if _HIDDEN.get():
            return ()
        own = (_instance(path) for path in self.kernel_families)
        return (*installed_families(self.name), *own)


@contextmanager
def without_families() -> Generator[None]:
    """Let backends have no kernel families, so that all code is that of the generic lowering."""
    token = _HIDDEN.set(True)
    try:
        yield
    finally:
        _HIDDEN.reset(token)


@dataclass(frozen=True)
class Target:
    """A machine to compile for; the first backend is where everything can run."""

    name: str
    backends: tuple[Backend, ...]
    links: tuple[Link, ...]

    def backend(self, name: str) -> Backend:
        """The backend of this name. Raises `BraidError` if there is none."""
        for backend in self.backends:
            if backend.name == name:
                return backend
        known = ", ".join(f"'{backend.name}'" for backend in self.backends)
        raise BraidError(f"target '{self.name}' has no backend '{name}', only {known}")


@cache
def load_target(name: str = "host") -> Target:
    """The target of this name, or the one that the TOML file at this path describes.

    Names are those of braid's own targets and of the ones that installed packages add.
    Raises `BraidError` for an unknown name and a malformed file, naming the file and the key.
    """
    path = _path_of(name)
    location = SourceLocation(str(path))
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        known = sorted(target_names())
        raise BraidError(
            f"there is no target '{name}'",
            hint=f"expected a path that ends in .toml, or one of {known}",
        ) from error
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BraidError(f"cannot read target: {error}", location=location) from error
    return _target(Table(data, "target", location))


def target_names() -> frozenset[str]:
    """The names of braid's own targets and of those that installed packages add."""
    return frozenset({*(file.stem for file in _DIRECTORY.glob("*.toml")), *installed_targets()})


def _path_of(name: str) -> Path:
    """Where the target is described; braid's own names cannot be taken by others."""
    if name.endswith(".toml"):
        return Path(name)
    own = _DIRECTORY / f"{name}.toml"
    return own if own.exists() else installed_targets().get(name, own)


def _target(table: Table) -> Target:
    table.expect_only("name", "backend", "link")
    backends = tuple(_backend(entry) for entry in table.tables("backend"))
    if not backends:
        raise table.error("no [[backend]]")
    names = {backend.name for backend in backends}
    links = tuple(_link(entry, names) for entry in table.tables("link"))
    return Target(table.get("name", str), backends, links)


def _backend(table: Table) -> Backend:
    table.expect_only(
        "name",
        "operations",
        "priority",
        "launch_seconds",
        "kernel_families",
        "unit",
        "memory",
        "port",
        "issue",
        "pool",
    )
    ports = tuple(_port(entry) for entry in table.tables("port"))
    issue, pool = table.optional("issue"), table.optional("pool")
    known = {"", *(port.name for port in ports)}
    memories = tuple(_memory(entry) for entry in table.tables("memory"))
    holders = {"", *(memory.name for memory in memories)}
    units = tuple(_unit(entry, known, holders) for entry in table.tables("unit"))
    if issue is not None:
        _check_chip(table, units)
    return Backend(
        table.get("name", str),
        _operations(table),
        table.get("priority", int, 0),
        table.get("launch_seconds", float, 0.0),
        table.strings("kernel_families"),
        units,
        memories,
        ports,
        None if issue is None else _issue(issue, known),
        None if pool is None else _pool(pool),
    )


def _operations(table: Table) -> tuple[str, ...]:
    names = table.strings("operations")
    for name in names:
        if name != "*" and "." not in name:
            raise table.error(
                f"'operations' names '{name}', which is no op",
                hint="ops are named with their dialect, such as 'braid.conv'; '*' is all of them",
            )
    return names


def _check_chip(table: Table, units: Sequence[Unit]) -> None:
    """What programs by instructions need: units for kinds of instructions, and a way in and out."""
    for entry, unit in zip(table.tables("unit"), units, strict=True):
        entry.require_known("kind of instruction", unit.resource, INSTRUCTIONS)
        entry.require_known("kind of instruction", unit.only_with, {*INSTRUCTIONS, ""})
    for resource in ("load", "store"):
        if all(unit.resource != resource for unit in units):
            raise table.error(
                f"there is no unit for '{resource}'",
                hint="a backend with [[backend.issue]] loads and stores what its units compute on",
            )


def _unit(table: Table, ports: Set[str], memories: Set[str]) -> Unit:
    table.expect_only("name", "resource", "rate", "startup_seconds", "port", "only_with", "memory")
    unit = Unit(
        table.get("name", str),
        table.get("resource", str),
        table.get("rate", float),
        table.get("startup_seconds", float, 0.0),
        table.get("port", str, ""),
        table.get("only_with", str, ""),
        table.get("memory", str, ""),
    )
    if unit.rate == 0:
        raise table.error("'rate' is 0, expected a positive number")
    table.require_known("port", unit.port, ports)
    table.require_known("memory", unit.memory, memories)
    return unit


def _port(table: Table) -> Port:
    table.expect_only("name", "bandwidth")
    return Port(table.get("name", str), table.get("bandwidth", float))


def _issue(table: Table, ports: Set[str]) -> Issue:
    table.expect_only("instruction_bytes", "port")
    issue = Issue(table.get("instruction_bytes", int), table.get("port", str))
    table.require_known("port", issue.port, ports)
    return issue


def _pool(table: Table) -> Pool:
    table.expect_only("name", "count", "join_seconds", "efficiency")
    pool = Pool(
        table.get("name", str),
        table.get("count", int, 0),
        table.get("join_seconds", float, 0.0),
        table.get("efficiency", float, 1.0),
    )
    if pool.efficiency > 1:
        raise table.error(f"'efficiency' is {pool.efficiency}, expected at most 1")
    return pool


def _memory(table: Table) -> Memory:
    table.expect_only("name", "bytes", "bandwidth")
    memory = Memory(table.get("name", str), table.get("bytes", int), table.get("bandwidth", float))
    if memory.bytes == 0:
        raise table.error("'bytes' is 0, expected a positive number")
    return memory


def _link(table: Table, backends: Set[str]) -> Link:
    table.expect_only("source", "destination", "bandwidth", "latency")
    link = Link(
        table.get("source", str),
        table.get("destination", str),
        table.get("bandwidth", float),
        table.get("latency", float),
    )
    table.require_known("backend", link.source, backends)
    table.require_known("backend", link.destination, backends)
    return link


@cache
def _instance(path: str) -> object:
    module, separator, name = path.partition(":")
    try:
        if not separator:
            raise ImportError("expected 'module:class'")
        return getattr(import_module(module), name)()
    except (ImportError, AttributeError) as error:
        raise BraidError(f"cannot load kernel family '{path}': {error}") from error
