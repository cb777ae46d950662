"""The family and the schedule of the kernel of a group: `braid.schedule`.

```mlir
%y = braid.fused(%x, %w) {braid.schedule = {family = "gemm", schedule = {rows = 4, …}}} : …
```
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute, Operation

from braid.analysis.diagnostics.locations import source_location
from braid.analysis.structure.verification import InvalidIRError
from braid.dialects.braid.attribute_names import SCHEDULE
from braid.targets.kernels.family_names import current_name
from braid.targets.kernels.group_matches import Match
from braid.targets.kernels.schedules import Entries


@dataclass(frozen=True)
class KernelSchedule:
    """A schedule of the family of this name; `items` are its entries, sorted."""

    family: str
    items: tuple[tuple[str, int], ...]

    @staticmethod
    def of(family: str, schedule: Entries) -> "KernelSchedule":
        """Return the schedule in a form that can be compared and hashed."""
        return KernelSchedule(current_name(family), tuple(sorted(schedule.items())))

    @property
    def schedule(self) -> Entries:
        """The schedule as `Match` takes it."""
        return dict(self.items)

    def __str__(self) -> str:
        entries = " ".join(f"{name}={value}" for name, value in self.items)
        return f"{self.family} {entries}".strip()


def schedule_of(op: Operation) -> KernelSchedule | None:
    """Return the schedule in `braid.schedule`; None without that attribute.

    Raises InvalidIRError where it is not a family's name and a dictionary of integers.
    """
    attribute = op.attributes.get(SCHEDULE)
    if attribute is None:
        return None
    none: Mapping[str, Attribute] = {}
    fields = attribute.data if isinstance(attribute, DictionaryAttr) else none
    family, schedule = fields.get("family"), fields.get("schedule")
    if (
        fields.keys() == {"family", "schedule"}
        and isinstance(family, StringAttr)
        and isinstance(schedule, DictionaryAttr)
        and all(isinstance(value, IntegerAttr) for value in schedule.data.values())
    ):
        entries = cast("dict[str, IntegerAttr[Any]]", schedule.data)
        return KernelSchedule.of(
            family.data, {name: entry.value.data for name, entry in entries.items()}
        )
    raise InvalidIRError(
        f"'{SCHEDULE}' is {attribute}, expected a family's name and a schedule",
        location=source_location(op),
        hint='such as {family = "gemm", schedule = {rows = 4 : i64}}',
    )


def set_schedule(op: Operation, chosen: KernelSchedule) -> None:
    """Write `braid.schedule`."""
    entries = {name: IntegerAttr(value, i64) for name, value in chosen.items}
    op.attributes[SCHEDULE] = DictionaryAttr(
        {"family": StringAttr(chosen.family), "schedule": DictionaryAttr(entries)}
    )


def find_match(matches: Iterable[Match], chosen: KernelSchedule) -> Match | None:
    """Return the match that supports the schedule; None where none does."""
    for match in matches:
        if match.family.name == chosen.family and match.supports_schedule(chosen.schedule):
            return match
    return None
