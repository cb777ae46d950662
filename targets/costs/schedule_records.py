"""The schedules that were searched for, in this user's record store.

A record is about a group in its layouts on a machine (`GroupKey`), with its tensors on their own.
What it says is checked against the spaces of the families when it is used, since other versions of
these may have other schedules.
"""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.strided_storage import stored_choice
from braid.dialects.braid.regions import FusedOp
from braid.support.record_store import Fields, Record, RecordStore, default_store
from braid.targets.kernels.kernel_schedule import KernelSchedule
from braid.targets.kernels.keys import GroupKey, stored_text
from braid.targets.machines.identity import processor_name
from braid.targets.machines.machine import Machine

SCHEDULE_KIND = "schedule"


@dataclass(frozen=True)
class TunedKernel:
    """What a search ended with: `seconds` of one run, and those of the default before it.

    `chosen` is None where the default schedule is the best that was found. `version` is that of the
    family. `what` tells people which kernel it is. `library` are the seconds of a vendor's kernel
    in the same layouts, None where none was measured; `keeps_library` says that it is the result.
    """

    chosen: KernelSchedule | None
    version: int
    seconds: float
    baseline: float
    what: str = ""
    library: float | None = None
    keeps_library: bool = False


def schedule_key(group: FusedOp, machine: Machine) -> str:
    """Digest of the `GroupKey` of `group` as if its tensors were not inside of larger ones."""
    dense = dense_choice(stored_choice(group))
    text = GroupKey.of(stored_text(group, dense), machine).text
    return hashlib.sha256(text.encode()).hexdigest()


def dense_choice(choice: LayoutChoice) -> LayoutChoice:
    """The same layouts, of tensors on their own."""
    return LayoutChoice(
        tuple(layout.with_strides(None) for layout in choice.operands),
        tuple(layout.with_strides(None) for layout in choice.results),
    )


def load_tuned(store: RecordStore | None = None) -> Mapping[str, TunedKernel]:
    """By `schedule_key`, what is in a store, by default the user's; rows that do not hold not."""
    found = (store or default_store()).read(SCHEDULE_KIND)
    read = {key: _read(value) for key, value in found.items()}
    return {key: kernel for key, kernel in read.items() if kernel is not None}


def append_tuned(key: str, kernel: TunedKernel, store: RecordStore | None = None) -> None:
    """Adds a row. Raises BraidError where the store cannot be written."""
    chosen = kernel.chosen
    value = {
        "family": None if chosen is None else chosen.family,
        "schedule": {} if chosen is None else dict(chosen.items),
        "version": kernel.version,
        "seconds": kernel.seconds,
        "baseline": kernel.baseline,
        "what": kernel.what,
        "library": kernel.library,
        "keeps_library": kernel.keeps_library,
    }
    (store or default_store()).append([Record(SCHEDULE_KIND, key, value, processor_name())])


def _read(value: Fields) -> TunedKernel | None:
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
    return TunedKernel(chosen, version, seconds, baseline, what, known, keeps)
