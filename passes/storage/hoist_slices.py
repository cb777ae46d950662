"""`hoist-slices`: kernels that differ only in the parts that they read become one."""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, BlockArgument, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from braid.analysis.diagnostics.remarks import emit_remark
from braid.analysis.execution.compute_ops import runtime_functions
from braid.analysis.storage.strided_storage import dense_strides, set_strides, strides_of
from braid.analysis.structure.nesting import ops_outside_groups
from braid.dialects.braid.attribute_names import (
    BOXES,
    NAME,
    OVERLAP,
    SCHEDULE,
    STREAM,
    VIEW_OFFSET,
)
from braid.dialects.braid.base import element_type_of, integers
from braid.dialects.braid.clusters import device_name
from braid.dialects.braid.dtypes import bytes_of
from braid.dialects.braid.movement import SliceOp
from braid.dialects.braid.regions import FusedOp, YieldOp
from braid.dialects.braid.sizes import is_open
from braid.passes.storage.box_candidates import candidate_of
from braid.passes.storage.storage_placement import seconds_as_stored
from braid.targets.costs.cost_source import CostSource
from braid.targets.costs.device_costs import DeviceCosts
from braid.targets.kernels.keys import stored_text
from braid.targets.machines.resolve import target_of

FEWEST = 4
"""The fewest kernels to merge: for two or three the emitted code does not change."""

_ELSEWHERE = (BOXES, OVERLAP, SCHEDULE, STREAM, VIEW_OFFSET)
"""Attributes of a group that depend on its operands."""


@dataclass(frozen=True)
class _Reader:
    """A group that reads parts of tensors, and `shared`, whose operands are the parts as `views`.

    Groups with equal texts of `shared` then share one kernel; before, they had different ones if
    their `parts` differ.
    """

    group: FusedOp
    views: tuple[FusedOp, ...]
    shared: FusedOp
    parts: Hashable

    def insert(self) -> None:
        """Put the views and the shared form before the group."""
        block = self.group.parent
        assert block is not None
        block.insert_ops_before([*self.views, self.shared], self.group)

    def replace(self) -> None:
        """Replace the group by the shared form, which was inserted."""
        for old, new in zip(self.group.results, self.shared.results, strict=True):
            old.replace_all_uses_with(new)
        self.group.detach()
        self.group.erase()

    def withdraw(self) -> None:
        """Erase the views and the shared form, which are in no block."""
        for op in (self.shared, *self.views):
            op.erase()


def _slices(group: FusedOp) -> Iterator[tuple[BlockArgument, SliceOp]]:
    """Yield the arguments of the body of which only a slice is read, with the slice.

    A tensor that the group reads in several ways stays as it is: its parts may overlap.
    """
    read = Counter(group.operands)
    for argument, operand in zip(group.body.block.args, group.operands, strict=True):
        users = [use.operation for use in argument.uses]
        if len(users) == 1 and read[operand] == 1 and isinstance(users[0], SliceOp):
            yield argument, users[0]


def _view(operand: SSAValue, part: SliceOp) -> FusedOp:
    """Return a group of the slice alone."""
    body = Block(arg_types=[operand.type])
    inner = part.clone({part.input: body.args[0]})
    inner.attributes.pop(NAME, None)
    body.add_ops([inner, YieldOp(inner.output)])
    view = FusedOp([operand], [inner.output.type], body)
    view.location = part.location
    return view


