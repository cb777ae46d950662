"""Which emitter makes a group's kernel: the cheapest family that takes it, else the fallback."""

from collections.abc import Sequence

from xdsl.dialects import func
from xdsl.ir import Block

from braid.analysis.storage.strided_storage import STORAGE_DECISIONS, stored_choice
from braid.dialects.braid.regions import FusedOp, YieldOp
from braid.lowering.cpu.fallback.emit_fallback import emit_fallback
from braid.targets.costs.kernel_costs import KernelCosts
from braid.targets.kernels import family_calls
from braid.targets.kernels.kernel_family import Kernel, KernelFamily, KernelRequest


def group_of(function: func.FuncOp) -> FusedOp:
    """The group that `outline-kernels` made `function` of, on operands of its own."""
    body = function.body.clone().block
    last = body.last_op
    assert isinstance(last, func.ReturnOp)
    body.insert_op_before(YieldOp(*last.arguments), last)
    last.detach()
    last.erase()
    region = body.parent
    assert region is not None
    region.detach_block(body)
    operands = Block(arg_types=function.function_type.inputs.data)
    group = FusedOp(operands.args, function.function_type.outputs.data, body)
    operands.add_op(group)
    for name in STORAGE_DECISIONS:
        if (attribute := function.attributes.get(name)) is not None:
            group.attributes[name] = attribute
    return group


def family_for(group: FusedOp, families: Sequence[KernelFamily]) -> KernelFamily | None:
    """The cheapest family that takes `group` as its tensors are stored."""
    return KernelCosts(families).family_for(group, stored_choice(group))


def emit_kernel(symbol: str, group: FusedOp, families: Sequence[KernelFamily]) -> Kernel:
    """The kernel of `group` under this symbol, with the family's default schedule."""
    family = family_for(group, families)
    if family is None:
        return emit_fallback(KernelRequest(group, symbol))
    schedule = family_calls.default_schedule(family, group)
    return family_calls.emit(family, KernelRequest(group, symbol, schedule))
