"""`select-fusion`: which ops share a kernel.

A group has one op whose result leaves it, the root; every other member is used by members only.
Then no cycle can arise between groups: a path out of a group leads through its root, which
depends on every member, so a path back into the group would be a cycle of the ops themselves.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from braid.analysis.diagnostics.remarks import emit_remark
from braid.analysis.execution.compute_ops import may_fuse, runtime_functions
from braid.analysis.structure.nesting import blocks_outside_groups
from braid.dialects.braid.attribute_names import FUSION_GROUP
from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.clusters import run_together
from braid.dialects.braid.dtypes import bytes_of
from braid.dialects.braid.movement import SliceOp
from braid.passes.fusion.fusion_rules import FusionRules, fusion_rules
from braid.passes.fusion.generic_groups import (
    Members,
    is_slower_than_parts,
    specialized_parts,
)
from braid.passes.fusion.reduction_groups import reduction_groups
from braid.passes.fusion.select_tiles import structure_of, tile_groups
from braid.passes.fusion.taken_members import taken_members
from braid.passes.sizes.likely_decisions import DecisionPass
from braid.targets.costs.cost_source import CostSource
from braid.targets.machines.resolve import target_of

_MOST_MEMBERS = 256
"""The most members of a group. The loads and stores of one more kernel are negligible compared with
this many ops, and code generators take more than linear time for much larger kernels."""


@dataclass
class _Group:
    number: int
    root: Operation
    anchor: Operation | None
    members: int = 0
    is_given: bool = False


def _consumers(op: Operation) -> list[Operation]:
    return [use.operation for result in op.results for use in result.uses]


def _anchors(block: Block, rules: FusionRules) -> dict[Operation, Operation]:
    """Return for every op that could share a kernel with an earlier anchor that anchor.

    Of several it is the group of an operand without other uses, and among these the latest, since
    the other operands exist when it runs.
    """
    found: dict[Operation, Operation] = {}
    position: dict[Operation, int] = {}
    for index, op in enumerate(block.ops):
        position[op] = index
        owners = [o.owner for o in op.operands if isinstance(o.owner, Operation)]
        candidates = [o for o in owners if o in found and _allows_all(o, rules)]
        if rules.is_anchor(op):
            found[op] = op
        elif candidates:
            best = max(candidates, key=lambda o: (_has_one_user(o), position[found[o]]))
            found[op] = found[best]
    _cut_where_narrow(block, found)
    return found


def _cut_where_narrow(block: Block, found: dict[Operation, Operation]) -> None:
    """Take ops from `found` that widen what a later kernel reads: they go with their readers."""
    for op in block.ops:
        anchor = found.get(op)
        readers = [found.get(reader) for reader in _consumers(op)]
        if anchor in (None, op) or not readers or any(r in (None, anchor) for r in readers):
            continue
        chain = [op]
        while (source := _only_source(chain[-1], found)) is not None:
            chain.append(source)
        sizes = [max(map(_element_bytes, own.results)) for own in chain]
        for own in chain[: sizes.index(min(sizes))]:
            del found[own]


def _only_source(op: Operation, found: dict[Operation, Operation]) -> Operation | None:
    """Return the op that makes the operand of `op` in the same kernel and for no other use, if
    there is one.
    """
    owners = [o.owner for o in op.operands if isinstance(o.owner, Operation) and o.owner in found]
    if len(owners) != 1 or found[owners[0]] is owners[0] or found[owners[0]] is not found[op]:
        return None
    (source,) = owners
    alike = shape_of(source.results[0]) == shape_of(op.results[0])
    return source if alike and _has_one_user(source) else None


def _element_bytes(value: SSAValue) -> int:
    return bytes_of(element_type_of(value))


def _allows_all(op: Operation, rules: FusionRules) -> bool:
    """Return whether `op` may join its users: if a product reads it, too, it is stored for all of
    them.
    """
    return all(rules.allow(op, consumer) for consumer in _consumers(op))


def _has_one_user(op: Operation) -> bool:
    return len(set(_consumers(op))) == 1


def _joins(
    op: Operation, consumers: Sequence[Operation], group: _Group, rules: FusionRules
) -> bool:
    """Return whether `op`, whose users are all in `group`, may and should join it."""
    if not all(rules.allow(op, consumer) for consumer in consumers):
        return False
    if not run_together(op, group.root):
        return False
    if isinstance(op, SliceOp) and group.anchor is not None:
        return False  # Ops on the result of a matmul or convolution read whole tensors.
    # A smaller tensor that is repeated inside would be computed once for every repetition.
    return shape_of(op.results[0]) == shape_of(group.root.results[0])


def _given_number(op: Operation) -> int | None:
    """Return the group that `op` was put into before: recomputed ops come with that of their
    reader.
    """
    attribute = op.attributes.get(FUSION_GROUP)
    return attribute.value.data if isinstance(attribute, IntegerAttr) else None


def first_free_number(func: FuncOp) -> int:
    """Return the least number above those of all groups in `func`."""
    given = (_given_number(op) for op in func.walk())
    return max((number for number in given if number is not None), default=-1) + 1


def _select_tiles(
    block: Block, rules: FusionRules, numbers: Iterator[int], costs: CostSource
) -> set[Operation]:
    """Mark the groups that are computed by tiles, as far as a kernel takes them.

    Returns all their members.
    """
    members: set[Operation] = set()
    for group in tile_groups(block, rules):
        taken = taken_members(group, rules, costs, lambda ops: _parts(ops, rules))
        if len(taken) < len(group) and any(FUSION_GROUP in op.attributes for op in group):
            continue
        number = IntegerAttr(next(numbers), i64) if taken else None
        for op in taken:
            assert number is not None
            op.attributes[FUSION_GROUP] = number
        members.update(taken)
    return members


def _parts(members: Members, rules: FusionRules) -> list[list[Operation]]:
    """Return the groups that `members`, of one block, would form without tiles."""
    block = members[0].parent
    assert block is not None
    given = {op: _given_number(op) for op in members}
    free = 1 + max((number for number in given.values() if number is not None), default=-1)
    _select(block, rules, count(free), set(block.ops) - set(members))
    parts: dict[int, list[Operation]] = {}
    for op in members:
        if (number := _given_number(op)) is not None:
            parts.setdefault(number, []).append(op)
            if given[op] is None:
                del op.attributes[FUSION_GROUP]
    return list(parts.values())


def _cut_generic(
    block: Block, groups: Sequence[_Group], numbers: Iterator[int], costs: CostSource
) -> int:
    """Cut groups that only generic loops take, and more slowly than families take parts of them.

    The last part keeps the number. Returns how many groups there are more.
    """
    members: dict[int, list[Operation]] = {
        g.number: [] for g in groups if g.members > 1 and not g.is_given
    }
    for op in block.ops:
        if (number := _given_number(op)) in members:
            members[number].append(op)
    more, kept = 0, set[Hashable]()
    for ops in members.values():
        structure = structure_of(ops, ops[-1].results[0])
        if structure in kept:
            continue
        if not is_slower_than_parts(ops, lambda ops=ops: specialized_parts(ops, costs), costs):
            kept.add(structure)
            continue
        for part in specialized_parts(ops, costs)[:-1]:
            number = IntegerAttr(next(numbers), i64)
            more += 1
            for op in part:
                op.attributes[FUSION_GROUP] = number
    return more


def _select_reductions(
    block: Block,
    rules: FusionRules,
    numbers: Iterator[int],
    closed: set[Operation],
    costs: CostSource,
) -> set[Operation]:
    """Group reductions with what makes their operands, and return all members."""
    members: set[Operation] = set()
    for group in reduction_groups(block, closed, _anchors(block, rules), costs):
        number = IntegerAttr(next(numbers), i64)
        for op in group:
            op.attributes[FUSION_GROUP] = number
        members.update(group)
    return members


def _select(
    block: Block, rules: FusionRules, numbers: Iterator[int], closed: set[Operation]
) -> list[_Group]:
    """Group the compute ops of `block`, users before the ops they use; new groups get `numbers`.

    Ops in `closed` have a group that no other op may join.
    """
    groups: list[_Group] = []
    given_groups: dict[int, _Group] = {}
    group_of: dict[Operation, _Group] = {}
    anchors = _anchors(block, rules)
    for op in reversed(list(block.ops)):
        if not may_fuse(op) or op in closed:
            continue
        if (given := _given_number(op)) is not None:
            first = _Group(given, op, anchors.get(op), is_given=True)
            group_of[op] = given_groups.setdefault(given, first)
            continue
        consumers = _consumers(op)
        candidates = {id(group_of.get(c)): group_of.get(c) for c in consumers}
        group = next(iter(candidates.values())) if len(candidates) == 1 else None
        anchor = anchors.get(op)
        if (
            group is None
            or group.members >= _MOST_MEMBERS
            or anchor not in (None, group.anchor)
            or not _joins(op, consumers, group, rules)
        ):
            group = _Group(next(numbers), op, anchor)
            groups.append(group)
        group_of[op] = group
        group.members += 1
        op.attributes[FUSION_GROUP] = IntegerAttr(group.number, i64)
    return [*groups, *given_groups.values()]


@dataclass(frozen=True)
class SelectFusionPass(DecisionPass):
    """Puts every compute op into a fusion group, as the rules allow.

    In: any module. Out: `braid.fusion_group` on every tensor op that needs a kernel, one number
    per group. An op joins the group of its users if all of them are in one group of the same
    block, a rule allows it (`rules`: `default` or a TOML file as `fusion_rules.toml`), the group
    has no second anchor, and nothing is computed twice. Opaque ops that declare something stay
    alone. Ops that have a group already keep it, which tiles and reductions may extend.
    Installed packages add to the default rules by entry points of the group `braid.fusion_rules`.

    With `tiles`, ops with large tensors between them, such as those of attention, come first: they
    share a kernel that computes one tile of the result after the other. If no kernel of the op's
    device takes such a group with its products, the ops that make their operands, such as masks,
    stay outside, and if that does not help, all ops do. Next come reductions with the elementwise
    ops that make what they read, where the device has kernels that are made for reductions. A group
    that only generic loops take, though kernel families take its parts in less time by their
    predictions, is not made.

    ```mlir
    %0 = braid.matmul %x, %w …               // {braid.fusion_group = 0 : i64}
    %1 = braid.add %0, %b …                  // {braid.fusion_group = 0 : i64}
    ```
    """

    name = "select-fusion"

    rules: str = "default"
    tiles: bool = True
    target: str | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Decide for every function that runs with the model."""
        rules = fusion_rules(self.rules)
        costs = CostSource(target_of(op, self.target)) if self.tiles else None
        for func in runtime_functions(op):
            ops, groups, numbers = 0, 0, count(first_free_number(func))
            for block in list(blocks_outside_groups(func)):
                closed = set[Operation]()
                if costs is not None:
                    closed = _select_tiles(block, rules, numbers, costs)
                    closed |= _select_reductions(block, rules, numbers, closed, costs)
                groups += len({op.attributes[FUSION_GROUP] for op in closed})
                selected = _select(block, rules, numbers, closed)
                groups += len(selected)
                if costs is not None:
                    groups += _cut_generic(block, selected, numbers, costs)
                ops += sum(1 for inner in block.ops if may_fuse(inner))
            message = f"{ops} ops in {groups} groups"
            emit_remark(func, self.name, message, ops=ops, groups=groups)
