"""Which kernel families take a group, each asked once."""

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

from xdsl.ir import Attribute, Operation, SSAValue

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.attribute_names import STREAM
from braid.dialects.braid.regions import FusedOp
from braid.targets.kernels import family_calls
from braid.targets.kernels.attribute_numbers import AttributeNumbers
from braid.targets.kernels.family_calls import Match
from braid.targets.kernels.kernel_family import GENERIC, Anchored, Choosy, KernelFamily

_State = tuple[str | int | Operation | SSAValue, ...]
_Fact = TypeVar("_Fact")


class GroupMemo(Generic[_Fact]):
    """Remembers a fact of groups in each state that these have been in: make one for each pass."""

    def __init__(self, find: Callable[[FusedOp], _Fact]) -> None:
        """`find` is asked once for each group, and again for one that was changed.

        A pass that tries a decision and takes it back asks nothing anew.
        """
        self._find = find
        self._known: dict[_State, _Fact] = {}
        self._numbers = AttributeNumbers()

    def of(self, group: FusedOp) -> _Fact:
        """The fact of `group`."""
        state = tuple(_state(group, self._numbers.of))
        if state not in self._known:
            self._known[state] = self._find(group)
        return self._known[state]


class GroupMatches:
    """Remembers what families found in groups, until these are changed: make one for each pass."""

    def __init__(self, families: Iterable[KernelFamily]) -> None:
        """In order of preference. Raises BraidError for one that lacks a part of the protocol."""
        self.families = tuple(families)
        family_calls.check_families(self.families)
        self._choosy = [family for family in self.families if isinstance(family, Choosy)]
        self._anchors = [f.anchors if isinstance(f, Anchored) else None for f in self.families]
        self._matches = GroupMemo(self._found)

    def of(self, group: FusedOp) -> tuple[Match, ...]:
        """The candidates of all families that take `group`."""
        return self._matches.of(group)

    def _found(self, group: FusedOp) -> tuple[Match, ...]:
        if STREAM in group.attributes:
            return ()  # Its kernel is the stream.
        found = (family_calls.match(family, group) for family in self._asked(group))
        return tuple(match for match in found if match is not None)

    def _asked(self, group: FusedOp) -> list[KernelFamily]:
        """Those that may take `group`."""
        kinds = {kind for op in group.body.block.ops for kind in type(op).__mro__}
        return [
            family
            for family, anchors in zip(self.families, self._anchors, strict=True)
            if anchors is None or not kinds.isdisjoint(anchors)
        ]

    def any_takes(self, group: FusedOp) -> bool:
        """Whether some family takes `group`: those that take most, the last ones, are asked first.

        None where a family prefers its parts. Nothing is remembered: for a group that is made for
        the question.
        """
        if any(family.prefers_parts(group) for family in self._choosy):
            return False
        return any(family_calls.match(family, group) for family in reversed(self._asked(group)))

    def is_specialized(self, group: FusedOp) -> bool:
        """Return whether a family other than the generic loops takes `group`; see `any_takes`."""
        families = (f for f in reversed(self._asked(group)) if f.name != GENERIC)
        return any(family_calls.match(family, group) for family in families)

    def is_made_for(self, group: FusedOp, kind: type[Operation]) -> bool:
        """Whether a family that is anchored at ops of this kind takes `group`; as `any_takes`."""
        return any(
            anchors is not None and kind in anchors and family_calls.match(family, group)
            for family, anchors in zip(self.families, self._anchors, strict=True)
        )

    def in_choice(self, group: FusedOp, choice: LayoutChoice) -> list[Match]:
        """Those that take it in `choice`, strides included."""
        return [
            match
            for match in self.of(group)
            if match.offers(choice) and match.takes_strides(choice)
        ]


def _state(
    group: FusedOp, number: Callable[[Attribute], int]
) -> Iterator[str | int | Operation | SSAValue]:
    """Everything about `group` that a family may look at: equal while nothing of it changes."""
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
