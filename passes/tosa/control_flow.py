"""`tosa.cond_if` and `tosa.while_loop` as ops of `scf`."""

from collections.abc import Sequence

from xdsl.ir import SSAValue

from braid.passes.conversion.control_flow import if_else, while_loop
from braid.passes.tosa.node import TosaNode, converter


@converter("cond_if")
def cond_if(t: TosaNode) -> Sequence[SSAValue]:
    """Return the first region where operand 0 is true; the others are the arguments of both."""
    return if_else(t, t.value(0), t.op.operands[1:])


@converter("while_loop")
def while_(t: TosaNode) -> Sequence[SSAValue]:
    """Return the condition, then the body."""
    return while_loop(t)
