"""Compute what an op does on the units of a chip: amounts for instructions and fast estimates."""

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue

from braid.analysis.storage.tensor_storage import is_addressing
from braid.dialects.braid.opaque import OpaqueOp
from braid.targets.costs.declared_units import Amount, declared_amounts
from braid.targets.costs.device_rates import DeviceRates
from braid.targets.costs.op_amounts import amounts_of
from braid.targets.machines.target import BackendDescription, Unit


@dataclass(frozen=True)
class UnitWork:
    """`amount` of its resource (bytes or scalar operations) on unit number `unit`.

    If units share their work, it is the first of them, and represents all. `declared` is its time
    in seconds, if it is declared.
    """

    unit: int
    amount: int
    declared: float | None = None


@dataclass(frozen=True)
class Transfers:
    """The units between the chip and the memory outside, and the bytes that the chip holds."""

    load: int
    store: int
    capacity: int


def transfers_of(backend: BackendDescription) -> Transfers | None:
    """Return how data gets onto the chip; None for a backend whose ops read any memory themselves.

    The first unit that loads is the way in, the last one that stores the way out, and the first
    memory is the one between them. Without a unit that stores, the one that loads stores as well.
    """
    loads = [n for n, unit in enumerate(backend.units) if unit.resource == "load"]
    stores = [n for n, unit in enumerate(backend.units) if unit.resource == "store"]
    if not loads or not backend.memories:
        return None
    store = backend.kinds[stores[-1]][0] if stores else loads[0]
    return Transfers(loads[0], store, backend.memories[0].bytes)


def distinct_units(backend: BackendDescription) -> Iterator[tuple[int, Unit]]:
    """Yield the units by their numbers; units that share their work are represented by the
    first."""
    for number, unit in enumerate(backend.units):
        if backend.kinds[number][0] == number:
            yield number, unit


def is_declared(op: Operation) -> bool:
    """Return whether `op` declares all of its costs, including those of moves."""
    return isinstance(op, OpaqueOp) and op.declared_cost is not None


def steps_of(op: Operation, backend: BackendDescription) -> tuple[UnitWork, ...]:
    """Return the steps of `op` with operands on the chip, in order; none for addressing.

    An op without tensors, such as the condition of a branch, runs on the host. Raises
    UnsupportedError for open dims, and BraidError for a declared resource that the backend does not
    have.
    """
    if is_addressing(op) or not any(map(_is_tensor, (*op.operands, *op.results))):
        return ()
    if isinstance(op, OpaqueOp) and op.declared_cost is not None:
        amounts = declared_amounts(op, op.declared_cost, backend)
        return tuple(_declared_step(amount, backend) for amount in amounts)
    amounts = amounts_of(op, static=True).by_resource
    outside = transfers_of(backend)
    steps: list[UnitWork] = []
    for number, unit in distinct_units(backend):
        if unit.only_with and not amounts.get(unit.only_with):
            continue
        if outside is not None and number in (outside.load, outside.store):
            continue
        amount = amounts.get(unit.resource, 0) if unit.resource != "store" else 0
        if amount:
            steps.append(UnitWork(number, int(amount)))
    return tuple(steps)


def step_seconds(step: UnitWork, rates: DeviceRates) -> float:
    """Return how long `step` takes where nothing else uses the unit's port."""
    if step.declared is not None:
        return step.declared
    return rates.unit_seconds(rates.backend.units[step.unit], step.amount)


def _declared_step(amount: Amount, backend: BackendDescription) -> UnitWork:
    if amount.seconds is None:
        return UnitWork(amount.unit, round(amount.work))
    unit = backend.units[amount.unit]
    left = max(amount.seconds - unit.startup_seconds, 0.0)
    return UnitWork(amount.unit, round(left * unit.rate), amount.seconds)


def _is_tensor(value: SSAValue) -> bool:
    return isinstance(value.type, TensorType)
