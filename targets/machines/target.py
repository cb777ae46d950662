"""Target descriptions: devices and their links, backends, and how fast all of it is."""

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from braid.support.errors import BraidError
from braid.support.option_names import option_text
from braid.support.settings import DEFAULTS, Settings
from braid.targets.machines.calibration import calibrated
from braid.targets.machines.cpus import cpu_machine
from braid.targets.machines.gpus import is_gpu, with_architecture
from braid.targets.machines.machine import Machine
from braid.targets.machines.mapping_list import MappingEntry

OF_MACHINES = frozenset({"flops", "bytes"})
"""Resources of units whose rates machines know as facts."""


@dataclass(frozen=True)
class Unit:
    """A part of a backend that works on its own; `rate` counts `resource` per second.

    A rate of 0 is that of the machine of the device, for `OF_MACHINES`.

    On a chip that is programmed by instructions, `resource` is the kind of instruction that it
    executes: `load` and `store` count bytes, `matrix` and `vector` scalar operations. Each takes
    `startup_seconds` besides. Transfers go through `port`, where one is named; a unit with
    `only_with` takes part only in ops that use that resource. The operands and results of its
    ops lie in `memory`, by default the backend's first. Units that differ by name alone share
    their work: each instruction is done by one of them.
    """

    name: str
    resource: str
    rate: float
    startup_seconds: float = 0.0
    port: str = ""
    only_with: str = ""
    memory: str = ""


@dataclass(frozen=True)
class SharedPort:
    """A way into or out of a backend that units share; bandwidth in bytes per second."""

    name: str
    bandwidth: float


@dataclass(frozen=True)
class Issue:
    """The way of instructions to the units: in order, `instruction_bytes` each, through `port`."""

    instruction_bytes: int
    port: str


@dataclass(frozen=True)
class Pool:
    """Processors of a backend that are alike and run ops side by side, such as threads of a CPU.

    Each has all the units, at their rates. There are `count`, or for 0 as many as are asked for. An
    op may run on all of them at once: that takes additional `join_seconds`, and each one except the
    first adds only the fraction `efficiency` of a processor. None is as the machine of the device
    does.
    """

    name: str
    count: int
    join_seconds: float | None = None
    efficiency: float | None = None


@dataclass(frozen=True)
class Memory:
    """A memory space: its size in bytes, and bytes per second, 0 where its machine knows them."""

    name: str
    bytes: int
    bandwidth: float


@dataclass(frozen=True)
class Link:
    """A link from one device to another: bandwidth in bytes per second, latency in seconds."""

    source: str
    destination: str
    bandwidth: float
    latency: float


@dataclass(frozen=True)
class Device:
    """A processor of a target, such as `cpu:0`: an instance of a machine.

    `backend` makes code for it, and `plugin` is the name of the runtime's device plugin that runs
    that, by default the backend's. `machine_name` is `native`, one of LLVM's CPUs, or the name of
    the machine that is `described` by the target's file. `memories` are its own, empty where it has
    those of the backend's description. `start_seconds` is the time of one start, however many ops
    it then runs. `host` is that of its target, None for this itself. With `own_memory` it does not
    share the host's, so that whatever runs there is launched by a program of the host. `settings`
    are those of the module that it is asked about.
    """

    name: str
    backend: str
    machine_name: str
    described: Machine | None = None
    memories: tuple[Memory, ...] = ()
    plugin_name: str = ""
    start_seconds: float = 0.0
    host: "Device | None" = None
    own_memory: bool = False
    settings: Settings = DEFAULTS

    @property
    def plugin(self) -> str:
        """The device plugin that runs its code."""
        return self.plugin_name or self.backend

    @property
    def executes_streams(self) -> bool:
        """Return whether its plugin runs instruction streams; others get kernels of the host."""
        return self.plugin == "npu-sim"

    @property
    def machine(self) -> Machine:
        """Return the machine for which its code is made, with its measured facts.

        Raises `BraidError` for an unknown CPU.
        """
        return calibrated(self.shipped_machine)

    @property
    def shipped_machine(self) -> Machine:
        """The same as braid or the target's file describes it."""
        return cpu_machine(self.machine_name) if self.described is None else self.described


@dataclass(frozen=True)
class BackendDescription:
    """A target's description of a backend: what it can run, and how fast its devices are.

    `operations` is its mapping list: the ops it can run, and how much it is preferred for each.
    `launch_seconds` is what starting a kernel costs, 0 for what the machine of the device takes. An
    op passes through the `units` in their order; `memories` begin with the one in which an op's
    operands must be. `issue` is None for a backend that is not programmed by instructions, `pool`
    is None for one that runs one op at a time. `device` is the one that is asked about, see
    `Target.backend_of`.
    """

    name: str
    operations: tuple[MappingEntry, ...]
    launch_seconds: float
    units: tuple[Unit, ...]
    memories: tuple[Memory, ...]
    ports: tuple[SharedPort, ...] = ()
    issue: Issue | None = None
    pool: Pool | None = None
    device: Device | None = None

    @property
    def machine(self) -> Machine:
        """Return the machine for its code here, one without facts where no device is known."""
        return Machine(self.name) if self.device is None else self.device.machine

    def memory_of(self, unit: Unit) -> Memory | None:
        """Return where the operands of the ops of `unit` lie; None for a backend without
        memories.
        """
        named = (memory for memory in self.memories if memory.name == unit.memory)
        return next(named, self.memories[0] if self.memories else None)

    @cached_property
    def kinds(self) -> tuple[tuple[int, ...], ...]:
        """The numbers of the units that share the work of each unit, itself included, ascending."""
        alike: dict[Unit, list[int]] = {}
        for number, unit in enumerate(self.units):
            alike.setdefault(replace(unit, name=""), []).append(number)
        return tuple(tuple(alike[replace(unit, name="")]) for unit in self.units)

    def executes(self, number: int) -> Set[str]:
        """Return the kinds of instructions that a unit executes: `load`, `store`, `matrix`,
        `vector`.

        Without a unit for `store`, those that load from outside store as well.
        """
        own = self.units[number].resource
        loads = [n for n, unit in enumerate(self.units) if unit.resource == "load"]
        is_way_in = bool(loads) and number in self.kinds[loads[0]]
        if is_way_in and all(unit.resource != "store" for unit in self.units):
            return {own, "store"}
        return {own}

    def supports(self, operation: str) -> bool:
        """Return whether an op of this name, such as `braid.conv`, can run here."""
        return any(entry.names(operation) for entry in self.operations)


