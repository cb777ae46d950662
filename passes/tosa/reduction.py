"""Reductions of TOSA, which keep their dim, and the search for the largest element."""

from functools import partial

from xdsl.ir import SSAValue

from braid.dialects.braid.arg_reduction import ArgReduceOp
from braid.dialects.braid.reduction import ReduceOp
from braid.passes.tosa.node import TosaNode, converter

_KINDS = {
    "reduce_all": "and",
    "reduce_any": "or",
    "reduce_max": "maximum",
    "reduce_min": "minimum",
    "reduce_product": "mul",
    "reduce_sum": "add",
}


def _reduce(kind: str, t: TosaNode) -> SSAValue:
    t.require_nan_propagation()
    return t.emit(ReduceOp.get(t.value(0), kind, [t.integer("axis")]))


for _name, _kind in _KINDS.items():
    converter(_name)(partial(_reduce, _kind))


@converter("argmax")
def argmax(t: TosaNode) -> SSAValue:
    """Return the dim goes away."""
    t.require_nan_propagation()
    axis = t.integer("axis")
    found = t.emit(ArgReduceOp.get(t.value(0), "max", axis))
    kept = [extent for dim, extent in enumerate(t.extents(found)) if dim != axis]
    return t.cast(t.reshape(found, kept), t.element_type)
