"""Read the amounts that a declared cost has for the units of a backend, for costs and
simulators."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from xdsl.ir import Operation

from braid.analysis.diagnostics.locations import source_location
from braid.dialects.braid.opaque import Cost, OpaqueOp
from braid.support.errors import BraidError, did_you_mean
from braid.targets.machines.target import BackendDescription

AMOUNTS = ("flops", "bytes")
"""Resources for which a cost counts an amount; for others it counts seconds."""


@dataclass(frozen=True)
class Amount:
    """`seconds` on unit number `unit` or, if that is None, `work` on its resource."""

    unit: int
    seconds: float | None
    work: float = 0.0


def declared_amounts(op: Operation, cost: Cost, backend: BackendDescription) -> list[Amount]:
    """Return the amounts of `cost` of `op` for the units of `backend`, in their order.

    A plain number, or `seconds`, is work of the vector unit. Other names are those of units, or of
    resources; a resource means the first unit that has it. In addition to `seconds` any resource
    may be declared, such as energy, unless it looks like a misspelled one. Amounts declared for a
    unit and for its resource add up. Raises BraidError for a name that is neither a unit nor a
    resource nor a memory of the backend.
    """
    by_name = dict(cost) if isinstance(cost, Mapping) else {"seconds": cost}
    names = dict(_names(backend))
    found: dict[int, Amount] = {}
    for name, value in by_name.items():
        if name in names:
            unit = names[name]
            found[unit] = _added(found.get(unit), unit, name, value)
    if not found and "seconds" in by_name:
        found[_default_unit(backend)] = Amount(_default_unit(backend), by_name["seconds"])
    for name in sorted(by_name.keys() - names.keys() - _other_names(backend)):
        hint = did_you_mean(name, [*names, "seconds"])
        if hint or "seconds" not in by_name:
            raise _unknown(op, name, backend, hint or f"expected one of {', '.join(sorted(names))}")
    return [found[unit] for unit in sorted(found)]


def names_units(cost: Mapping[str, float], backend: BackendDescription) -> bool:
    """Return whether `cost` has seconds of a unit, by its name or resource, maybe misspelled."""
    names = dict(_names(backend)).keys() - {*AMOUNTS}
    return any(
        name in names or did_you_mean(name, sorted(names))
        for name in cost.keys() - {"seconds", *AMOUNTS}
    )


def _added(before: Amount | None, unit: int, name: str, value: float) -> Amount:
    """Return `value` for `name` added to what was declared for the unit before.

    Seconds win over work.
    """
    if name in AMOUNTS:
        return before or Amount(unit, None, value)
    known = before.seconds if before is not None else None
    return Amount(unit, value if known is None else known + value)


def _names(backend: BackendDescription) -> Iterator[tuple[str, int]]:
    """Yield the names that stand for units, each with the unit's number.

    Units that share their work have the number of the first one.
    """
    # If names repeat, the last one counts.
    first = sorted(enumerate(backend.units), key=lambda each: (not each[1].only_with, -each[0]))
    for number, unit in first:
        yield unit.resource, backend.kinds[number][0]
    resources = {unit.resource for unit in backend.units}
    for name, resource in (("flops", "vector"), ("bytes", "load")):
        if name not in resources and resource in resources:
            yield name, next(n for n, unit in enumerate(backend.units) if unit.resource == resource)
    for number, unit in enumerate(backend.units):
        yield unit.name, backend.kinds[number][0]


def _other_names(backend: BackendDescription) -> set[str]:
    return {"seconds", *AMOUNTS, *(memory.name for memory in backend.memories)}


def _default_unit(backend: BackendDescription) -> int:
    """Return the first unit that computes vectors, or else the first one."""
    kinds = [unit.resource for unit in backend.units]
    return next((kinds.index(kind) for kind in ("vector", "flops") if kind in kinds), 0)


def _unknown(op: Operation, name: str, backend: BackendDescription, hint: str) -> BraidError:
    what = f"opaque op '{op.kind.data}'" if isinstance(op, OpaqueOp) else f"'{op.name}' op"
    return BraidError(
        f"{what} declares '{name}', which is neither a unit nor a resource of "
        f"backend '{backend.name}'",
        location=source_location(op),
        hint=hint,
    )
