"""The schedules that were searched for, in this user's record store.

A record is about a group in its layouts on a machine (`GroupKey`), with its tensors on their own.
Its schedule is checked against the spaces of the families when it is used, since other versions of
these may have other schedules.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from braid.support.records.record_store import Fields, Record, RecordStore, default_store
from braid.targets.kernels.kernel_family import LEVELS, LIBRARIES
from braid.targets.kernels.kernel_schedule import KernelSchedule
from braid.targets.kernels.searched_groups import SCHEDULE_KIND
from braid.targets.machines.identity import processor_name

MEASURED = "measured time"
"""The quantity of the seconds in records that name no other."""


@dataclass(frozen=True)
class TunedKernel:
    """The result of a search: `seconds` of one run, and the seconds of the default schedule before
    it.

    `chosen` is None if the default schedule is the best that was found. `version` is that of the
    family. `what` describes the kernel for people. `library` are the seconds of a vendor's kernel
    in the same layouts, None where none was measured; `keeps_library` says that it is the result,
    and `vendor` names its family. `measure` is the kind of time, see `KernelMeter`. The search was
    one through up to this many `levels`; `body` is the `body_key` of the group. `steps` are those
    of the search, by the names of their fields; `refused` says why schedules that were tried do not
    count.
    """

    chosen: KernelSchedule | None
    version: int
    seconds: float
    baseline: float
    what: str = ""
    library: float | None = None
    keeps_library: bool = False
    levels: int = LEVELS
    body: str = ""
    vendor: str = LIBRARIES[0]
    measure: str = MEASURED
    steps: tuple[Fields, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def gain(self) -> float:
        """Return what a generated kernel takes now, as a part of what it takes by default."""
        return self.seconds / self.baseline if self.baseline else 1.0


def load_tuned(store: RecordStore | None = None) -> Mapping[str, TunedKernel]:
    """Return by `schedule_key` the records of a store, by default the user's, without
    invalid rows.
    """
    return _read_from(store or default_store()).kernels


class _Loaded(NamedTuple):
    """The rows of a store, with the kernels that valid ones describe."""

    rows: Mapping[str, Fields]
    kernels: Mapping[str, TunedKernel]


_loaded: list[_Loaded] = []
"""The rows that were read last; empty before the first reading."""


def _read_from(store: RecordStore) -> _Loaded:
    rows = store.read(SCHEDULE_KIND)
    if not _loaded or _loaded[0].rows is not rows:
        read = {key: tuned_kernel(value) for key, value in rows.items()}
        kernels = {key: kernel for key, kernel in read.items() if kernel is not None}
        _loaded[:] = [_Loaded(rows, kernels)]
    return _loaded[0]


def append_tuned(key: str, kernel: TunedKernel, store: RecordStore | None = None) -> None:
    """Add a row. Raises BraidError where the store cannot be written."""
    value = fields_of(kernel)
    (store or default_store()).append([Record(SCHEDULE_KIND, key, value, processor_name())])


def fields_of(kernel: TunedKernel) -> Fields:
    """Return the value of a row that describes `kernel`."""
    chosen = kernel.chosen
    return {
        "family": None if chosen is None else chosen.family,
        "schedule": {} if chosen is None else dict(chosen.items),
        "version": kernel.version,
        "seconds": kernel.seconds,
        "baseline": kernel.baseline,
        "what": kernel.what,
        "library": kernel.library,
        "keeps_library": kernel.keeps_library,
        "levels": kernel.levels,
        "body": kernel.body,
        "vendor": kernel.vendor,
        "measure": kernel.measure,
        "steps": list(kernel.steps),
        "refused": dict(kernel.refused),
    }


def tuned_kernel(value: Fields) -> TunedKernel | None:
    """Return the record of a row with this value; None if it is invalid."""
    family, schedule = value.get("family"), value.get("schedule")
    seconds, baseline = value.get("seconds"), value.get("baseline")
    if not (
        (family is None or isinstance(family, str))
        and isinstance(schedule, dict)
        and isinstance(version := value.get("version"), int)
        and isinstance(seconds, float)
        and isinstance(baseline, float)
        and 0 <= seconds < math.inf
        and 0 <= baseline < math.inf
    ):
        return None
    entries = cast("dict[str, object]", schedule)
    integers = {name: entry for name, entry in entries.items() if isinstance(entry, int)}
    if len(integers) != len(entries):
        return None
    chosen = None if family is None else KernelSchedule.of(family, integers)
    library = value.get("library")
    known = library if isinstance(library, float) and 0 <= library < math.inf else None
    keeps = known is not None and value.get("keeps_library") is True
    what = str(value.get("what", ""))
    levels, body = value.get("levels", LEVELS), str(value.get("body", ""))
    vendor, measure = str(value.get("vendor", LIBRARIES[0])), str(value.get("measure", MEASURED))
    if not isinstance(levels, int):
        return None
    return TunedKernel(
        chosen,
        version,
        seconds,
        baseline,
        what,
        known,
        keeps,
        levels,
        body,
        vendor,
        measure,
        tuple(map(_table, _listed(value.get("steps")))),
        {name: str(why) for name, why in _table(value.get("refused")).items()},
    )


def _listed(value: object) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _table(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
