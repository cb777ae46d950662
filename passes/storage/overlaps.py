"""Operands that begin where the results of the kernels that read them last do."""

from collections.abc import Iterator, Mapping

from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Operation

from braid.analysis.storage.strided_storage import overlap_of
from braid.analysis.structure.functions import functions_beside
from braid.passes.storage.storage import Storage
from braid.passes.storage.storage_assignment import StorageAssignment


def link_overlaps(function: FuncOp, assignment: StorageAssignment) -> None:
    """Let operands over which kernels write be the beginning of the results (`Storage.within`).

    The kernel (or, before it exists, the decision on the group) names the operand. It must be
    alone in its storage, which nothing else reads any more; the result must begin there. Where ops
    run side by side, nothing overlaps.
    """
    if assignment.order.streams > 1:
        return
    functions = functions_beside(function)
    for op in function.walk():
        for operand, result in _declared(op, assignment, functions):
            if _is_free(op, operand, result, assignment):
                operand.within = result


def _declared(
    op: Operation, assignment: StorageAssignment, functions: Mapping[str, FuncOp]
) -> Iterator[tuple[Storage, Storage]]:
    """Yield the storage of the operand that `op` may write over, with that of its result."""
    speaker = functions.get(op.callee.string_value()) if isinstance(op, CallOp) else op
    number = None if speaker is None else overlap_of(speaker)
    if number is not None:
        values = (op.operands[number], op.results[0])
        if all(assignment.offset.get(value, 0) == 0 for value in values):
            yield assignment.of[values[0]], assignment.of[values[1]]


def _is_free(
    op: Operation, operand: Storage, result: Storage, assignment: StorageAssignment
) -> bool:
    now = assignment.numbering.span(op).start
    return (
        operand.place is None
        and operand.upper == now == result.lower
        and operand.lower < now
        and operand.memory == result.memory
        and isinstance(operand.size, int)
        and isinstance(result.size, int)
        and operand.size <= result.size
        and operand.element_bytes <= result.element_bytes
        and sum(assignment.of.get(value) is operand for value in op.operands) == 1
    )
