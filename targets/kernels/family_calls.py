"""Asking kernel families of other packages, whose mistakes are named as theirs.

Braid's own families are believed: what they raise is a bug of braid.
"""

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from xdsl.dialects.builtin import TensorType

from braid.analysis.diagnostics.locations import source_location
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.structure.parameter_expressions import ParameterExpressions
from braid.dialects.braid.attributes import layout_of
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.regions import FusedOp
from braid.support.errors import BraidError
from braid.targets.kernels.kernel_family import (
    LEVELS,
    Candidate,
    Extensible,
    Kernel,
    KernelFamily,
    Overlap,
    Selective,
)
from braid.targets.kernels.schedules import Entries, Schedule, ScheduleError

_PARTS, _CANDIDATE_PARTS = (
    tuple(name for name in vars(protocol) if not name.startswith("_"))
    for protocol in (KernelFamily, Candidate)
)
"""What the protocols ask of a family, and of its candidates."""


def check_families(families: Iterable[KernelFamily]) -> None:
    """Raises BraidError for a family that lacks a part of the protocol."""
    for family in families:
        if missing := _missing(family, _PARTS):
            raise BraidError(
                f"kernel family {_class_of(family)} has no {_listed(missing)}",
                hint="a family has a name, a version and 'match', as in the protocol KernelFamily",
            )


@dataclass(frozen=True)
class Match:
    """A family's candidate for a group; answers as it does, each question about layouts once.

    Schedules are entries here, as records have them: candidates are given their own class.
    """

    family: KernelFamily
    group: FusedOp
    candidate: Candidate[Any]

    @cached_property
    def layouts(self) -> Sequence[LayoutChoice]:
        """As in `Candidate`, without those that want to be transformed what is not known yet.

        Raises BraidError for a choice that does not fit the group.
        """
        with self._named("layouts"):
            choices = self.candidate.layouts
            if not is_own(self.family):
                for choice in choices:
                    _check_choice(choice, self.group)
        known = ParameterExpressions()
        return [choice for choice in choices if _is_available(choice, self.group, known)]

    def offers(self, choice: LayoutChoice) -> bool:
        """Whether `layouts` has `choice`."""
        if not isinstance(self.candidate, Selective):
            return choice in self.layouts
        with self._named("offers"):
            is_offered = self.candidate.offers(choice)
        return is_offered and _is_available(choice, self.group, ParameterExpressions())

    def takes_strides(self, choice: LayoutChoice) -> bool:
        """Whether the candidate can address the tensors as `choice` says they are stored."""
        if all(layout.strides is None for layout in (*choice.operands, *choice.results)):
            return True
        with self._named("takes_strides"):
            return self.candidate.takes_strides(choice)

    def seconds(self, choice: LayoutChoice) -> float:
        """As in `Candidate`."""
        with self._named("seconds"):
            return self.candidate.seconds(choice)

    def default_schedule(self) -> Entries:
        """The first of the schedules of level 0."""
        return self._default.entries

    def space(self, level: int) -> Iterator[Entries]:
        """As in `Candidate`."""
        with self._named("space"):
            yield from (_checked(each).entries for each in self.candidate.space(level))

    def takes(self, entries: Entries) -> bool:
        """Whether the space has the schedule, or the candidate takes it beside its space."""
        return self.refusal(entries) is None

    def refusal(self, entries: Entries) -> str | None:
        """Why the candidate makes no kernel by this schedule; None where it does."""
        if frozenset(entries.items()) in self._own_schedules:
            return None
        try:
            schedule = type(self._default).read(entries)
        except ScheduleError as error:
            return error.message
        with self._named("takes"):
            if isinstance(self.candidate, Extensible) and self.candidate.takes(schedule):
                return None
        return "its values are not in the space of the group"

    @cached_property
    def _own_schedules(self) -> frozenset[frozenset[tuple[str, int]]]:
        """Those of all levels; spaces from files ask about thousands."""
        every = (each for level in range(LEVELS) for each in self.space(level))
        return frozenset(frozenset(each.items()) for each in every)

    @cached_property
    def _default(self) -> Schedule:
        with self._named("space"):
            schedule = next(self.candidate.space(0), None)
            if schedule is None:
                raise TypeError("level 0 has no schedule, expected the default one")
            return _checked(schedule)

    def emit(self, symbol: str, entries: Entries) -> Kernel:
        """As in `Candidate`, without entries by the default schedule.

        Raises ScheduleError for entries that are no schedule of the family.
        """
        schedule = type(self._default).read(entries) if entries else self._default
        with self._named("emit"):
            kernel = self.candidate.emit(symbol, schedule)
            if not isinstance(kernel, Kernel):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise TypeError(f"it is {kernel!r}, expected a Kernel")
        return kernel

    def overlap(self) -> Overlap | None:
        """As in `Candidate`."""
        with self._named("overlap"):
            return self.candidate.overlap()

    def _named(self, method: str) -> AbstractContextManager[None]:
        return _named(self.family, method, self.group)


def match(family: KernelFamily, group: FusedOp) -> Match | None:
    """What `family` finds in `group`. Raises BraidError for a candidate without all parts."""
    with _named(family, "match", group):
        candidate = family.match(group)
        if candidate is None:
            return None
        if not is_own(family) and (missing := _missing(candidate, _CANDIDATE_PARTS)):
            raise TypeError(f"{type(candidate).__qualname__} has no {_listed(missing)}")
    return Match(family, group, candidate)


def _checked(schedule: object) -> Schedule:
    if not isinstance(schedule, Schedule):
        raise TypeError(f"a schedule is {schedule!r}, expected an instance of Schedule")
    return schedule


_BELIEVED = nullcontext()


def _named(family: KernelFamily, method: str, group: FusedOp) -> AbstractContextManager[None]:
    """Turns whatever the method of another package's family raises into a BraidError."""
    return _BELIEVED if is_own(family) else _explained(family, method, group)


@contextmanager
def _explained(family: KernelFamily, method: str, group: FusedOp) -> Generator[None]:
    try:
        yield
    except BraidError:
        raise
    except Exception as error:
        detail = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        ops = ", ".join(op.name for op in group.body.block.ops if op is not group.terminator)
        raise BraidError(
            f"kernel family '{family.name}' fails in '{method}' of a group of {ops}: {detail}",
            location=source_location(group),
            hint=f"mend {_class_of(family)}; braid --debug … shows where",
        ) from error


def _is_available(choice: LayoutChoice, group: FusedOp, known: ParameterExpressions) -> bool:
    """Whether all that is to be transformed is known at compile time, or transformed already."""
    return all(
        not layout.is_transformed or layout_of(value.type) == layout or known.is_known(value)
        for value, layout in zip(group.operands, choice.operands, strict=True)
    )


def _check_choice(choice: object, group: FusedOp) -> None:
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


def is_own(family: object) -> bool:
    """Whether `family` is braid's, which is believed."""
    return type(family).__module__.startswith("braid.")


def _class_of(family: object) -> str:
    return f"'{type(family).__module__}:{type(family).__qualname__}'"


def _missing(thing: object, parts: Sequence[str]) -> list[str]:
    own = getattr(thing, "__dict__", {})
    return [name for name in parts if not hasattr(type(thing), name) and name not in own]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)
