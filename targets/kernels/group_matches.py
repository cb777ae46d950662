"""Find the kernel families that take a group, each asked once."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from xdsl.ir import Attribute, Operation, SSAValue

from braid.analysis.sizes.open_forms import is_bound, open_form
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.structure.parameter_expressions import ParameterExpressions
from braid.dialects.braid.attribute_names import STREAM
from braid.dialects.braid.attributes import layout_of
from braid.dialects.braid.regions import FusedOp
from braid.support.checked_calls import is_own
from braid.targets.kernels.equal_groups import AttributeNumbers
from braid.targets.kernels.family_answers import check_families, checked_family
from braid.targets.kernels.kernel_family import (
    GENERIC,
    LEVELS,
    Candidate,
    Kernel,
    KernelFamily,
    OpenCandidate,
)
from braid.targets.kernels.schedules import Entries, Schedule, ScheduleError

_State = tuple[str | int | Operation | SSAValue, ...]


@dataclass(frozen=True)
class Match:
    """A group with the candidate of `family` for it, and facts derived from its answers.

    Schedules are entries here, as in records; candidates get instances of their own class. For a
    group that is bound at likely sizes, `at_all_sizes` emits the kernel for open sizes.
    """

    family: KernelFamily
    group: FusedOp
    candidate: Candidate[Any]
    at_all_sizes: OpenCandidate | None = None

    @cached_property
    def layouts(self) -> Sequence[LayoutChoice]:
        """The layouts of the candidate in which only weights are stored transformed."""
        known = ParameterExpressions()
        offered = (c for c in self.candidate.layouts if _is_available(c, self.group, known))
        return [choice for choice in offered if self._is_made(choice)]

    def supports_layout(self, choice: LayoutChoice) -> bool:
        """Return whether `layouts` has `choice`, and the candidate addresses its strides."""
        return (
            self.candidate.supports_layout(choice)
            and _is_available(choice, self.group, ParameterExpressions())
            and (_is_dense(choice) or self.candidate.supports_strides(choice))
            and self._is_made(choice)
        )

    def _is_made(self, choice: LayoutChoice) -> bool:
        return self.at_all_sizes is None or self.at_all_sizes.supports_open_layout(choice)

    def default_schedule(self) -> Entries:
        """Return the first of the schedules of level 0."""
        return self._default.entries

    def space(self, level: int) -> Iterator[Entries]:
        """Return the schedules of one level."""
        return (schedule.entries for schedule in self.candidate.space(level))

    def supports_schedule(self, entries: Entries) -> bool:
        """Return whether the candidate supports this schedule."""
        return self.unsupported_reason(entries) is None

    def unsupported_reason(self, entries: Entries) -> str | None:
        """Return why the candidate does not support this schedule; None where it does."""
        if frozenset(entries.items()) in self._own_schedules:
            return None
        try:
            schedule = type(self._default).read(entries)
        except ScheduleError as error:
            return error.message
        is_taken = self.candidate.supports_schedule(schedule)
        return None if is_taken else "its values are not in the space of the group"

    def emit(self, symbol: str, entries: Entries) -> Kernel:
        """Emit the kernel by this schedule, or by the default one without entries.

        Raises ScheduleError for entries that are no schedule of the family.
        """
        schedule = type(self._default).read(entries) if entries else self._default
        return (self.at_all_sizes or self.candidate).emit(symbol, schedule)

    @cached_property
    def _default(self) -> Schedule:
        return next(self.candidate.space(0))

    @cached_property
    def _own_schedules(self) -> frozenset[frozenset[tuple[str, int]]]:
        """The schedules of all levels; kept, since spaces from files ask about thousands."""
        every = (each for level in range(LEVELS) for each in self.space(level))
        return frozenset(frozenset(each.items()) for each in every)


def asked(family: KernelFamily, group: FusedOp | None = None) -> KernelFamily:
    """Return `family`, wrapped with checks if it is of another package, for `group`."""
    return family if is_own(family) else checked_family(family, group)


def match_group(family: KernelFamily, group: FusedOp) -> Match | None:
    """Return what `family` finds in `group`.

    Raises BraidError if a family of another package fails, or its candidate lacks a part.
    """
    return _Question(group).answer_of(family)


class _Question:
    """Asks families about a group; about the open form of a group that is bound, too."""

    def __init__(self, group: FusedOp) -> None:
        self._group = group

    def answer_of(self, family: KernelFamily) -> Match | None:
        """Return what a family finds, in the group and where its sizes are open."""
        group = self._group
        candidate = asked(family, group).match(group)
        if candidate is None or not self._is_bound:
            return None if candidate is None else Match(family, group, candidate)
        if self._open_form is None:
            return None
        at_all_sizes = asked(family, self._open_form).match_open(self._open_form)
        if at_all_sizes is None or not any(
            map(at_all_sizes.supports_open_layout, candidate.layouts)
        ):
            return None
        return Match(family, group, candidate, at_all_sizes)

    @cached_property
    def _is_bound(self) -> bool:
        return is_bound(self._group)

    @cached_property
    def _open_form(self) -> FusedOp | None:
        return open_form(self._group)


class GroupMatches:
    """Remembers the candidates of families for groups; each pass makes one of its own.

    Families are asked once for each group, and again when it has changed. A pass that tries a
    decision and takes it back asks nothing again.
    """

    def __init__(self, families: Iterable[KernelFamily]) -> None:
        """Take families in order of preference. Raises BraidError for one that lacks a part."""
        self.families = tuple(families)
        check_families(self.families)
        self._anchors = [asked(family).anchors for family in self.families]
        self._matches: dict[_State, tuple[Match, ...]] = {}
        self._numbers = AttributeNumbers()

    def of(self, group: FusedOp) -> tuple[Match, ...]:
        """Return the candidates of all families that take `group`."""
        state = tuple(_state(group, self._numbers.of))
        if state not in self._matches:
            # The kernel of a stream is the stream.
            families = () if STREAM in group.attributes else self._asked(group)
            found = map(_Question(group).answer_of, families)
            self._matches[state] = tuple(each for each in found if each is not None)
        return self._matches[state]

    def _asked(self, group: FusedOp) -> list[KernelFamily]:
        """Return the families that may take `group`."""
        kinds = {kind for op in group.body.block.ops for kind in type(op).__mro__}
        return [
            family
            for family, anchors in zip(self.families, self._anchors, strict=True)
            if anchors is None or not kinds.isdisjoint(anchors)
        ]

    def any_takes(self, group: FusedOp) -> bool:
        """Return whether some family matches `group`, and none rejects its fusion.

        The last families, which match most, are asked first. Nothing is remembered: the group is
        made for the question.
        """
        if any(asked(family, group).rejects_fusion(group) for family in self.families):
            return False
        return any(map(_Question(group).answer_of, reversed(self._asked(group))))

    def is_specialized(self, group: FusedOp) -> bool:
        """Return whether a family other than the generic loops takes `group`; see `any_takes`."""
        families = (f for f in reversed(self._asked(group)) if f.name != GENERIC)
        return any(map(_Question(group).answer_of, families))

    def is_made_for(self, group: FusedOp, kind: type[Operation]) -> bool:
        """Return whether a family that is anchored at ops of this kind takes `group`; as
        `any_takes`.
        """
        question = _Question(group)
        return any(
            anchors is not None and kind in anchors and question.answer_of(family)
            for family, anchors in zip(self.families, self._anchors, strict=True)
        )

    def in_choice(self, group: FusedOp, choice: LayoutChoice) -> list[Match]:
        """Return the matches that take the group in `choice`, strides included."""
        return [match for match in self.of(group) if match.supports_layout(choice)]


def _state(
    group: FusedOp, number: Callable[[Attribute], int]
) -> Iterator[str | int | Operation | SSAValue]:
    """Return everything about `group` that a family may look at: equal while the group is
    unchanged.
    """
    yield from (number(operand.type) for operand in group.operands)
    yield from (number(result.type) for result in group.results)
    yield from (number(argument.type) for argument in group.body.block.args)
    for op in group.walk():
        yield op
        if op is not group:
            yield from op.operands
            yield from (number(result.type) for result in op.results)
        for named in (op.properties, op.attributes):
            for name, attribute in named.items():
                yield name
                yield number(attribute)


def _is_available(choice: LayoutChoice, group: FusedOp, known: ParameterExpressions) -> bool:
    """Return whether all that is to be transformed is known at compile time, or transformed
    already.
    """
    return all(
        not layout.is_transformed or layout_of(value.type) == layout or known.is_known(value)
        for value, layout in zip(group.operands, choice.operands, strict=True)
    )


def _is_dense(choice: LayoutChoice) -> bool:
    return all(layout.strides is None for layout in (*choice.operands, *choice.results))
