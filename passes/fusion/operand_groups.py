"""Groups of one op that makes an operand of a product, put into the product's group."""

from collections.abc import Callable
from math import inf

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from braid.analysis.sizes.open_forms import bound_group, symbols_in
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.measured_times import sum_measured
from braid.dialects.braid.names import union_names
from braid.dialects.braid.regions import FusedOp, YieldOp
from braid.dialects.braid.sizes import likely_sizes
from braid.targets.costs.cost_source import CostSource

Allows = Callable[[LayoutChoice, FusedOp], bool]
"""A predicate that says whether a group may be made in these layouts."""


def is_operand(product: FusedOp, index: int) -> bool:
    """Return whether a matmul of the group alone reads its input number `index`."""
    inner = list(product.body.block.args[index].uses)
    return len(inner) == 1 and isinstance(inner[0].operation, MatmulOp)


def has_kernels(costs: CostSource, group: FusedOp) -> bool:
    """Return whether kernels run the group, rather than instructions that are issued for
    its ops.
    """
    device = costs.of(group)
    return device.backend.issue is None and bool(device.kernels.options(at_likely_sizes(group)))


def seconds(
    costs: CostSource, group: FusedOp, allows: Allows = lambda choice, group: True
) -> float:
    """Return the cost of the best kernel of the group, in any of the allowed layouts."""
    choices = costs.of(group).choices(at_likely_sizes(group))
    return min((cost.seconds for choice, cost in choices if allows(choice, group)), default=inf)


def at_likely_sizes(group: FusedOp) -> FusedOp:
    """Return the group where its dims are known, else a copy with likely sizes for open ones."""
    function = group.parent_op()
    while function is not None and not isinstance(function, FuncOp):
        function = function.parent_op()
    if function is None or not symbols_in(group):
        return group
    return bound_group(group, likely_sizes(function))


def joined(operand: FusedOp, product: FusedOp) -> FusedOp:
    """Return one group that computes what the two did."""
    made = operand.outputs[0]
    outside = [value for value in product.inputs if value is not made]
    inputs = list(dict.fromkeys((*outside, *operand.inputs)))
    body = Block(arg_types=[value.type for value in inputs])
    values: dict[SSAValue, SSAValue] = dict(zip(inputs, body.args, strict=True))
    for group in (operand, product):
        block = group.body.block
        inner: dict[SSAValue, SSAValue] = {}
        for argument, value in zip(block.args, group.inputs, strict=True):
            inner[argument] = values[value]
        copies = [op.clone(value_mapper=inner) for op in block.ops]
        if group is operand:
            end = copies.pop()
            values[made] = end.operands[0]
            end.drop_all_references()
        body.add_ops(copies)
    assert isinstance(body.last_op, YieldOp)
    fused = FusedOp(inputs, [value.type for value in product.outputs], body)
    union_names(fused, operand, product)
    sum_measured(fused, [operand, product])
    fused.location = product.location
    return fused


def replace_product(product: FusedOp, both: FusedOp) -> None:
    """Replace a group before `product` by the merged group."""
    for old, new in zip(product.outputs, both.outputs, strict=True):
        old.replace_all_uses_with(new)
    Rewriter.erase_op(product)


def join_if_faster(
    operand: FusedOp,
    product: FusedOp,
    costs: CostSource,
    apart: float,
    allows: Allows = lambda choice, group: True,
) -> bool:
    """Put `operand` into `product` where kernels take less than `apart` seconds so.

    `operand` stays for its other readers, if it has any.
    """
    both = joined(operand, product)
    Rewriter.insert_op(both, InsertPoint.before(product))
    if not has_kernels(costs, both) or seconds(costs, both, allows) >= apart:
        Rewriter.erase_op(both)
        return False
    replace_product(product, both)
    return True
