"""Convert amounts of a resource to seconds, by the rates of a device; only here.

Rates of a backend's units come from the target's file. Units without a rate there, and the times of
starts and joins, are facts of the device's machine, preferably measured ones.
"""

from collections.abc import Mapping

from braid.support.errors import BraidError
from braid.targets.machines.calibration import flops_fact
from braid.targets.machines.target import BackendDescription, Unit

_FACTS = {"flops": "flops", "bytes": "memory_bandwidth"}
"""Facts of machines by resource."""


class DeviceRates:
    """The rates of the device that `backend` is of."""

    def __init__(self, backend: BackendDescription) -> None:
        self.backend = backend
        self.machine = backend.machine
        """The device's machine, with its measured facts."""
        self.launch_seconds = backend.launch_seconds or self.machine.fact("launch_seconds", 0.0)
        """The seconds that starting a kernel takes."""
        self._rates: dict[tuple[str, str], float] = {}

    def rate(self, resource: str, element_type: str = "f32") -> float:
        """Return how much of `resource` the first unit for it does in a second, with those that are
        alike.

        `element_type` is what is computed with. A backend without units has the `flops` and `bytes`
        of its machine. Raises BraidError where nothing says how fast it is.
        """
        key = (resource, element_type)
        if key not in self._rates:
            own = [n for n, unit in enumerate(self.backend.units) if unit.resource == resource]
            self._rates[key] = (
                self._shared_rate(own[0], element_type)
                if own
                else self._fact(resource, element_type)
            )
        return self._rates[key]

    def unit_rate(self, unit: Unit, element_type: str = "f32") -> float:
        """Return how much of its resource one unit does in a second, alone on its port.

        Raises BraidError as `rate`.
        """
        rate = unit.rate or self._fact(unit.resource, element_type)
        return min([rate, *(p.bandwidth for p in self.backend.ports if p.name == unit.port)])

    def crowded_ports(self) -> list[str]:
        """Return the ports through which their units together could move more than passes."""
        found: list[str] = []
        for port in self.backend.ports:
            own = [unit for unit in self.backend.units if unit.port == port.name]
            if sum(map(self.unit_rate, own)) > port.bandwidth * (1 + 1e-9):
                found.append(port.name)
        return found

    def unit_seconds(self, unit: Unit, amount: float, element_type: str = "f32") -> float:
        """Return how long `unit` takes for `amount` of its resource."""
        return unit.startup_seconds + amount / self.unit_rate(unit, element_type)

    def roofline_seconds(self, amounts: Mapping[str, float], element_type: str = "f32") -> float:
        """Return what takes these amounts of resources, by name, needs at least: units work side by
        side.

        With `flops` and `bytes` alone that is the roofline model (S. Williams, A. Waterman, D.
        Patterson, "Roofline: An Insightful Visual Performance Model", 2009).
        """
        return max(self.roofline_parts(amounts, element_type).values(), default=0.0)

    def roofline_parts(
        self, amounts: Mapping[str, float], element_type: str = "f32"
    ) -> dict[str, float]:
        """Return the seconds of each resource alone; their maximum is the roofline."""
        backend = self.backend
        if not backend.units:
            return {r: amounts[r] / self.rate(r, element_type) for r in _FACTS if amounts.get(r)}
        parts: dict[str, float] = {}
        for n, unit in enumerate(backend.units):
            if (
                backend.kinds[n][0] == n
                and amounts.get(unit.resource)
                # Such a unit takes part only in ops that use that resource.
                and (not unit.only_with or amounts.get(unit.only_with))
            ):
                work = amounts[unit.resource] / self._shared_rate(n, element_type)
                seconds = unit.startup_seconds + work
                parts[unit.resource] = max(parts.get(unit.resource, 0.0), seconds)
        return parts

    def seconds_on_all(self, seconds: float, count: int) -> float:
        """Return how long an op of this many `seconds` takes on `count` processors of the pool at
        once.
        """
        pool, fact = self.backend.pool, self.machine.fact
        if pool is None or count == 1:
            return seconds
        join, efficiency = pool.join_seconds, pool.efficiency
        join = fact("join_seconds", 0.0) if join is None else join
        efficiency = fact("thread_efficiency", 1.0) if efficiency is None else efficiency
        return join + seconds / (1 + (count - 1) * efficiency)

    def _shared_rate(self, number: int, element_type: str) -> float:
        """Return the rate of a unit and of those that share its work."""
        backend = self.backend
        return len(backend.kinds[number]) * self.unit_rate(backend.units[number], element_type)

    def _fact(self, resource: str, element_type: str) -> float:
        """Return the machine's fact about `resource`."""
        rate = self.machine.fact(_FACTS[resource], 0.0) if resource in _FACTS else 0.0
        if resource == "flops":
            rate = self.machine.fact(flops_fact(element_type), rate)
        if not rate:
            known = sorted({unit.resource for unit in self.backend.units})
            raise BraidError(
                f"backend '{self.backend.name}' has no unit for '{resource}', only {known}",
                hint=f"nor has machine '{self.machine.name}' a fact about it; give a "
                "[[backend.unit]] a rate",
            )
        return rate
