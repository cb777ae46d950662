"""Reductions of StableHLO whose region is one op."""

from xdsl.ir import Block, SSAValue

from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.dtypes import to_numpy
from braid.dialects.braid.reduction import ReduceOp, neutral_of
from braid.dialects.stablehlo import ReturnOp, StablehloOp
from braid.passes.stablehlo.elementwise import ON_BOOLS
from braid.passes.stablehlo.node import StablehloNode, converter

_KINDS = {
    "add": "add",
    "and": "and",
    "maximum": "maximum",
    "minimum": "minimum",
    "multiply": "mul",
    "or": "or",
}
"""Ops of regions, as braid's reductions name them."""


@converter("reduce")
def reduce(t: StablehloNode) -> SSAValue:
    """Over some dims, which go away, from an initial value on."""
    kind = combination(t)
    y = t.emit(ReduceOp.get(t.value(0), kind, t.integers("dimensions")))
    y = t.reshape(y, t.result_type.get_shape())
    if is_neutral(t, kind):
        return y
    return t.apply(kind, y, t.repeat(t.value(1), shape_of(y)))


def combination(t: StablehloNode) -> str:
    """What the region of `t` combines two elements with."""
    if len(t.op.operands) != 2:
        t.unsupported("it reduces several values at once")
    block = t.op.regions[0].block
    ops = list(block.ops)
    if not _is_one_op(block) or ops[0].name.partition(".")[2] not in _KINDS:
        t.unsupported(f"its region is not one of {', '.join(sorted(_KINDS))}")
    kind = _KINDS[ops[0].name.partition(".")[2]]
    return ON_BOOLS.get(kind, kind) if t.is_bool(t.value(0)) else kind


def _is_one_op(block: Block) -> bool:
    """Whether the block combines its arguments by one op."""
    ops = list(block.ops)
    return (
        len(ops) == 2
        and isinstance(ops[0], StablehloOp)
        and isinstance(ops[1], ReturnOp)
        and set(ops[0].operands) == set(block.args)
        and list(ops[1].operands) == list(ops[0].results)
    )


def is_neutral(t: StablehloNode, kind: str) -> bool:
    """Whether the initial value, operand 1, changes nothing."""
    initial = t.known(t.value(1))
    neutral = neutral_of(kind, element_type_of(t.value(0)))
    dtype = to_numpy(element_type_of(t.value(0)))
    return initial is not None and bool((initial == dtype.type(neutral)).all())
