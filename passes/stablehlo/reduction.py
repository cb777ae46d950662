"""Reductions of StableHLO."""

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, SymbolRefAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, BlockArgument, SSAValue

from braid.dialects.braid.base import element_type_of, extents_of, require_dim, shape_of
from braid.dialects.braid.dtypes import i1, to_numpy
from braid.dialects.braid.reduction import ReduceOp, neutral_of
from braid.dialects.stablehlo import StablehloOp
from braid.passes.stablehlo.elementwise import ON_BOOLS
from braid.passes.stablehlo.folding import folded
from braid.passes.stablehlo.node import StablehloNode, converter
from braid.passes.stablehlo.places import found_places
from braid.passes.stablehlo.regions import region_of, returned_by

KINDS = {
    "add": "add",
    "and": "and",
    "maximum": "maximum",
    "minimum": "minimum",
    "multiply": "mul",
    "or": "or",
}
"""Ops of regions, as braid's reductions name them."""


@converter("reduce")
def reduce(t: StablehloNode) -> Sequence[SSAValue]:
    """Reduce some dims, which go away, from initial values on, in the types of the results.

    Values that meet no others are reduced for themselves, places of the largest or the smallest
    element are found, and any other region is applied to halves of the elements.
    """
    count, dims = len(t.op.results), t.integers("dimensions")
    values = [
        t.cast(t.value(index), element_type_of(result)) for index, result in enumerate(t.op.results)
    ]
    block = region_of(t, 2 * count)
    for dim in dims:
        require_dim(dim, len(shape_of(values[0])))
    if any(extents_of(value) != extents_of(values[0]) for value in values):
        t.fail("its operands have different shapes")
    kept = [extent for dim, extent in enumerate(extents_of(values[0])) if dim not in dims]
    kinds = combinations(block)
    if None not in kinds:
        reduced = [
            t.reshape(t.emit(ReduceOp.get(value, kind, dims)), kept)
            for kind, value in zip(kinds, values, strict=True)
            if kind is not None
        ]
        initial = t.op.operands[count:]
        return [
            with_initial(t, kind, value, first)
            for kind, value, first in zip(kinds, reduced, initial, strict=True)
            if kind is not None
        ]
    places = found_places(t, block, values, dims)
    if places is not None:
        return [t.reshape(value, kept) for value in places]
    return folded(t, block, values, dims)


def combinations(block: Block) -> list[str | None]:
    """Return the kind by which a region combines each value with its own element alone, or None."""
    returned = returned_by(block)
    return [
        _kind(value, {block.args[index], block.args[len(returned) + index]})
        for index, value in enumerate(returned)
    ]


def _kind(value: SSAValue, combined: set[BlockArgument]) -> str | None:
    op = value.owner
    if not isinstance(op, StablehloOp) or set(op.operands) != combined:
        return None
    kind = KINDS.get(op.short_name())
    return ON_BOOLS.get(kind, kind) if kind and element_type_of(value) == i1 else kind


def called_combination(t: StablehloNode) -> str:
    """Return the op with which the function that `t` calls combines two elements."""
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
    kind = KINDS.get(kind, kind)
    if kind not in KINDS.values() or set(ops[0].operands) != set(functions[0].args):
        t.unsupported(
            f"it combines elements by the function {', '.join(names) or 'of no name'}",
            hint=f"use one of {', '.join(sorted(KINDS))}",
        )
    return ON_BOOLS.get(kind, kind) if t.is_bool(t.value(0)) else kind


def with_initial(t: StablehloNode, kind: str, value: SSAValue, initial: SSAValue) -> SSAValue:
    """Return `value` combined with the initial value."""
    if is_neutral(t, kind, initial):
        return value
    return t.apply(kind, value, t.repeat(initial, extents_of(value)))


def is_neutral(t: StablehloNode, kind: str, initial: SSAValue) -> bool:
    """Return whether an initial value changes nothing."""
    known, element_type = t.known(initial), element_type_of(initial)
    neutral = to_numpy(element_type).type(neutral_of(kind, element_type))
    return known is not None and bool((known == neutral).all())
