"""Reductions to the largest or the smallest element and its place, as `argmax` is written."""

from collections.abc import Callable, Sequence

import numpy as np
from xdsl.ir import Attribute, Block, Operation, SSAValue

from braid.dialects.braid.arg_reduction import ArgReduceOp
from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.constants import IotaOp
from braid.dialects.braid.dtypes import i1, is_float, is_number, to_numpy
from braid.dialects.braid.indexing import GatherElementsOp
from braid.dialects.braid.reduction import neutral_of
from braid.dialects.braid.relayout import Array
from braid.dialects.stablehlo import StablehloOp
from braid.passes.stablehlo.node import StablehloNode
from braid.passes.stablehlo.regions import returned_by

_Function = Callable[..., Array]
_COMPARISONS: dict[str, _Function] = {
    "EQ": np.equal,
    "GE": np.greater_equal,
    "GT": np.greater,
    "LE": np.less_equal,
    "LT": np.less,
    "NE": np.not_equal,
}
_FUNCTIONS: dict[str, _Function] = {
    "and": np.logical_and,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "not": np.logical_not,
    "or": np.logical_or,
    "select": np.where,
    "xor": np.logical_xor,
}
"""Regions of these ops depend on nothing but which argument is less, equal or no number."""


def found_places(
    t: StablehloNode, block: Block, values: Sequence[SSAValue], dims: Sequence[int]
) -> list[SSAValue] | None:
    """Return the extreme elements and their places, with extent 1 in the only reduced dim.

    None where the region finds nothing like it, or operand 1 does not count along the dim.
    """
    if len(values) != 2 or len(dims) != 1 or not is_number(element_type_of(values[0])):
        return None
    counter, (dim,) = values[1].owner, dims
    if not isinstance(counter, IotaOp) or counter.dim.value.data != dim:
        return None
    kind = _kind_of(block)
    first = None if kind is None else _first(t, f"{kind}imum", element_type_of(values[0]))
    if kind is None or not first or 0 in shape_of(values[0])[dim : dim + 1]:
        return None
    place = t.emit(ArgReduceOp.get(values[0], kind, dim))
    extreme = t.emit(GatherElementsOp.get(values[0], place, dim))
    return [extreme, t.cast(place, element_type_of(values[1]))]


def _first(t: StablehloNode, kind: str, element_type: Attribute) -> bool:
    """Return whether the initial values are those of before the first element."""
    initial, place = t.known(t.value(2)), t.known(t.value(3))
    return (
        initial is not None
        and place is not None
        and bool(initial == to_numpy(element_type).type(neutral_of(kind, element_type)))
        and bool(place == 0)
    )


def _kind_of(block: Block) -> str | None:
    """Return whether a region chooses as `braid.arg_reduce` does: `max`, `min`, or None.

    All ways in which two elements and their places can be ordered are tried, where nothing else
    matters; elements are combined in their order.
    """
    *ops, _ = block.ops
    functions = [_function_of(op) for op in ops]
    samples = [-1.0, 0.0, 1.0]
    if is_float(element_type_of(block.args[0])):
        samples.append(float("nan"))
    x, y = (grid.reshape(-1) for grid in np.meshgrid(samples, samples))
    arguments = (x, np.zeros(len(x)), y, np.ones(len(x)))
    with np.errstate(invalid="ignore"):
        known: dict[SSAValue, Array] = dict(zip(block.args, arguments, strict=True))
        for op, function in zip(ops, functions, strict=True):
            if function is None or not all(operand in known for operand in op.operands):
                return None
            known[op.results[0]] = function(*(known[operand] for operand in op.operands))
        if not all(returned in known for returned in returned_by(block)):
            return None
        value, place = (known[returned] for returned in returned_by(block))
    for kind, is_more in (("max", y > x), ("min", y < x)):
        is_second = ~np.isnan(x) & (is_more | np.isnan(y))
        chosen = np.where(is_second, y, x)
        if np.array_equal(place, is_second) and np.array_equal(value, chosen, equal_nan=True):
            return kind
    return None


def _function_of(op: Operation) -> _Function | None:
    """Return the effect of an op on elements of which only the order is known, None for other
    ops."""
    if not isinstance(op, StablehloOp) or len(op.results) != 1:
        return None
    node = StablehloNode(op)
    if op.short_name() == "compare" and node.text("compare_type") != "TOTALORDER":
        return _COMPARISONS.get(node.text("comparison_direction"))
    is_logic = op.short_name() in ("and", "not", "or", "xor")
    if is_logic and element_type_of(op.results[0]) != i1:
        return None
    return _FUNCTIONS.get(op.short_name())
