"""Storages of what branches yield and loops carry; `visit` binds the values in a block."""

from collections.abc import Callable, Sequence

from xdsl.dialects import scf
from xdsl.dialects.builtin import TensorType
from xdsl.dialects.func import CallOp
from xdsl.ir import Block, Operation, OpResult, SSAValue

from braid.analysis.structure.handed_values import tensors
from braid.dialects.braid.buffer import in_place_pairs
from braid.passes.storage.storage import Storage
from braid.passes.storage.storage_table import StorageTable

Visit = Callable[[Block], None]


def bind_branches(table: StorageTable, op: scf.IfOp | scf.IndexSwitchOp, visit: Visit) -> None:
    """Let all branches write what they yield into the storage of the result."""
    for result in tensors(op.results):
        storage = table.new(result, op)
        storage.upper = max(storage.upper, table.numbering.span(op).end)
    for region in op.regions:
        if region.blocks:
            visit(region.block)
            terminator = region.block.last_op
            assert terminator is not None
            for value, result in zip(terminator.operands, op.results, strict=True):
                if isinstance(result.type, TensorType):
                    table.share(value, table.of[result], region.block)


def bind_for(table: StorageTable, op: scf.ForOp, visit: Visit) -> None:
    """Keep the value that a loop carries in one storage from the first iteration to the result."""
    block = op.body.block
    _carry(table, op, op.iter_args, block.args[1:], op.results)
    visit(block)
    _share_carried(table, block, block.args[1:])


def bind_while(table: StorageTable, op: scf.WhileOp, visit: Visit) -> None:
    """Bind as `bind_for` does; the condition hands on another storage unless it is carried."""
    before, after = op.before_region.block, op.after_region.block
    _carry(table, op, op.arguments, before.args, ())
    visit(before)
    condition = before.last_op
    assert isinstance(condition, scf.ConditionOp)
    for value, argument, result in zip(condition.args, after.args, op.results, strict=True):
        if not isinstance(value.type, TensorType):
            continue
        if value in before.args:
            table.bind(argument, table.of[value])
            table.bind(result, table.of[value])
        else:
            storage = table.new(result, op)
            storage.upper = max(storage.upper, table.numbering.span(op).end)
            table.bind(argument, storage)
            table.share(value, storage, before)
    visit(after)
    _share_carried(table, after, before.args)


def _carry(
    table: StorageTable,
    op: Operation,
    initial: Sequence[SSAValue],
    arguments: Sequence[SSAValue],
    results: Sequence[SSAValue],
) -> None:
    """Keep one storage per carried tensor, live while the loop runs and its result is read.

    It may be the storage of the initial value, unless that is read later, perhaps through a view.
    """
    assert op.parent is not None
    begin = table.numbering.span(op).start
    for index, argument in enumerate(arguments):
        if isinstance(argument.type, TensorType):
            storage = table.new(argument, op)
            storage.upper = max(storage.upper, table.numbering.span(op).end)
            if results:
                table.bind(results[index], storage)
            if initial[index].has_one_use() and table.of[initial[index]].upper == begin:
                table.share(initial[index], storage, op.parent)


def _share_carried(table: StorageTable, block: Block, arguments: Sequence[SSAValue]) -> None:
    """Let kernels write the next iteration's value in place if the old one is not read any more."""
    terminator = block.last_op
    assert terminator is not None
    for value, argument in zip(terminator.operands, arguments, strict=True):
        if not isinstance(argument.type, TensorType) or not isinstance(value, OpResult):
            continue
        if _is_read_before(table, table.of[argument], value, block):
            table.share(value, table.of[argument], block)


def _is_read_before(table: StorageTable, storage: Storage, value: OpResult, block: Block) -> bool:
    """Return whether the loop reads `storage` no more when it is written for `value`.

    The last read may be in the kernel that makes `value`, if it supports that in place.
    """
    last = _last_read(table, storage, block)
    first_write = table.of[value].lower
    op = value.op
    makes_first = first_write == table.numbering.span(op).start
    if last != first_write or not makes_first or not isinstance(op, CallOp):
        return last < first_write
    read = [i for i, operand in enumerate(op.operands) if table.of.get(operand) is storage]
    return len(read) == 1 and (read[0], value.index) in in_place_pairs(table.kernel_of(op))


def _last_read(table: StorageTable, storage: Storage, block: Block) -> int:
    """Return the last number inside the loop of `block` at which `storage` is read."""
    loop = block.parent_op()
    assert loop is not None
    span = table.numbering.span(loop)
    reads = [
        table.numbering.span(use.operation).start
        for value in table.values_in(storage)
        for use in value.uses
        if span.start < table.numbering.span(use.operation).start <= span.end
    ]
    return max(reads, default=-1)
