"""`fuse-gathers`: what gathers an operand of a product goes into the product's group."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from braid.analysis.diagnostics.remarks import emit_remark
from braid.analysis.execution.compute_ops import runtime_functions
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.clusters import run_together
from braid.dialects.braid.indexing import slab_rank
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.regions import FusedOp
from braid.passes.fusion.operand_groups import is_operand, join_if_faster, seconds
from braid.targets.costs.cost_source import CostSource
from braid.targets.machines.resolve import target_of

_MATRIX = 2


@dataclass(frozen=True)
class FuseGathersPass(ModulePass):
    """Lets products read slabs of a table in place, such as those of experts.

    In: groups after `apply-fusion`. Out: a gather that is alone in its group, and is read only by a
    product, is in the group of that product if kernels of the op's device then cost less: the
    gathered values are never stored.

    ```mlir
    %1 = braid.fused(%table, %ids) { … braid.gather_nd … }
    %2 = braid.fused(%x, %1, %b) { … braid.matmul … braid.add … }
    // becomes
    %2 = braid.fused(%x, %b, %table, %ids) { … braid.gather_nd … braid.matmul … braid.add … }
    ```
    """

    name = "fuse-gathers"

    target: str | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Fuse in every function that runs with the model, as far as it pays."""
        costs = CostSource(target_of(op, self.target))
        for func in runtime_functions(op):
            gathers = [inner for inner in func.walk() if _is_gather(inner)]
            fused = sum(_fuse(gather, costs) for gather in gathers)
            if gathers:
                message = f"{fused} of {len(gathers)} gathers are read by products where they lie"
                emit_remark(func, self.name, message, gathers=len(gathers), fused=fused)


def _is_gather(op: Operation) -> bool:
    """Return whether `op` is a group of a gather of matrices with static shapes, and
    nothing else.
    """
    if not isinstance(op, FusedOp) or len(op.results) != 1 or DYNAMIC in shape_of(op.results[0]):
        return False
    *members, end = op.body.block.ops
    return len(members) == 1 and slab_rank(end.operands[0]) == _MATRIX


def _fuse(gather: Operation, costs: CostSource) -> bool:
    """Put the gather into the group of the product that reads it, if that is faster."""
    assert isinstance(gather, FusedOp)
    product = _only_product(gather)
    if product is None or not run_together(gather, product):
        return False
    apart = seconds(costs, gather) + seconds(costs, product)
    fused = join_if_faster(gather, product, costs, apart)
    if fused:
        Rewriter.erase_op(gather)
    return fused


def _only_product(gather: FusedOp) -> FusedOp | None:
    """Return the group whose product alone reads what `gather` gathers, in the same block."""
    uses = list(gather.outputs[0].uses)
    group = uses[0].operation if len(uses) == 1 else None
    if not isinstance(group, FusedOp) or group.parent is not gather.parent:
        return None
    return group if is_operand(group, uses[0].index) else None
