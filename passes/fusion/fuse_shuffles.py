"""`fuse-shuffles`: a transpose between two reshapes becomes one group, free to take any layout."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from braid.analysis.execution.compute_ops import runtime_functions
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.clusters import run_together
from braid.dialects.braid.measured_times import sum_measured
from braid.dialects.braid.movement import ReshapeOp, TransposeOp
from braid.dialects.braid.names import union_names
from braid.dialects.braid.regions import FusedOp, YieldOp


def _only_transpose(group: FusedOp) -> TransposeOp | None:
    """Return the transpose that `group` holds, if it holds nothing else."""
    ops = [op for op in group.body.block.ops if op is not group.terminator]
    return ops[0] if len(ops) == 1 and isinstance(ops[0], TransposeOp) else None


def _joined_reshape(group: FusedOp) -> ReshapeOp | None:
    """Return the reshape that is the only user of `group`."""
    uses = list(group.outputs[0].uses)
    user = uses[0].operation if len(uses) == 1 else None
    return user if isinstance(user, ReshapeOp) and user.parent is group.parent else None


def _fuse(split: ReshapeOp, group: FusedOp, transpose: TransposeOp, joined: ReshapeOp) -> None:
    """Replace `joined` by one group that computes what the three did."""
    body = Block(arg_types=[split.input.type])
    inner: list[Operation] = [split.clone(), transpose.clone(), joined.clone()]
    value = body.args[0]
    for op in inner:
        op.operands[0] = value
        value = op.results[0]
    body.add_ops([*inner, YieldOp(value)])
    fused = FusedOp([split.input], [joined.output.type], body)
    union_names(fused, split, group, joined)
    sum_measured(fused, [split, group, joined])
    fused.location = group.location
    Rewriter.insert_op(fused, InsertPoint.before(joined))
    joined.output.replace_all_uses_with(fused.outputs[0])
    Rewriter.erase_op(joined)
    Rewriter.erase_op(group)
    if split.output.first_use is None:
        Rewriter.erase_op(split)


@dataclass(frozen=True)
class FuseShufflesPass(ModulePass):
    """Makes one group of reshape, transpose, reshape, where the ranks before and after are equal.

    In: groups after `apply-fusion`. A reshape fixes its operand to row-major, so that
    the channel shuffle of a network that runs channels last would need two reorders; as one group
    it is a permutation of channels, which a kernel does in either layout.

    ```mlir
    %1 = braid.reshape %0 : (tensor<1x6x8x8xf32>) -> tensor<1x2x3x8x8xf32>
    %2 = braid.fused(%1) { … braid.transpose … }
    %3 = braid.reshape %2 : (tensor<1x3x2x8x8xf32>) -> tensor<1x6x8x8xf32>
    // becomes
    %3 = braid.fused(%0) { … braid.reshape … braid.transpose … braid.reshape … }
    ```
    """

    name = "fuse-shuffles"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Fuse in every function that runs with the model."""
        for func in runtime_functions(op):
            for group in [inner for inner in func.walk() if isinstance(inner, FusedOp)]:
                transpose = _only_transpose(group)
                split = group.operands[0].owner if transpose is not None else None
                joined = _joined_reshape(group) if transpose is not None else None
                if transpose is None or joined is None or not isinstance(split, ReshapeOp):
                    continue
                same_rank = len(shape_of(split.input)) == len(shape_of(joined.output))
                if same_rank and run_together(split, group, joined):
                    _fuse(split, group, transpose, joined)
