"""Find values that terminators pass to the op around them, and ops that run once with a block."""

from collections.abc import Sequence

from xdsl.dialects import scf
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation, SSAValue


def stands_in(op: Operation, block: Block) -> bool:
    """Return whether `op` runs once whenever `block` does, or on one of its branches."""
    if isinstance(op, scf.ForOp | scf.WhileOp):
        return False
    parent = op.parent_op()
    is_branch = isinstance(parent, scf.IfOp | scf.IndexSwitchOp)
    return op.parent is block or (is_branch and stands_in(parent, block))


def is_handed_on(value: SSAValue) -> bool:
    """Return whether a terminator of nested control flow gives `value` to the op around it."""
    return any(isinstance(use.operation, scf.YieldOp | scf.ConditionOp) for use in value.uses)


def tensors(values: Sequence[SSAValue]) -> list[SSAValue]:
    """Return the tensors among `values`."""
    return [value for value in values if isinstance(value.type, TensorType)]


def forwarded(terminator: Operation) -> Sequence[SSAValue]:
    """Return the values that a terminator hands on, without a loop's condition."""
    return terminator.args if isinstance(terminator, scf.ConditionOp) else terminator.operands
