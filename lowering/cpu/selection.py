"""Which emitter makes the kernel of a group: the first family that takes it, else the fallback."""

from collections.abc import Sequence

from xdsl.dialects import func
from xdsl.ir import Block

from braid.analysis.kernel_family import Kernel, KernelFamily, KernelRequest, LayoutChoice
from braid.dialects.braid.attributes import layout_of
from braid.dialects.braid.regions import FusedOp, YieldOp
from braid.lowering.cpu.fallback import emit_fallback


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
    return group


def family_for(group: FusedOp, families: Sequence[KernelFamily]) -> KernelFamily | None:
    """The first family that takes `group` in the layouts of its types."""
    choice = LayoutChoice(
        tuple(layout_of(value.type) for value in group.operands),
        tuple(layout_of(value.type) for value in group.results),
    )
    for family in families:
        if family.accepts(group) and choice in family.layouts(group):
            return family
    return None


def emit_kernel(symbol: str, group: FusedOp, families: Sequence[KernelFamily]) -> Kernel:
    """The kernel of `group` under this symbol, with the family's default schedule."""
    family = family_for(group, families)
    if family is None:
        return emit_fallback(KernelRequest(group, symbol))
    return family.emit(KernelRequest(group, symbol, family.default_schedule(group)))
