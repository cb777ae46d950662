"""`apply-rematerialization`: copies of producers next to the ops that they were picked for."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, OpResult, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from braid.analysis.diagnostics.locations import source_location
from braid.analysis.diagnostics.remarks import emit_remark
from braid.analysis.execution.compute_ops import runtime_functions
from braid.analysis.storage.memory_graph import MemoryGraph
from braid.analysis.storage.tensor_storage import is_view
from braid.dialects.braid.attribute_names import (
    FUSION_GROUP,
    ORDER,
    RECOMPUTE_OPERANDS,
    RECOMPUTE_SETS,
    RECOMPUTED,
)
from braid.dialects.braid.clusters import MARKS, Placement, placement_of
from braid.dialects.braid.order import plain_orders
from braid.passes.fusion.select_fusion import first_free_number
from braid.passes.rematerialization.recompute_decisions import DecidedSet, clear_sets, read_sets
from braid.passes.rematerialization.recompute_order import replay
from braid.passes.rematerialization.rematerialization_rules import (
    RematerializationRules,
    load_rules,
)
from braid.support.byte_sizes import format_size
from braid.support.errors import BraidError


@dataclass(frozen=True)
class RecomputeSubgraph:
    """An applied set: copies in front of the reader, and the values that it is to read."""

    source: DecidedSet
    copies: tuple[Operation, ...]
    values: tuple[SSAValue, ...]


def copy_set(chosen: DecidedSet, numbers: Iterator[int]) -> RecomputeSubgraph:
    """Put copies of the members in front of the reader, which does not read them yet.

    Copies of one fusion group form a group with the next of `numbers`.
    """
    mapping: dict[SSAValue, SSAValue] = {}
    copies: list[Operation] = []
    for member in chosen.members:
        for operand in member.operands:
            _copy_views(operand, mapping, chosen.reader)
        copy = _copy(member, mapping, chosen.reader)
        copy.attributes.pop(RECOMPUTE_SETS, None)
        copy.attributes.pop(RECOMPUTE_OPERANDS, None)
        copy.attributes[RECOMPUTED] = IntegerAttr(chosen.number, i64)
        copies.append(copy)
    read = [chosen.reader.operands[index] for index in chosen.operands]
    for value in read:
        _copy_views(value, mapping, chosen.reader)
    regroup([value.op for value in mapping.values() if isinstance(value, OpResult)], numbers)
    return RecomputeSubgraph(chosen, tuple(copies), tuple(mapping[value] for value in read))


def regroup(copies: Iterable[Operation], numbers: Iterator[int]) -> None:
    """Fuse copies with each other where their ops are fused, and not with these.

    A group that is in two places could not be one kernel.
    """
    fresh: dict[Attribute, Attribute] = {}
    for copy in dict.fromkeys(copies):
        given = copy.attributes.get(FUSION_GROUP)
        if given is None:
            continue
        if given not in fresh:
            fresh[given] = IntegerAttr(next(numbers), i64)
        copy.attributes[FUSION_GROUP] = fresh[given]


def _copy(op: Operation, mapping: dict[SSAValue, SSAValue], reader: Operation) -> Operation:
    """Return a copy before `reader`; in another block, a copy for its cluster, since these share
    it.

    So are the readers of such a copy: otherwise their cluster would wait for the one that reads
    them.
    """
    moved = op.parent is not reader.parent or any(
        _placement(operand) != _placement(mapping[operand])
        for operand in op.operands
        if operand in mapping
    )
    copy = op.clone(value_mapper=mapping)
    if moved:
        for name in MARKS:
            copy.attributes.pop(name, None)
            if name in reader.attributes:
                copy.attributes[name] = reader.attributes[name]
    Rewriter.insert_op(copy, InsertPoint.before(reader))
    return copy


def _placement(value: SSAValue) -> Placement | None:
    return placement_of(value.owner) if isinstance(value.owner, Operation) else None


def _copy_views(value: SSAValue, mapping: dict[SSAValue, SSAValue], reader: Operation) -> None:
    """Copy the views through which `value` shows what a copy makes."""
    views: list[Operation] = []
    while value not in mapping and isinstance(value, OpResult) and is_view(value.op):
        views.append(value.op)
        value = value.op.operands[0]
    if value in mapping:
        for view in reversed(views):
            _copy(view, mapping, reader)


def connect(subgraph: RecomputeSubgraph) -> None:
    """Let the reader read from the copies."""
    for index, value in zip(subgraph.source.operands, subgraph.values, strict=True):
        subgraph.source.reader.operands[index] = value


def erase_unused(ops: Sequence[Operation]) -> None:
    """Erase the unused ones among `ops`, and their unused views."""
    for op in reversed(ops):
        for user in [use.operation for result in op.results for use in result.uses]:
            if is_view(user):
                erase_unused([user])
        if all(result.first_use is None for result in op.results):
            Rewriter.erase_op(op)


def mark_fused(
    subgraphs: Sequence[RecomputeSubgraph],
    rules: RematerializationRules,
    numbers: Iterator[int],
) -> None:
    """Put copies that fuse into their reader, at once or in steps, into a group with it.

    No cycle arises: only the reader's results leave the group. Groups get the next of `numbers`.
    """
    for subgraph in subgraphs:
        reader = subgraph.source.reader
        group: set[Operation] = {reader}
        for copy in reversed(subgraph.copies):
            users = {use.operation for result in copy.results for use in result.uses}
            if users <= group and all(rules.allow(copy, user) for user in users):
                group.add(copy)
        if len(group) == 1:
            continue
        if FUSION_GROUP not in reader.attributes:
            reader.attributes[FUSION_GROUP] = IntegerAttr(next(numbers), i64)
        for op in group:
            op.attributes[FUSION_GROUP] = reader.attributes[FUSION_GROUP]


def recompute_sets(function: FuncOp, rules: RematerializationRules) -> None:
    """Apply the sets decided on for `function`."""
    numbers = count(first_free_number(function))
    sets = read_sets(function)
    subgraphs = [copy_set(chosen, numbers) for chosen in sets]
    for subgraph in subgraphs:
        connect(subgraph)
    clear_sets(function)
    members = {member for chosen in sets for member in chosen.members}
    erase_unused([op for op in function.walk() if op in members])
    mark_fused(subgraphs, rules, numbers)


def recompute_in_order(function: FuncOp) -> None:
    """Apply `braid.order` of the function, in which ops may occur several times."""
    orders = plain_orders(function.attributes[ORDER])
    blocks = list(function.body.blocks)
    if orders is None or len(orders) != len(blocks):
        raise BraidError(
            f"{ORDER} is not an array of one array<i64> for each of {len(blocks)} blocks",
            location=source_location(function),
            hint="run select-rematerialization again, or remove the attribute",
        )
    if any(RECOMPUTE_OPERANDS in op.attributes for block in blocks for op in block.ops):
        raise BraidError(
            f"the function has {ORDER} and {RECOMPUTE_OPERANDS}, "
            "two decisions that exclude each other",
            location=source_location(function),
            hint="run apply-order before select-rematerialization",
        )
    numbers = count(first_free_number(function))
    for block, order in zip(blocks, orders, strict=True):
        for copy in replay(block, order):
            regroup([copy], numbers)
    del function.attributes[ORDER]


@dataclass(frozen=True)
class ApplyRematerializationPass(ModulePass):
    """Does what `select-rematerialization` decided, and removes its attributes.

    In: `braid.recompute_sets` and `braid.recompute_operands`, or `braid.order` on a function, in
    which an op may occur several times. Out: for each set a copy of its ops in front of the op
    that it is for, with the same names and with `braid.recomputed`; ops that nothing reads any
    more are gone. Copies that a rule in `fusion_rules` (`default` or a TOML file) lets fuse with
    their reader have the same `braid.fusion_group` as it has. Raises BraidError for decisions
    that do not fit the module.

    ```mlir
    %0 = braid.exp %x … {braid.recompute_sets = array<i64: 0>}
    %1 = braid.neg %0 …
    %2 = braid.add %1, %0 … {braid.recompute_operands = array<i64: -1, 0>}
    // becomes
    %0 = braid.exp %x …
    %1 = braid.neg %0 …
    %3 = braid.exp %x … {braid.fusion_group = 0, braid.recomputed = 0}
    %2 = braid.add %1, %3 … {braid.fusion_group = 0}
    ```
    """

    name = "apply-rematerialization"

    fusion_rules: str = "default"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Apply the decisions in every function that runs with the model."""
        rules = load_rules(self.fusion_rules)
        for function in runtime_functions(op):
            before = MemoryGraph.of(function.body.block).peak
            if ORDER in function.attributes:
                recompute_in_order(function)
            else:
                recompute_sets(function, rules)
            after = MemoryGraph.of(function.body.block).peak
            message = f"peak {format_size(after)} instead of {format_size(before)} without fusion"
            emit_remark(function, self.name, message, peak_bytes=after, natural_peak_bytes=before)