def hosted(devices: Sequence[Device], host: str) -> tuple[Device, ...]:
    """Return `devices` of one target, all of which refer to the one called `host`."""
    (own,) = (device for device in devices if device.name == host)
    return tuple(device if device.name == host else replace(device, host=own) for device in devices)


@dataclass(frozen=True)
class Target:
    """Machines to compile for.

    `host` names the device that runs `@main`, and whatever no other device supports.
    """

    name: str
    backends: tuple[BackendDescription, ...]
    devices: tuple[Device, ...]
    links: tuple[Link, ...]
    host: str

    def backend(self, name: str) -> BackendDescription:
        """Return the backend of this name. Raises `BraidError` if there is none."""
        for backend in self.backends:
            if backend.name == name:
                return backend
        known = ", ".join(f"'{backend.name}'" for backend in self.backends)
        raise BraidError(f"target '{self.name}' has no backend '{name}', only {known}")

    def device(self, name: str) -> Device:
        """Return the device of this name, such as `cpu:0`. Raises `BraidError` if there is none."""
        for device in self.devices:
            if device.name == name:
                return device
        known = ", ".join(f"'{device.name}'" for device in self.devices)
        raise BraidError(
            f"target '{self.name}' has no device '{name}', only {known}",
            hint=f"compile for the target that has it ({option_text('target')}), or write another "
            "'braid.device'",
        )

    def device_with(self, backend: str) -> Device:
        """Return the first device of a backend. Raises `BraidError` if there is none."""
        known = self.backend(backend)
        for device in self.devices:
            if device.backend == known.name:
                return device
        raise BraidError(f"target '{self.name}' has no device of backend '{backend}'")

    def device_for(self, backend: str | None) -> Device:
        """Return the first device of a backend, or the default device where none is named.

        Raises `BraidError` if the backend has none.
        """
        return self.default_device if backend is None else self.device_with(backend)

    @property
    def host_device(self) -> Device:
        """The device that runs `@main`."""
        return self.device(self.host)

    @property
    def settings(self) -> Settings:
        """The settings of the module that it is the target of."""
        return self.host_device.settings

    @property
    def default_device(self) -> Device:
        """Return the device for ops without one: the only device of another backend, else the
        host."""
        own = self.host_device.backend
        others = [device for device in self.devices if device.backend != own]
        return others[0] if len(others) == 1 else self.host_device

    def is_launched(self, devices: Iterable[str]) -> bool:
        """Return whether a model that runs on `devices` launches functions, and is not one
        program.
        """
        own = self.default_device
        launched = own.own_memory or own.executes_streams
        return any(name != own.name or launched for name in devices)

    @property
    def default_backend(self) -> BackendDescription:
        """The backend of the default device, as it is there."""
        return self.backend_of(self.default_device)

    def backend_of(self, device: Device) -> BackendDescription:
        """Return the description of a device's backend, with the device and its own memories."""
        backend = self.backend(device.backend)
        return replace(backend, memories=device.memories or backend.memories, device=device)

    def with_settings(self, settings: Settings) -> "Target":
        """Return the same target for a module with these settings."""
        return self if settings == self.settings else _set(self, settings)

    def with_cpu(self, cpu: str) -> "Target":
        """Return the same target with another CPU as its host, in the spelling of `cpu_machine`.

        Raises `BraidError` for an unknown CPU.
        """
        machine = cpu_machine(cpu)
        devices = tuple(
            replace(device, machine_name=cpu, described=machine)
            if device.name == self.host
            else device
            for device in self.devices
        )
        return replace(self, devices=hosted(devices, self.host))

    def with_gpu(self, architecture: str) -> "Target":
        """Return the same target with GPUs of another architecture.

        Raises `BraidError` for an unknown one, and where the target has no GPU.
        """
        gpus = {device.name for device in self.devices if is_gpu(device.shipped_machine)}
        if not gpus:
            raise BraidError(
                f"target '{self.name}' has no GPU whose architecture could be '{architecture}'",
                hint=f"{option_text('target', 'gpu-emulated')} has one",
            )
        devices = tuple(
            replace(
                device,
                machine_name=architecture,
                described=with_architecture(device.shipped_machine, architecture),
            )
            if device.name in gpus
            else device
            for device in self.devices
        )
        return replace(self, devices=hosted(devices, self.host))


@lru_cache(maxsize=64)
def _set(target: Target, settings: Settings) -> Target:
    devices = tuple(replace(device, settings=settings) for device in target.devices)
    return replace(target, devices=hosted(devices, target.host))
