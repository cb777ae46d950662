"""Storages of kernels' results: operands that die, or new ones."""

from xdsl.dialects.func import CallOp
from xdsl.ir import SSAValue

from braid.analysis.structure.handed_values import is_handed_on
from braid.dialects.braid.buffer import in_place_pairs
from braid.passes.storage.inter_op_lifetimes import accesses
from braid.passes.storage.storage import Storage, tensor_bytes
from braid.passes.storage.storage_table import StorageTable


def bind_call(table: StorageTable, call: CallOp) -> None:
    """Let results take the memory of operands that the kernel reads for the last time."""
    taken: set[Storage] = set()
    pairs = in_place_pairs(table.kernel_of(call))
    for number, result in enumerate(call.results):
        operands = (call.operands[o] for o, r in pairs if r == number)
        dying = (table.of[o] for o in operands if _may_overwrite(table, call, o, result))
        storage = next((s for s in dying if s not in taken), None)
        if storage is None:
            table.new(result, call)
        else:
            taken.add(storage)
            table.bind(result, storage)


def _may_overwrite(table: StorageTable, call: CallOp, operand: SSAValue, result: SSAValue) -> bool:
    """Return whether `call` is the last to read the storage of `operand`, and reads it once.

    Values that a branch yields, or a loop carries, are written in their final place instead.
    """
    storage = table.of[operand]
    dies = storage.place is None and storage.upper == table.numbering.span(call).start
    dies = dies and _others_are_done(table, storage, call)
    once = sum(table.of.get(value) is storage for value in call.operands) == 1
    same_memory = storage.memory == table.memory_of(call)
    fits = same_memory and storage.size == tensor_bytes(result.type, call)
    fits = fits and table.offset.get(operand, 0) == 0
    return dies and once and fits and not is_handed_on(result)


def _others_are_done(table: StorageTable, storage: Storage, call: CallOp) -> bool:
    """Return whether all other ops that access `storage` have ended when `call` begins."""
    if table.order.streams == 1:
        return True
    inside = table.order.in_body(call)
    others = accesses(table.order, table.values_in(storage)) - {inside}
    return all(table.order.before(other, inside) for other in others)
