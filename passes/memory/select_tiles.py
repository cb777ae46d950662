"""Groups that are computed tile by tile: several products, reductions and movements in one kernel.

A group grows from its root backward. An op joins only if all who read it are members, so that
nothing but the root's result leaves the group. Then no cycle can arise between groups: a path
out of a group leads through its root, which depends on every member.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.ir import Block, Operation

from braid.analysis.tensor_storage import is_view, logical_bytes
from braid.analysis.tile_classes import Tiling
from braid.analysis.tile_sizes import tile_sizes
from braid.dialects.braid.base import TensorOp, shape_of
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.layout import DYNAMIC
from braid.passes.memory.compute_ops import is_compute
from braid.passes.memory.fusion_rules import FusionRules


@dataclass
class _Growth:
    """Ops in the order in which they joined; `last` are those behind which nothing joins."""

    joined: list[Operation]
    last: set[Operation]

    def is_group(self, rules: FusionRules) -> bool:
        """Whether a rule says that it pays, and no simpler kernel would do."""
        return any(
            rules.starts_tiles(producer, consumer, _result_bytes(producer))
            for producer, consumer in self._edges()
        )

    def _edges(self) -> Iterator[tuple[Operation, Operation]]:
        for op in self.joined:
            for producer, _ in _producers(op):
                if producer in self.joined:
                    yield producer, op


def tile_groups(block: Block, rules: FusionRules) -> list[list[Operation]]:
    """The groups of `block` that pay as tiles, each with its members in order."""
    position = {op: index for index, op in enumerate(block.ops)}
    taken: set[Operation] = set()
    groups: list[list[Operation]] = []
    for root in reversed(list(block.ops)):
        if root in taken or not _is_candidate(root):
            continue
        growth = _grow(root, rules, taken)
        members = _largest_legal(growth, rules, position)
        if members:
            taken.update(members)
            groups.append(members)
    return groups


def _is_candidate(op: Operation) -> bool:
    """Whether `op` may be a member: one static result, and not in a group already."""
    return (
        is_compute(op)
        and isinstance(op, TensorOp)
        and not op.regions
        and len(op.results) == 1
        and "braid.fusion_group" not in op.attributes
        and DYNAMIC not in shape_of(op.results[0])
    )


def _grow(root: Operation, rules: FusionRules, taken: set[Operation]) -> _Growth:
    growth = _Growth([root], set())
    changed = True
    while changed:
        changed = False
        for op in list(growth.joined):
            if op in growth.last:
                continue
            for producer, views in _producers(op):
                if producer not in taken and _may_join(producer, views, growth, rules):
                    growth.joined += [*reversed(views), producer]
                    if rules.is_last(producer, op):
                        growth.last.add(producer)
                    changed = True
    return growth


def _producers(op: Operation) -> Iterator[tuple[Operation, list[Operation]]]:
    """What computes the operands of `op`, each with the views between, in order."""
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
    """Whether only members read it, now or through these views, and every one of them may."""
    inside = {*growth.joined, *views}
    if producer in growth.joined or not _is_candidate(producer):
        return False
    if producer.parent is not growth.joined[0].parent:
        return False
    if any(view.parent is not producer.parent for view in views):
        return False
    readers = [use.operation for op in (producer, *views) for use in op.results[0].uses]
    if any(reader not in inside for reader in readers):
        return False
    bytes = _result_bytes(producer)
    return all(is_view(reader) or rules.joins_tiles(producer, reader, bytes) for reader in readers)


def _result_bytes(op: Operation) -> int:
    assert isinstance(op, TensorOp)
    return logical_bytes(op.result_type())


def _largest_legal(
    growth: _Growth, rules: FusionRules, position: dict[Operation, int]
) -> list[Operation]:
    """The members in order, without those that joined last and cannot be cut like the others."""
    result = growth.joined[0].results[0]
    while growth.is_group(rules):
        members = sorted(growth.joined, key=lambda op: position[op])
        extents = tile_sizes(members, result)
        if extents is not None:
            tiling = Tiling(tuple(members), result, extents)
            if tiling.classes() is not None:
                return members
        dropped = growth.joined.pop()
        while is_view(growth.joined[-1]) and _reads(growth.joined[-1], dropped):
            growth.joined.pop()
    return []


def _reads(view: Operation, op: Operation) -> bool:
    return view.operands[0] in op.results
