"""`if`, `case` and `while` of StableHLO as ops of `scf`."""

from collections.abc import Sequence

import numpy as np
from xdsl.dialects import scf
from xdsl.ir import Block, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from braid.dialects.braid.base import element_type_of
from braid.dialects.braid.dtypes import to_numpy
from braid.passes.conversion.control_flow import bool_in, branches, if_else, while_loop
from braid.passes.stablehlo.node import StablehloNode, converter


@converter("if")
def if_(t: StablehloNode) -> Sequence[SSAValue]:
    """Return the first region where the operand is true."""
    return if_else(t, t.value(0))


@converter("while")
def while_(t: StablehloNode) -> Sequence[SSAValue]:
    """Return the condition, then the body."""
    return while_loop(t)


@converter("case")
def case(t: StablehloNode) -> Sequence[SSAValue]:
    """Return the region with the number of the operand, the last one for all other numbers."""
    if not t.op.regions:
        t.fail("expected at least one region")
    *numbered, chosen = branches(t)
    conditions = [_is_number(t, number) for number in range(len(numbered))]
    for condition, region in reversed(list(zip(conditions, numbered, strict=True))):
        choice = scf.IfOp(condition, t.op.result_types, region, chosen)
        choice.location = t.op.location
        chosen = Region(Block([choice, scf.YieldOp(*choice.results)]))
    return _inlined(t, chosen)


def _is_number(t: StablehloNode, number: int) -> SSAValue:
    index = t.value(0)
    dtype = to_numpy(element_type_of(index))
    return bool_in(t, t.apply("eq", index, t.constant(np.array(number, dtype))), t.op)


def _inlined(t: StablehloNode, region: Region) -> Sequence[SSAValue]:
    """Return the values that a region without arguments yields; its ops replace this one."""
    end = region.block.last_op
    assert isinstance(end, scf.YieldOp), "it is a branch of scf"
    values = list(end.operands)
    Rewriter.erase_op(end)
    Rewriter.inline_block(region.block, InsertPoint.before(t.op))
    return values
