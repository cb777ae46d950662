"""Groups that are computed tile by tile: several products, reductions and movements in one kernel.

A group grows from its root backward. An op joins only if all who read it are members, so that
nothing but the root's result leaves the group. Then no cycle can arise between groups: a path
out of a group leads through its root, which depends on every member.
"""

from collections import deque
from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass, field

from xdsl.ir import Block, Operation, SSAValue

from braid.analysis.execution.compute_ops import may_fuse
from braid.analysis.storage.tensor_storage import is_view, logical_bytes
from braid.analysis.structure.parameter_expressions import (
    ParameterExpressions,
    computed_beforehand,
)
from braid.analysis.tiles.tile_classes import Tiling
from braid.analysis.tiles.tile_sizes import tile_sizes
from braid.dialects.braid.attribute_names import FUSION_GROUP
from braid.dialects.braid.base import TensorOp, shape_of
from braid.dialects.braid.clusters import run_together
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.layout import DYNAMIC
from braid.passes.fusion.fusion_rules import FusionRules

_MOST_MEMBERS = 256
"""The most members of a group; of a longer chain only the end becomes one, whose tiles are found in
a second or two."""

_NOTES = "braid."
"""Names of what passes note on ops begin so."""

_DROPPED_ONE_BY_ONE = 16
"""The number of members that are dropped one by one from a group that cannot be cut; after these,
half of them."""


@dataclass
class _Growth:
    """Ops in the order in which they joined; `last` are those after which nothing joins."""

    joined: dict[Operation, None]
    last: set[Operation]

    def starts(self, rules: FusionRules) -> int | None:
        """Return with how many members, the first ones, a rule makes a group at the earliest.

        The result is None if no kernel needs them: a simpler kernel will do.
        """
        place = {op: index for index, op in enumerate(self.joined)}
        pays = (
            max(place[producer], place[consumer]) + 1
            for consumer in self.joined
            for producer, _ in _producers(consumer)
            if producer in place and rules.starts_tiles(producer, consumer, _result_bytes(producer))
        )
        return min(pays, default=None)


@dataclass
class _Legality:
    """The check of which ops can be computed by tiles; those that are equal are cut once.

    `position` is that of each op in its block.
    """

    position: dict[Operation, int]
    _answers: dict[Hashable, bool] = field(default_factory=dict[Hashable, bool])

    def members(self, joined: Sequence[Operation]) -> list[Operation]:
        """Return `ops` in the order of their block if they can be computed by tiles, else none."""
        members = sorted(joined, key=lambda op: self.position[op])
        result = joined[0].results[0]
        key = structure_of(members, result)
        if key not in self._answers:
            extents = tile_sizes(members, result)
            self._answers[key] = (
                extents is not None
                and Tiling(tuple(members), result, extents).classes() is not None
            )
        return members if self._answers[key] else []


def structure_of(members: Sequence[Operation], result: SSAValue) -> Hashable:
    """Return the computation of `members`, with values by numbers, without names and notes of
    passes.

    Values from other groups are described by type, kind of op, and the value of a constant.
    """
    numbers: dict[SSAValue, int] = {}
    found: list[Hashable] = []
    for op in members:
        for operand in op.operands:
            if operand not in numbers:
                numbers[operand] = len(numbers)
                owner = operand.owner
                kind = owner.name if isinstance(owner, Operation) else ""
                value = owner.value if isinstance(owner, ConstantOp) else None
                found.append((operand.type, kind, value))
        notes = ((k, v) for k, v in op.attributes.items() if not k.startswith(_NOTES))
        found.append(
            (
                op.name,
                tuple(numbers[operand] for operand in op.operands),
                tuple(value.type for value in op.results),
                frozenset(op.properties.items()),
                frozenset(notes),
            )
        )
        for value in op.results:
            numbers[value] = len(numbers)
    return tuple(found), numbers[result]


def tile_groups(block: Block, rules: FusionRules) -> list[list[Operation]]:
    """Return the groups of `block` for which tiles pay off, each with its members in order.

    Values known at compile time are not recomputed by every tile. Ops that have a
    group already join with all of it or not at all.
    """
    known = computed_beforehand()
    legality = _Legality({op: index for index, op in enumerate(block.ops)})
    taken: set[Operation] = set()
    fruitless: set[Operation] = set()
    groups: list[list[Operation]] = []
    for root in reversed(list(block.ops)):
        if root in taken or root in fruitless or not _is_candidate(root):
            continue
        growth = _grow(root, rules, taken, known)
        least = growth.starts(rules)
        if least is None:
            # A group grown from a member is a part of this one, unless nothing could join after it.
            fruitless |= growth.joined.keys() - growth.last
            continue
        # From the first members, the end of a long chain, a group would be too large.
        fruitless.update(list(growth.joined)[: max(0, least - _MOST_MEMBERS)])
        members = _largest_legal(growth, least, legality)
        if _cuts_group(members, legality.position):
            members = []
        taken.update(members)
        if members:
            groups.append(members)
    return groups


