"""`fuse-gathers`: what gathers an operand of a product goes into the product's group."""

from dataclasses import dataclass
from math import inf

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from braid.analysis.diagnostics.remarks import emit_remark
from braid.analysis.execution.compute_ops import runtime_functions
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.clusters import run_together
from braid.dialects.braid.indexing import slab_rank
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.measured_times import sum_measured
from braid.dialects.braid.names import union_names
from braid.dialects.braid.regions import FusedOp, YieldOp
from braid.targets.costs.cost_source import CostSource
from braid.targets.machines.resolve import target_of

_MATRIX = 2


@dataclass(frozen=True)
class FuseGathersPass(ModulePass):
    """Lets products read slabs of a table where they lie, as those of experts do.

    In: groups as `apply-fusion` leaves them. Out: a gather that is alone in its group, and that
    nothing but a product reads, is in the group of that product, where kernels of the op's device
    cost less so: what it gathers is never stored.

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
    """Whether `op` is a group of a gather of matrices with static shapes, and nothing else."""
    if not isinstance(op, FusedOp) or any(DYNAMIC in shape_of(v) for v in op.results):
        return False
    *members, end = op.body.block.ops
    return len(members) == 1 and slab_rank(end.operands[0]) == _MATRIX


def _fuse(gather: Operation, costs: CostSource) -> bool:
    """Puts the gather into the group of the product that reads it, if that is faster."""
    assert isinstance(gather, FusedOp)
    product = _only_product(gather)
    if product is None or not run_together(gather, product):
        return False
    both = _joined(gather, product)
    apart = _seconds(costs, gather) + _seconds(costs, product)
    Rewriter.insert_op(both, InsertPoint.before(product))
    if not _has_kernels(costs, both) or _seconds(costs, both) >= apart:
        Rewriter.erase_op(both)
        return False
    for old, new in zip(product.outputs, both.outputs, strict=True):
        old.replace_all_uses_with(new)
    Rewriter.erase_op(product)
    Rewriter.erase_op(gather)
    return True


def _has_kernels(costs: CostSource, group: FusedOp) -> bool:
    """Whether kernels run the group, rather than instructions that are issued for its ops."""
    device = costs.of(group)
    return device.backend.issue is None and bool(device.kernels.options(group))


def _seconds(costs: CostSource, group: FusedOp) -> float:
    """What the best kernel of the group costs, in whatever layouts."""
    return min((cost.seconds for _, cost in costs.of(group).choices(group)), default=inf)


def _only_product(gather: FusedOp) -> FusedOp | None:
    """The group whose product alone reads what `gather` gathers, in the same block."""
    uses = list(gather.outputs[0].uses)
    group = uses[0].operation if len(uses) == 1 else None
    if not isinstance(group, FusedOp) or group.parent is not gather.parent:
        return None
    inner = list(group.body.block.args[uses[0].index].uses)
    is_product = len(inner) == 1 and isinstance(inner[0].operation, MatmulOp)
    return group if is_product else None


def _joined(gather: FusedOp, product: FusedOp) -> FusedOp:
    """One group that does what the two did."""
    gathered = gather.outputs[0]
    outside = [value for value in product.inputs if value is not gathered]
    inputs = list(dict.fromkeys((*outside, *gather.inputs)))
    body = Block(arg_types=[value.type for value in inputs])
    values: dict[SSAValue, SSAValue] = dict(zip(inputs, body.args, strict=True))
    for group in (gather, product):
        block = group.body.block
        inner: dict[SSAValue, SSAValue] = {}
        for argument, value in zip(block.args, group.inputs, strict=True):
            inner[argument] = values[value]
        copies = [op.clone(value_mapper=inner) for op in block.ops]
        if group is gather:
            end = copies.pop()
            values[gathered] = end.operands[0]
            end.drop_all_references()
        body.add_ops(copies)
    assert isinstance(body.last_op, YieldOp)
    fused = FusedOp(inputs, [value.type for value in product.outputs], body)
    union_names(fused, gather, product)
    sum_measured(fused, [gather, product])
    fused.location = product.location
    return fused
