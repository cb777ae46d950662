"""Every figure of a target's devices, as shipped and as measured, and where each is from."""

from collections.abc import Iterator
from dataclasses import dataclass

from braid.targets.machines.calibration import Calibration, load_calibration
from braid.targets.machines.cpus import fact_origin
from braid.targets.machines.machine import Machine
from braid.targets.machines.target import BackendDescription, Device, Target


@dataclass(frozen=True)
class Figure:
    """A fact of a device: in bytes, per second, or in seconds, as its name says.

    `shipped` comes from `origin`, `measured` from the run that `detail` describes; None is unknown.
    """

    name: str
    shipped: float | None
    origin: str
    measured: float | None = None
    detail: str = ""

    @property
    def value(self) -> float | None:
        """Return the value on which costs are based: the measured one, else the shipped one."""
        return self.shipped if self.measured is None else self.measured


def figures_of(device: Device, target: Target) -> tuple[Figure, ...]:
    """Return the facts of the device's machine, and the time to start kernels there, by name.

    Raises `BraidError` for an unknown CPU.
    """
    machine, backend = device.shipped_machine, target.backend_of(device)
    calibration = load_calibration(machine) or Calibration({}, {})
    origin = f"target '{target.name}'"
    shipped = {name: (value, _origin(machine, name, origin)) for name, value in machine.facts}
    described = {name: (value, origin) for name, value in _of_backend(backend)}
    names = sorted({*shipped, *described, *calibration.facts})
    # Facts in a target's file take precedence over measured ones.
    return tuple(
        Figure(name, *described[name])
        if name in described
        else _figure(name, shipped.get(name), calibration)
        for name in names
    )


def _figure(name: str, shipped: tuple[float, str] | None, calibration: Calibration) -> Figure:
    value, origin = (None, "") if shipped is None else shipped
    measured = calibration.facts.get(name)
    return Figure(name, value, origin, measured, calibration.details.get(name, ""))


def _origin(machine: Machine, name: str, target: str) -> str:
    return (fact_origin(machine, name) if machine.cpu else "") or target


def _of_backend(backend: BackendDescription) -> Iterator[tuple[str, float]]:
    """Yield the facts in the target's file."""
    pool = backend.pool
    given = {
        "launch_seconds": backend.launch_seconds or None,
        "join_seconds": None if pool is None else pool.join_seconds,
        "thread_efficiency": None if pool is None else pool.efficiency,
    }
    yield from ((name, value) for name, value in given.items() if value is not None)