def _cuts_group(members: Sequence[Operation], block: Collection[Operation]) -> bool:
    """Return whether `members` takes some ops, but not all, of an existing group of `block`."""
    given = {op.attributes[FUSION_GROUP] for op in members if FUSION_GROUP in op.attributes}
    inside = set(members)
    return bool(given) and any(
        op.attributes.get(FUSION_GROUP) in given and op not in inside for op in block
    )


def _is_candidate(op: Operation) -> bool:
    """Return whether `op` may be tiled, for which it has one result of static shape."""
    return (
        may_fuse(op)
        and isinstance(op, TensorOp)
        and not op.regions
        and len(op.results) == 1
        and DYNAMIC not in shape_of(op.results[0])
    )


def _grow(
    root: Operation, rules: FusionRules, taken: set[Operation], known: ParameterExpressions
) -> _Growth:
    """Grow groups; every op is looked at when it joins and again when another of its
    readers does.
    """
    growth = _Growth({root: None}, set())
    waiting = deque([root])
    while waiting:
        op = waiting.popleft()
        if op in growth.last:
            continue
        for producer, views in _producers(op):
            if producer in taken or known.is_known(producer.results[0]):
                continue
            if not _may_join(producer, views, growth, rules):
                continue
            growth.joined.update(dict.fromkeys([*reversed(views), producer]))
            if any(rules.is_last(producer, reader) for reader in _readers(producer, views)):
                growth.last.add(producer)
            waiting.append(producer)
    return growth


def _producers(op: Operation) -> Iterator[tuple[Operation, list[Operation]]]:
    """Yield what computes the operands of `op`, each with the views between, in order."""
    if is_view(op):
        return
    for operand in dict.fromkeys(op.operands):
        views: list[Operation] = []
        owner = operand.owner
        while isinstance(owner, Operation) and is_view(owner):
            views.insert(0, owner)
            owner = owner.operands[0].owner
        if isinstance(owner, Operation) and not isinstance(owner, ConstantOp):
            yield owner, views


def _may_join(
    producer: Operation, views: Sequence[Operation], growth: _Growth, rules: FusionRules
) -> bool:
    """Return whether only members read it, now or through these views, and every one of
    them may.
    """
    if producer in growth.joined or not _is_candidate(producer):
        return False
    root = next(iter(growth.joined))
    if producer.parent is not root.parent or not run_together(producer, root):
        return False
    if any(view.parent is not producer.parent for view in views):
        return False
    readers = _readers(producer, views)
    if any(reader not in growth.joined and reader not in views for reader in readers):
        return False
    bytes = _result_bytes(producer)
    return all(is_view(reader) or rules.joins_tiles(producer, reader, bytes) for reader in readers)


def _readers(producer: Operation, views: Sequence[Operation]) -> list[Operation]:
    return [use.operation for op in (producer, *views) for use in op.results[0].uses]


def _result_bytes(op: Operation) -> int:
    assert isinstance(op, TensorOp)
    return logical_bytes(op.result_type())


def _largest_legal(growth: _Growth, least: int, legality: _Legality) -> list[Operation]:
    """Return the members in order, without those that joined last and cannot be cut like the
    others.

    At least the first `least` remain, else none. If many members must be removed, their number is
    found by bisection, which assumes that a smaller group can be tiled whenever a larger one can.
    """
    joined = list(growth.joined)[:_MOST_MEMBERS]
    lengths = [n for n in range(least, len(joined) + 1) if not is_view(joined[n - 1])]
    for _ in range(min(_DROPPED_ONE_BY_ONE, len(lengths))):
        if members := legality.members(joined[: lengths.pop()]):
            return members
    found: list[Operation] = []
    low, high = 0, len(lengths)
    while low < high:
        middle = (low + high) // 2
        if members := legality.members(joined[: lengths[middle]]):
            found, low = members, middle + 1
        else:
            high = middle
    return found