def _reader(group: FusedOp) -> _Reader | None:
    """Return the group with its slices as views; None if no slice can be a view."""
    if any(name in group.attributes for name in _ELSEWHERE):
        return None
    views: dict[int, FusedOp] = {}
    operands, strides = list(group.operands), strides_of(group)
    parts: list[Hashable] = []
    for argument, part in _slices(group):
        index = argument.index
        view, operand = _view(operands[index], part), operands[index]
        candidate = candidate_of(view)
        if candidate is None:
            view.erase()
            continue
        box, outer = candidate.boxes[0], strides[index] or dense_strides(operand)
        offset = box.offset(outer) * bytes_of(element_type_of(operand))
        view.attributes[VIEW_OFFSET] = IntegerAttr(offset, i64)
        views[index], operands[index] = view, view.results[0]
        inner = box.strides(outer)
        strides[index] = None if inner == dense_strides(operands[index]) else inner
        parts.append((index, operand.type, box.start))
    if not views:
        return None
    shared = group.clone()
    shared.location = group.location
    shared.operands = operands
    _read_whole(shared, list(views))
    set_strides(shared, strides)
    return _Reader(group, tuple(views.values()), shared, tuple(parts))


def _read_whole(shared: FusedOp, indices: list[int]) -> None:
    """Let all slices of these arguments be views; a slice that is a result is then a copy."""
    for index in indices:
        argument = shared.body.block.args[index]
        (use,) = argument.uses
        part = use.operation
        assert isinstance(part, SliceOp)
        whole = Rewriter.replace_value_with_new_type(argument, part.output.type)
        if any(isinstance(reader.operation, YieldOp) for reader in part.output.uses):
            rank = len(part.sizes.get_values())
            part.offsets, part.strides = integers([0] * rank), integers([1] * rank)
        else:
            part.output.replace_all_uses_with(whole)
            part.detach()
            part.erase()


@dataclass(frozen=True)
class HoistSlicesPass(ModulePass):
    """Fuses slices of groups' operands into the groups, where several kernels then become one.

    If a tensor is split into many parts, each reader's kernel would contain its offset, so that
    each would be a separate kernel, which takes as long to compile as any other. With views of the
    parts as operands they are one kernel, if it is at least as fast by the estimates. Run it after
    `select-storage`.

    In: groups (`braid.fused`), with `braid.strides` where `select-storage` decided on them. Out:
    the slices are groups of their own before their readers, with `braid.view_offset`.

    ```mlir
    %a = braid.fused(%x) … { braid.slice … offsets = array<i64: 8, 0> …; braid.exp … }
    // becomes, where there are more of its kind,
    %s = braid.fused(%x) … {braid.view_offset = 128 : i64} { braid.slice … }
    %a = braid.fused(%s) … { braid.exp … }
    ```
    """

    name = "hoist-slices"

    target: str | None = None
    backend: str | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Hoist in functions for the device, whose sizes are all known."""
        target = target_of(op, self.target)
        device = target.device_for(self.backend)
        costs = CostSource(target).on(device)
        for function in runtime_functions(op):
            if device_name(function) in (None, device.name) and not is_open(function):
                self._hoist(function, costs)

    def _hoist(self, function: FuncOp, costs: DeviceCosts) -> None:
        alike: dict[str, list[_Reader]] = defaultdict(list)
        for group in [op for op in ops_outside_groups(function) if isinstance(op, FusedOp)]:
            if (reader := _reader(group)) is not None:
                alike[stored_text(reader.shared)].append(reader)
        before = after = 0
        for readers in alike.values():
            kernels = len({reader.parts for reader in readers})
            if kernels >= FEWEST and _is_as_fast(readers[0], costs):
                before, after = before + kernels, after + 1
                for reader in readers:
                    reader.insert()
                    reader.replace()
            else:
                for reader in readers:
                    reader.withdraw()
        if before:
            text = f"{before} kernels that read parts of tensors became {after}"
            emit_remark(function, self.name, text, before=before, after=after)


def _is_as_fast(reader: _Reader, costs: DeviceCosts) -> bool:
    """Return whether a kernel on the parts takes no longer; nothing is changed."""
    seconds = seconds_as_stored(costs)
    before = seconds.of(reader.group)
    reader.insert()
    after = seconds.of(reader.shared)
    for op in (*reader.views, reader.shared):
        op.detach()
    return after is not None and (before is None or after <= before)
