"""The mapping list of a backend: which ops it supports, with a priority each."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from braid.dialects.braid.attribute_checks import COMPUTE_TYPES
from braid.dialects.braid.dtypes import ELEMENT_TYPES
from braid.support.errors import did_you_mean
from braid.targets.machines.table import Table

EVERY_OP = "*"
BEST_PRIORITY = 1


@dataclass(frozen=True)
class MappingEntry:
    """An op that a backend supports, and how much it is preferred for it: 1 is best.

    `operation` is the name of an op (`braid.conv`, or `conv` for short), the kind of an opaque one,
    `relu` for `maximum` with 0, or `*` for all. The others restrict it, and are empty where they do
    not: the element types of the first operand, by their MLIR names; least and greatest values of
    measures (see `backend_support.measure`); and the values of attributes. With `is_own`, the
    priority was given for this entry, and not for the backend. `computes` is the type that the
    device computes such an op in, where that is not the op's, and `tolerance` by how much results
    may then differ, ‖y − ref‖∞ / ‖ref‖∞; without `computes`, the device converts by itself.
    """

    operation: str
    priority: int = BEST_PRIORITY
    types: tuple[str, ...] = ()
    at_least: tuple[tuple[str, float], ...] = ()
    at_most: tuple[tuple[str, float], ...] = ()
    attributes: tuple[tuple[str, str | int], ...] = ()
    is_own: bool = False
    computes: str = ""
    tolerance: float = 0.0

    def names(self, operation: str) -> bool:
        """Return whether it is about the op of this full name, or the opaque one of this kind."""
        return self.operation in (EVERY_OP, operation) or f"braid.{self.operation}" == operation

    @property
    def takes_every_op(self) -> bool:
        """Return whether the entry takes every op, without any condition."""
        return self.operation == EVERY_OP and not self.conditions

    @property
    def conditions(self) -> str:
        """Return what the entry asks for, such as `i8, kernel ≤ 5`; empty for nothing."""
        parts = [" or ".join(self.types)] if self.types else []
        parts += [f"{name} ≥ {value:g}" for name, value in self.at_least]
        parts += [f"{name} ≤ {value:g}" for name, value in self.at_most]
        parts += [f"{name} = {value}" for name, value in self.attributes]
        return ", ".join(parts)


def parse_mapping_list(table: Table) -> tuple[MappingEntry, ...]:
    """Parse `operations` of a backend: a list of names, or a table from names to entries.

    An entry is a priority, a table of what `MappingEntry` has, or a list of such tables. Entries of
    a list of names have the `priority` of the backend. Raises `BraidError` if it is malformed.
    """
    value = table.data.get("operations", [])
    if not isinstance(value, dict):
        priority = _priority(table, table.get("priority", int, BEST_PRIORITY))
        return tuple(
            MappingEntry(_checked_name(table, name), priority)
            for name in table.strings("operations")
        )
    if "priority" in table.data:
        raise table.error(
            "'priority' stands beside priorities of 'operations'",
            hint="give the priority of all other ops by '\"*\" = 3' in 'operations'",
        )
    entries: list[MappingEntry] = []
    for name, entry in cast(dict[str, Any], value).items():
        own = Table({name: entry}, f"{table.path}.operations", table.location)
        _checked_name(own, name)
        if isinstance(entry, int) and not isinstance(entry, bool):
            entries.append(MappingEntry(name, _priority(own, entry), is_own=True))
            continue
        tables = own.tables(name) if isinstance(entry, list) else [_table(own, name)]
        entries += [_entry(name, each) for each in tables]
    return tuple(entries)


def _table(table: Table, name: str) -> Table:
    if not isinstance(table.data[name], dict):
        raise table.error(
            f"'{name}' is {table.data[name]!r}, expected a priority, 1 the best, or a table"
        )
    return Table(table.data[name], f"{table.path}.{name}", table.location)


def _entry(name: str, table: Table) -> MappingEntry:
    measures = ("at_least", "at_most")
    table.expect_only("priority", "types", *measures, "attributes", "computes", "tolerance")
    least, most = _measures(table, "at_least"), _measures(table, "at_most")
    for bounded, value in least:
        if value > dict(most).get(bounded, value):
            raise table.error(f"'{bounded}' is to be at least {value:g}, and less than that")
    return MappingEntry(
        name,
        _priority(table, table.get("priority", int, BEST_PRIORITY)),
        _types(table),
        least,
        most,
        _attributes(table),
        is_own="priority" in table.data,
        computes=_computes(table),
        tolerance=table.positive("tolerance", float) if "tolerance" in table.data else 0.0,
    )


def _types(table: Table) -> tuple[str, ...]:
    """Return the element types that it is for; all where it names none."""
    types = table.strings("types")
    if "types" in table.data and not types:
        raise table.error("'types' is empty", hint="leave it out: then the entry is for all types")
    for unknown in set(types) - {*ELEMENT_TYPES}:
        raise table.error(
            f"'types' names '{unknown}', not an element type",
            hint=did_you_mean(unknown, ELEMENT_TYPES) or f"types are {', '.join(ELEMENT_TYPES)}",
        )
    return types


def _computes(table: Table) -> str:
    """Return the type that ops are computed in; the tolerance has to be given with it."""
    computes = table.get("computes", str, "")
    if not computes:
        return ""
    if computes not in COMPUTE_TYPES:
        raise table.error(f"'computes' is {computes!r}, expected one of {', '.join(COMPUTE_TYPES)}")
    if "tolerance" not in table.data:
        raise table.error(
            f"'computes = \"{computes}\"' stands without a tolerance",
            hint="by how much results may differ, ‖y − ref‖∞ / ‖ref‖∞: 'tolerance = 1e-2'",
        )
    return computes


def _measures(table: Table, key: str) -> tuple[tuple[str, float], ...]:
    given: Mapping[str, Any] = table.get(key, dict, {})
    own = Table(given, f"{table.path}.{key}", table.location)
    return tuple((name, own.get(name, float)) for name in given)


def _attributes(table: Table) -> tuple[tuple[str, str | int], ...]:
    given: Mapping[str, Any] = table.get("attributes", dict, {})
    for name, value in given.items():
        if not isinstance(value, str | int) or isinstance(value, bool):
            raise table.error(f"attribute '{name}' is {value!r}, expected a text or an integer")
    return tuple(given.items())


def _priority(table: Table, priority: int) -> int:
    if priority < BEST_PRIORITY:
        raise table.error(f"a priority is {priority}; 1 is the best, more is worse")
    return priority


def _checked_name(table: Table, name: str) -> str:
    if not name.strip():
        raise table.error("'operations' has an op without a name")
    return name
