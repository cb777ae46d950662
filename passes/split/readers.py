"""Which dims of an op's result its readers can be split along as well."""

from collections.abc import Callable, Sequence

from xdsl.ir import Operation

from braid.dialects.braid.base import TensorOp
from braid.dialects.braid.movement import TransposeOp
from braid.passes.split.aligned_counts import operand_dim
from braid.passes.split.sizes import op_bytes
from braid.passes.split.split_rules import IN_ORDER, SplitDim, split_dims
from braid.targets.costs.simulator.steps import is_addressing


def readable_first(
    op: Operation, dims: Sequence[SplitDim], limit_of: Callable[[Operation], int]
) -> list[SplitDim]:
    """`dims` of `op`, first those along which all readers that must be split can be cut.

    A convolution needs all channels: an op before it is better split along its rows, so that
    parts flow from one to the other.
    """
    if isinstance(op, IN_ORDER | TransposeOp):
        return list(dims)
    wanted = [
        {operand_dim(dim, use.index) for dim in split_dims(use.operation)}
        for use in op.results[0].uses
        if isinstance(use.operation, TensorOp)
        and not is_addressing(use.operation)
        and op_bytes(use.operation) > limit_of(use.operation)
    ]
    return sorted(dims, key=lambda dim: not all(dim.dim in cut for cut in wanted))
