"""Reductions of StableHLO whose region is one op."""

from typing import cast

from xdsl.dialects.builtin import ArrayAttr, SymbolRefAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, SSAValue

from braid.dialects.braid.base import extents_of
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
    """Reduce some dims, which go away, from an initial value on, in the type of the result."""
    kind = combination(t)
    x, dims = t.cast(t.value(0), t.element_type), t.integers("dimensions")
    kept = [extent for dim, extent in enumerate(extents_of(x)) if dim not in dims]
    y = t.reshape(t.emit(ReduceOp.get(x, kind, dims)), kept)
    return with_initial(t, kind, y)


def combination(t: StablehloNode) -> str:
    """Return the kind by which the region of `t` combines two elements."""
    if len(t.op.operands) != 2:
        t.unsupported("it reduces several values at once", hint="reduce them one after the other")
    op = _only_op(t.op.regions[0].block)
    if op is None or op.short_name() not in _KINDS:
        t.unsupported(
            f"its region is not one of {', '.join(sorted(_KINDS))}",
            hint="compute the elements before the reduction, and reduce them by one of these",
        )
    kind = _KINDS[op.short_name()]
    return ON_BOOLS.get(kind, kind) if t.is_bool(t.value(0)) else kind


def called_combination(t: StablehloNode) -> str:
    """Return what the function that `t` calls combines two elements with."""
    called = t.op.field("called_computations")
    entries = cast("ArrayAttr[Attribute]", called) if isinstance(called, ArrayAttr) else ()
    names = [each.string_value() for each in entries if isinstance(each, SymbolRefAttr)]
    module = t.op.get_toplevel_object()
    functions = [
        op for op in module.walk() if isinstance(op, FuncOp) and op.sym_name.data in names[:1]
    ]
    ops = list(functions[0].body.block.ops) if functions else []
    # It stands before or after the call, and may have been converted.
    kind = ops[0].name.partition(".")[2] if len(ops) == 2 else ""
    kind = _KINDS.get(kind, kind)
    if kind not in _KINDS.values() or set(ops[0].operands) != set(functions[0].args):
        t.unsupported(
            f"it combines elements by the function {', '.join(names) or 'of no name'}",
            hint=f"use one of {', '.join(sorted(_KINDS))}",
        )
    return ON_BOOLS.get(kind, kind) if t.is_bool(t.value(0)) else kind


def _only_op(block: Block) -> StablehloOp | None:
    """Return the op that the block combines its arguments by, None if there are others."""
    ops = list(block.ops)
    if len(ops) != 2 or not isinstance(ops[0], StablehloOp) or not isinstance(ops[1], ReturnOp):
        return None
    combines = set(ops[0].operands) == set(block.args)
    return ops[0] if combines and list(ops[1].operands) == list(ops[0].results) else None


def with_initial(t: StablehloNode, kind: str, value: SSAValue) -> SSAValue:
    """Return `value` combined with the initial value, operand 1."""
    if is_neutral(t, kind):
        return value
    return t.apply(kind, value, t.repeat(t.value(1), extents_of(value)))


def is_neutral(t: StablehloNode, kind: str) -> bool:
    """Return whether the initial value, operand 1, changes nothing."""
    initial = t.known(t.value(1))
    neutral = to_numpy(t.element_type).type(neutral_of(kind, t.element_type))
    return initial is not None and bool((initial == neutral).all())
