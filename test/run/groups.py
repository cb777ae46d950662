"""Groups of ops and what they mean: the reference of kernels that are run."""

from collections.abc import Sequence

from xdsl.ir import SSAValue

from braid.dialects.braid.base import TensorOp
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.relayout import Array


def evaluate(group: FusedOp, inputs: Sequence[Array]) -> list[Array]:
    """Return the results of the ops by their numpy semantics."""
    values: dict[SSAValue, Array] = dict(zip(group.body.block.args, inputs, strict=True))
    for op in group.body.block.ops:
        if isinstance(op, TensorOp):
            results = op.evaluate(*(values[operand] for operand in op.operands))
            values.update(zip(op.results, results, strict=True))
    return [values[value] for value in group.terminator.arguments]
