"""Replacing an op by an equivalent sequence of ops, for lowering and passes."""

from xdsl.builder import Builder
from xdsl.ir import Operation
from xdsl.rewriter import InsertPoint, Rewriter

from braid.dialects.braid.base import DecomposableOp
from braid.dialects.braid.names import inherit_names


def decompose_op(op: DecomposableOp) -> list[Operation]:
    """Replace `op` by its decomposition, which inherits its names, its place and its location.

    Return the new ops in order; those that are decomposable themselves are not decomposed.
    """
    inserted: list[Operation] = []
    builder = Builder(InsertPoint.before(op), operation_insertion_handler=[inserted.append])
    values = op.decompose(builder)
    inherit_names(op, values, inserted)
    Rewriter.replace_op(op, [], values)
    return inserted


def decompose_all(top: Operation) -> int:
    """Decompose every decomposable op in `top`, to the end; return how many there were."""
    pending = [op for op in top.walk() if isinstance(op, DecomposableOp)]
    count = 0
    while pending:
        count += 1
        pending.extend(op for op in decompose_op(pending.pop()) if isinstance(op, DecomposableOp))
    return count
