"""Deciding box by box which tensors lie inside others: consequences, candidates, costs."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Attribute, Operation, OpResult, SSAValue

from braid.analysis.storage.reshaped_strides import reshaped_strides
from braid.analysis.storage.strided_storage import (
    Strides,
    boxes_of,
    dense_strides,
    is_only_storage,
    set_boxes,
    set_strides,
    stored_choice,
    view_offset,
)
from braid.analysis.storage.tensor_storage import is_view
from braid.dialects.braid.attribute_names import BOXES, STREAM, STRIDES, VIEW_OFFSET
from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.dtypes import bytes_of
from braid.dialects.braid.movement import ReshapeOp
from braid.dialects.braid.regions import FusedOp
from braid.passes.storage.box_candidates import Box, Candidate, candidate_of
from braid.targets.costs.device_costs import DeviceCosts
from braid.targets.kernels.equal_groups import EqualGroups
from braid.targets.kernels.flexible_layouts import as_typed

_DECISION = (STRIDES, BOXES, VIEW_OFFSET)


def seconds_as_stored(costs: DeviceCosts) -> EqualGroups[float | None]:
    """Return predicted seconds of groups' kernels, None if none supports a group's strides.

    A group that families take only with its tensors on their own keeps them so: without a family
    it would be generic loops, for which the roofline is no prediction.
    """

    def find(group: FusedOp) -> float | None:
        if is_only_storage(group):
            return 0.0
        choice = stored_choice(group)
        if costs.kernels.match(group, choice) is not None:
            return costs.cost(group).seconds
        strided = any(s.strides is not None for s in (*choice.operands, *choice.results))
        if STREAM in group.attributes and (strided or boxes_of(group)):
            return None
        if strided and costs.kernels.match(group, as_typed(group)) is not None:
            return None
        reshapes = any(isinstance(op, ReshapeOp) for op in group.body.block.ops)
        return None if boxes_of(group) or (strided and reshapes) else costs.cost(group).seconds

    return EqualGroups(find)


@dataclass
class StoragePlacement:
    """The strides decided on so far, in elements, and the tensors that lie in others.

    `seconds` tell which kernels support strides, see `seconds_as_stored`. Groups without a family
    are emitted by the generic lowering, which supports them except for reshapes.
    """

    seconds: EqualGroups[float | None]
    strides: dict[SSAValue, Strides] = field(default_factory=dict[SSAValue, Strides])
    placed: set[SSAValue] = field(default_factory=set[SSAValue])

    def strides_of(self, value: SSAValue) -> Strides:
        """Return the strides of a tensor as decided so far."""
        return self.strides.get(value) or dense_strides(value)

    def place(self, candidate: Candidate, accept: Callable[[Candidate], bool]) -> float | None:
        """Let the boxes of `candidate` lie in its whole, if all kernels take that.

        Returns the seconds that are saved, or None where nothing was changed: a kernel cannot, it
        would not save time, or `accept`, called with the decision written, does not.
        """
        found = self._spread(candidate)
        if found is None:
            return None
        touched = self._groups(found, candidate)
        groups = (*touched, candidate.group)
        before = {group: _decision(group) for group in groups}
        known = {value: self.strides.get(value) for value in found}
        saved = sum(self.seconds.of(group) or 0.0 for group in groups)
        self.strides.update(found)
        self._write(candidate, touched)
        after = [self.seconds.of(group) for group in groups]
        saved -= sum(s or 0.0 for s in after)
        if None in after or saved <= 0 or not accept(candidate):
            self._forget(known)
            for group, decision in before.items():
                _restore(group, decision)
            return None
        self.placed.update(_root(box.value) for box in candidate.boxes.values())
        return saved

    def _forget(self, known: Mapping[SSAValue, Strides | None]) -> None:
        """Give values the strides that they had before, None where these were not decided."""
        for value, strides in known.items():
            if strides is None:
                del self.strides[value]
            else:
                self.strides[value] = strides

    def _spread(self, candidate: Candidate) -> dict[SSAValue, Strides] | None:
        """Return the strides of all values that are the memory of a box; None where one cannot
        move.
        """
        found: dict[SSAValue, Strides] = {}
        if candidate.is_view and any(_root(r) in self.placed for r in candidate.group.results):
            return None  # The slice is computed inside another tensor already.
        roots = {_root(box.value) for box in candidate.boxes.values()}
        if len(roots) < len(candidate.boxes):
            return None  # One tensor cannot lie at two places.
        outer = self.strides_of(candidate.whole)
        for box in candidate.boxes.values():
            movable = candidate.is_view or self._is_movable(box, candidate)
            if not movable or not self._follow(box.value, box.strides(outer), candidate, found):
                return None
        return found

    def _is_movable(self, box: Box, candidate: Candidate) -> bool:
        root = _root(box.value)
        owner = root.owner
        return (
            isinstance(owner, FusedOp)
            and owner.parent is candidate.group.parent
            and root not in self.placed
            and view_offset(owner) is None
        )

    def _follow(
        self, value: SSAValue, strides: Strides, end: Candidate, found: dict[SSAValue, Strides]
    ) -> bool:
        """Give strides to `value` and to all that is the same memory."""
        if value in found:
            return found[value] == strides
        found[value] = strides
        links: list[tuple[SSAValue, Strides | None]] = []
        owner = value.owner
        if isinstance(owner, Operation) and owner is not end.group:
            if is_view(owner):
                links.append((owner.operands[0], _through(owner, owner.operands[0], strides)))
            links += [(owner.operands[i], strides) for i in boxes_of(owner)]
        for use in value.uses:
            user = use.operation
            if is_view(user):
                links.append((user.results[0], _through(user, user.results[0], strides)))
            elif not isinstance(user, FusedOp):
                return False
            elif view_offset(user) is not None and (cut := candidate_of(user)) is not None:
                links.append((user.results[0], cut.boxes[0].strides(strides)))
        return all(s is not None and self._follow(v, s, end, found) for v, s in links)

    def _groups(self, values: Iterable[SSAValue], candidate: Candidate) -> list[FusedOp]:
        """Return the groups that read or write `values`, without those that are only storage."""
        groups: dict[FusedOp, None] = {}
        for value in values:
            ops = [value.owner, *(use.operation for use in value.uses)]
            groups |= {op: None for op in ops if isinstance(op, FusedOp)}
        return [g for g in groups if g is not candidate.group and not is_only_storage(g)]

    def _write(self, candidate: Candidate, touched: Sequence[FusedOp]) -> None:
        """Write the decision on the groups, for families to look at."""
        width = bytes_of(element_type_of(candidate.whole))
        outer = self.strides_of(candidate.whole)
        offsets = {i: width * box.offset(outer) for i, box in candidate.boxes.items()}
        if candidate.is_view:
            candidate.group.attributes[VIEW_OFFSET] = IntegerAttr(offsets[0], i64)
        else:
            set_boxes(candidate.group, offsets)
        for group in (*touched, candidate.group):
            set_strides(group, self._group_strides(group))
            if group is not candidate.group and boxes_of(group):
                self._update_boxes(group)

    def _update_boxes(self, group: FusedOp) -> None:
        """Update the offsets in a whole that now has other strides."""
        moved = candidate_of(group)
        assert moved is not None
        width, outer = bytes_of(element_type_of(moved.whole)), self.strides_of(moved.whole)
        set_boxes(group, {i: width * box.offset(outer) for i, box in moved.boxes.items()})

    def _group_strides(self, group: FusedOp) -> list[Strides | None]:
        """Return the decision in `braid.strides`: None for tensors with their own memory, or that
        are not touched.
        """
        boxes = boxes_of(group)
        values = [None if i in boxes else v for i, v in enumerate(group.operands)]
        return [
            None if v is None or self.strides_of(v) == dense_strides(v) else self.strides_of(v)
            for v in (*values, *group.results)
        ]


def _decision(group: FusedOp) -> dict[str, Attribute]:
    return {name: group.attributes[name] for name in _DECISION if name in group.attributes}


def clear_decision(group: FusedOp) -> None:
    """Remove the decisions on `group`."""
    for name in _DECISION:
        group.attributes.pop(name, None)


def _restore(group: FusedOp, decision: dict[str, Attribute]) -> None:
    clear_decision(group)
    group.attributes.update(decision)


def _root(value: SSAValue) -> SSAValue:
    """Return the value of which `value` is a view of all elements."""
    while isinstance(value, OpResult) and is_view(value.op):
        value = value.op.operands[0]
    return value


def _through(view: Operation, target: SSAValue, strides: Strides) -> Strides | None:
    """Return the strides of one end of a view (`target`) for the strides of the other end."""
    source = view.operands[0] if target is view.results[0] else view.results[0]
    if strides == dense_strides(source):
        return dense_strides(target)
    if not isinstance(view, ReshapeOp):
        return None
    return reshaped_strides(shape_of(source), strides, shape_of(target))
