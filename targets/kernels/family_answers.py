"""Check the answers of families of other packages; see `checked_calls.py`."""

import math
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, cast

from xdsl.dialects.builtin import TensorType

from braid.analysis.diagnostics.locations import source_location
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.regions import FusedOp
from braid.support.checked_calls import (
    Check,
    Checked,
    FormerNames,
    Maker,
    all_of,
    class_of,
    missing_parts,
    one_of,
    require_parts,
)
from braid.support.errors import BraidError
from braid.targets.kernels.kernel_family import (
    Candidate,
    Kernel,
    KernelFamily,
    OpenCandidate,
    Overlap,
)
from braid.targets.kernels.schedules import Schedule

NONE = type(None)

FORMER_NAMES: FormerNames = {
    "rejects_fusion": "prefers_parts",
    "supports_layout": "offers",
    "supports_open_layout": "makes",
    "supports_schedule": "takes",
    "supports_strides": "takes_strides",
}
"""The former names of parts of `KernelFamily` and of candidates, which families of other packages
may still use."""


def check_families(families: Iterable[KernelFamily]) -> None:
    """Raise BraidError for a family that lacks a part without a default."""
    for family in families:
        if missing := missing_parts(family, KernelFamily):
            raise BraidError(
                f"kernel family {class_of(family)} has no {missing}",
                hint="a family has a name, a version and 'match', as 'KernelFamily' says",
            )


def checked_family(family: KernelFamily, group: FusedOp | None = None) -> KernelFamily:
    """Return `family`, wrapped so that answers about `group` of another package's family are
    checked."""
    maker = Maker(f"kernel family '{family.name}'", family)
    if group is not None:
        ops = ", ".join(op.name for op in group.body.block.ops if op is not group.terminator)
        about, location = f" of a group of {ops}", source_location(group)
        maker = Maker(maker.title, family, about, location)
    checks: Mapping[str, Check] = {
        "match": partial(_candidate, maker),
        "match_open": partial(_open_candidate, maker),
        "rejects_fusion": one_of(bool),
        "reorder_seconds": _seconds_or_none,
        "anchors": _kinds,
    }
    return cast(KernelFamily, Checked(family, KernelFamily, checks, maker, FORMER_NAMES))


def _candidate(maker: Maker, answer: Any, group: FusedOp) -> Candidate[Any] | None:
    if answer is None:
        return None
    require_parts(answer, Candidate)
    checks = {**_CANDIDATE, "layouts": partial(_choices, group)}
    return cast(Candidate[Any], Checked(answer, Candidate, checks, maker, FORMER_NAMES))


def _open_candidate(maker: Maker, answer: Any, group: FusedOp) -> OpenCandidate | None:
    if answer is None:
        return None
    require_parts(answer, OpenCandidate, FORMER_NAMES)
    checks: Mapping[str, Check] = {"supports_open_layout": one_of(bool), "emit": one_of(Kernel)}
    return cast(OpenCandidate, Checked(answer, OpenCandidate, checks, maker, FORMER_NAMES))


def _choices(group: FusedOp, answer: Iterable[object]) -> list[LayoutChoice]:
    return [_choice(group, each) for each in answer]


def _choice(group: FusedOp, choice: object) -> LayoutChoice:
    if not isinstance(choice, LayoutChoice):
        raise TypeError(f"{choice!r} is not a LayoutChoice")
    for what, chosen, values in (
        ("operands", choice.operands, group.operands),
        ("results", choice.results, group.results),
    ):
        if len(chosen) != len(values):
            raise ValueError(f"a choice has {len(chosen)} {what}, the group has {len(values)}")
        for index, (layout, value) in enumerate(zip(chosen, values, strict=True)):
            rank = len(shape_of(value)) if isinstance(value.type, TensorType) else 0
            if layout.rank != rank:
                raise ValueError(
                    f"'{layout}' for number {index} of the {what} has rank {layout.rank}, "
                    f"expected {rank}"
                )
    return choice


def _seconds(answer: Any, *_: Any) -> float:
    seconds = float(answer)
    if not 0 <= seconds < math.inf:
        raise ValueError(f"it is {seconds}, expected a number of seconds")
    return seconds


def _seconds_or_none(answer: Any, *_: Any) -> float | None:
    return None if answer is None else _seconds(answer)


def _kinds(answer: Any, *_: Any) -> tuple[type, ...] | None:
    return None if answer is None else all_of(type)(answer)


def _schedules(answer: Iterable[object], level: int) -> Iterator[Schedule]:
    is_empty = True
    for schedule in answer:
        is_empty = False
        if not isinstance(schedule, Schedule):
            raise TypeError(f"a schedule is {schedule!r}, expected an instance of Schedule")
        yield schedule
    if is_empty and level == 0:
        raise TypeError("level 0 has no schedule, expected the default one")


_CANDIDATE: Mapping[str, Check] = {
    "supports_layout": one_of(bool),
    "supports_strides": one_of(bool),
    "supports_open_layout": one_of(bool),
    "seconds": _seconds,
    "space": _schedules,
    "supports_schedule": one_of(bool),
    "emit": one_of(Kernel),
    "overlap": one_of(Overlap, NONE),
}
