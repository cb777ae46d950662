"""A schedule in which ops run several times, as `braid.order` and as ops in a block."""

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Block, Operation, OpResult, SSAValue
from xdsl.traits import IsTerminator, is_side_effect_free

from braid.analysis.diagnostics.locations import source_location
from braid.analysis.storage.memory_graph import MemoryGraph, is_recomputable
from braid.analysis.storage.tensor_storage import is_view
from braid.analysis.structure.parameter_expressions import is_leaf
from braid.dialects.braid.attribute_names import ORDER, RECOMPUTED
from braid.dialects.braid.order import ordered_ops, set_ordered_ops
from braid.support.errors import BraidError, Note


def schedule_positions(graph: MemoryGraph, sequence: Sequence[int]) -> list[int]:
    """Return the positions in the block that run the ops of the graph in `sequence`.

    Weights come first. A view is placed before its first reader, and again after each recomputation
    of its operand.
    """
    ops = ordered_ops(graph.block)
    position = {op: index for index, op in enumerate(ops)}
    order = [position[op] for op in ops if is_leaf(op)]
    runs: dict[SSAValue, int] = {}
    shown: dict[Operation, int] = {}

    def show(value: SSAValue) -> None:
        views: list[Operation] = []
        while isinstance(value, OpResult) and is_view(value.op):
            views.append(value.op)
            value = value.op.operands[0]
        for view in reversed(views):
            if view in position and shown.get(view) != runs.get(value, 0):
                shown[view] = runs.get(value, 0)
                order.append(position[view])

    for number in sequence:
        op = graph.ops[number]
        for value in _reads(op):
            show(value)
        order.append(position[op])
        for result in op.results:
            runs[result] = runs.get(result, 0) + 1
    if (terminator := _terminator(graph.block)) is not None:
        for value in terminator.operands:
            show(value)
    return order


def replay(block: Block, order: Sequence[int]) -> list[Operation]:
    """Make the ops of `block` run in `order`; returns the copies that are made for it.

    Every run reads what the last run before it made. The first run of an op is the op itself, so it
    keeps its identity; later runs are copies with the same names. Ops without effects that do not
    occur are dropped. Raises BraidError, before anything is changed, where `order` makes no sense.
    """
    ops = ordered_ops(block)
    _verify_order(block, ops, order)
    latest: dict[SSAValue, SSAValue] = {}
    operands = {op: tuple(op.operands) for op in ops}
    runs: dict[Operation, int] = {}
    sequence: list[Operation] = []
    copies: list[Operation] = []
    for position in order:
        op = ops[position]
        count = runs.setdefault(op, 0)
        run = op if count == 0 else op.clone()
        runs[op] += 1
        if count > 0:
            run.operands = operands[op]
            run.attributes[RECOMPUTED] = IntegerAttr(count, i64)
            run.location = op.location
            copies.append(run)
        _read_latest(run, latest)
        sequence.append(run)
        latest.update(zip(op.results, run.results, strict=True))
    set_ordered_ops(block, sequence)
    if (terminator := _terminator(block)) is not None:
        _read_latest(terminator, latest)
    for op in reversed([op for op in ops if op not in runs]):
        op.erase()
    return copies


def _terminator(block: Block) -> Operation | None:
    last = block.last_op
    return last if last is not None and last.has_trait(IsTerminator) else None


def _reads(op: Operation) -> list[SSAValue]:
    return [operand for inner in op.walk() for operand in inner.operands]


def _read_latest(op: Operation, latest: dict[SSAValue, SSAValue]) -> None:
    for inner in op.walk():
        for index, operand in enumerate(tuple(inner.operands)):
            if operand in latest:
                inner.operands[index] = latest[operand]


def _verify_order(block: Block, ops: Sequence[Operation], order: Sequence[int]) -> None:
    done: set[Operation] = set()
    for position in order:
        if not 0 <= position < len(ops):
            raise _malformed(block, f"position {position} is not one of {len(ops)}")
        op = ops[position]
        if op in done and not is_recomputable(op):
            raise _malformed(block, f"'{op.name}' runs twice but cannot be recomputed", op)
        done.add(op)
        _verify_reads(block, op, done)
    if (terminator := _terminator(block)) is not None:
        _verify_reads(block, terminator, done)
    for op in ops:
        if op not in done and not is_side_effect_free(op):
            raise _malformed(block, f"'{op.name}', which has side effects, never runs", op)


def _verify_reads(block: Block, op: Operation, done: set[Operation]) -> None:
    for value in _reads(op):
        owner = value.owner
        if isinstance(owner, Operation) and owner.parent is block and owner not in done:
            raise _malformed(block, f"'{op.name}' runs before '{owner.name}', which it reads", op)


def _malformed(block: Block, message: str, op: Operation | None = None) -> BraidError:
    owner = block.parent_op()
    return BraidError(
        f"{ORDER} is malformed: {message}",
        location=None if owner is None else source_location(owner),
        hint="run select-rematerialization again, or remove the attribute",
        notes=[] if op is None else [Note("this op", source_location(op))],
    )
