"""Evaluate a model's computations on its own shapes: sizes if dims are open.

Exporters write `Shape`, `Gather`, arithmetic, `Concat` and then `Reshape`. If all operands of such
an op are known, their elements are numbers or sizes, and so are the results': arrays of objects,
`int` and `Size`. Sizes as floats are `Scalar`, rounded as the model's are, until they are integers
again. An op that is not in the tables here is left to the model.
"""

from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import f32, f64, i32, i64
from xdsl.ir import Attribute, SSAValue

from braid.dialects.braid.base import TensorOp, element_type_of, extents_of
from braid.dialects.braid.elementwise import ElementwiseOp
from braid.dialects.braid.indexing import GatherOp
from braid.dialects.braid.movement import (
    BroadcastOp,
    ConcatOp,
    ReshapeOp,
    SliceOp,
    TransposeOp,
)
from braid.dialects.braid.reduction import ReduceOp
from braid.dialects.braid.relayout import Array
from braid.support.errors import UnsupportedError
from braid.support.option_names import option_text
from braid.support.sizes.assumptions import Assumptions
from braid.support.sizes.expression import Extent
from braid.support.sizes.rules import ARITHMETIC, LOGIC, may_wrap
from braid.support.sizes.scalars import Scalar, apply, convert, number, of_size, rounded

SIZES = Assumptions.of({})
"""Symbols are extents of inputs: 0 or more."""

LARGEST_EXTENT = 2**31 - 1
"""Exporters write this number or a larger one for the end of a dim, whatever its extent is."""


def fixed_shape(value: SSAValue) -> tuple[int, ...]:
    """Return the shape of a value; raise UnsupportedError where a dim is open."""
    return tuple(fixed(extent, f"dim {dim}") for dim, extent in enumerate(extents_of(value)))


def fixed(extent: Extent, what: str) -> int:
    """Return an extent that is a number; raise UnsupportedError for a size."""
    if isinstance(extent, int):
        return extent
    raise UnsupportedError(
        f"{what} has the open size '{extent}', which this op must know",
        hint=f"fix it: {option_text('dims')} or {option_text('shapes')}",
    )


def is_sized(array: Array) -> bool:
    """Return whether a known value has sizes in it."""
    return array.dtype == object


def evaluate_sizes(
    op: TensorOp, operands: Sequence[Array], known: Assumptions = SIZES
) -> list[Array] | None:
    """Return the results of an op on numbers and sizes, None where they are left to the model.

    The `known` facts about the symbols decide comparisons, and how quotients are rounded. Bools
    are `int` and sizes of 0 and 1.
    """
    kinds = [element_type_of(value) for value in (*op.operands, *op.results)]
    if any(kind in _WIDTHS for kind in kinds):
        return _floats(op, operands)
    if not all(element_type_of(value) in _INTEGERS for value in op.results):
        return _decided(op, operands, known)
    if isinstance(op, ElementwiseOp):
        rule = ARITHMETIC.get(op.ROW.name)
        if op.ROW.name == "select" and not is_sized(operands[0]):
            return [np.where(operands[0].astype(bool), operands[1], operands[2])]
        found = None if rule is None else _map(partial(rule, known), operands)
        return None if found is None else [found]
    if isinstance(op, ReduceOp):
        return _reduced(op, operands[0], known)
    if isinstance(op, _MOVEMENT):
        return list(op.evaluate(*operands))
    return None


def is_integral(array: Array) -> bool:
    """Return whether a known value is of numbers and sizes, not of sizes as floats."""
    return not is_sized(array) or not any(isinstance(e, Scalar) for e in array.reshape(-1))


_INTEGERS = (i32, i64)
"""Types that are wide enough for extents; narrower ones would wrap around."""
_WIDTHS: dict[Attribute, int] = {f32: 32, f64: 64}
_FLOAT_OPS = {"add": "add", "sub": "sub", "mul": "mul", "div": "div", "sqrt": "sqrt"} | {
    name: name for name in ("floor", "ceil", "round")
}


def _floats(op: TensorOp, operands: Sequence[Array]) -> list[Array] | None:
    """Return the results of an op on sizes as floats."""
    if isinstance(op, _MOVEMENT):
        return list(op.evaluate(*operands))
    if not isinstance(op, ElementwiseOp):
        return None
    source, target = element_type_of(op.operands[0]), element_type_of(op.results[0])
    if op.ROW.name == "cast":

        def converted(value: Any) -> Any:
            return _converted(value, source, target)

        found = _map(converted, operands)
        return None if found is None else [found]
    name, width = _FLOAT_OPS.get(op.ROW.name), _WIDTHS.get(source)
    if name is None or width is None:
        return None

    def applied(*values: Any) -> Scalar:
        return apply(name, *(scalar_of(value, width) for value in values))

    return [_mapped(applied, operands)]


def _converted(value: Any, source: Attribute, target: Attribute) -> Any:
    """Return a number or size in another type, None where that is not known."""
    width = _WIDTHS.get(target)
    if source in _WIDTHS:
        scalar = scalar_of(value, _WIDTHS[source])
        if width is not None:
            return convert(scalar, width)
        return rounded("trunc", scalar) if target in _INTEGERS else None
    return None if width is None else of_size(value, width)


def scalar_of(value: Any, width: int) -> Scalar:
    """Return a number as a scalar; itself if it is one."""
    return value if isinstance(value, Scalar) else number(float(value), width)


_MOVEMENT = (BroadcastOp, ConcatOp, GatherOp, ReshapeOp, SliceOp, TransposeOp)
"""Ops whose meaning in numpy moves elements of any kind."""


def _decided(op: TensorOp, operands: Sequence[Array], known: Assumptions) -> list[Array] | None:
    """Return bools: a plain array if all of them are decided, else one of sizes that are 0 or 1."""
    if isinstance(op, _MOVEMENT):
        return list(op.evaluate(*operands))
    rule = LOGIC.get(op.ROW.name) if isinstance(op, ElementwiseOp) else None
    found = None if rule is None else _map(partial(rule, known), operands)
    if found is None:
        return None
    return [found if is_sized(found) else found.astype(np.bool_)]


def _map(function: Callable[..., Extent | None], operands: Sequence[Array]) -> Array | None:
    """Return a function of each element, None if it has no value for one of them.

    Nor if 64 bits may not hold it: the model's arithmetic wraps around, and sizes do not.
    """
    found = _mapped(function, operands)
    results = found.reshape(-1).tolist()
    if any(result is None or _is_too_large(result) for result in results):
        return None
    return as_array(cast("list[Extent]", results), found.shape)


def _is_too_large(value: Extent | Scalar) -> bool:
    return not isinstance(value, Scalar) and may_wrap(value)


def _mapped(function: Callable[..., Any], operands: Sequence[Array]) -> Array:
    """Return a function of each element as an array of objects."""
    arrays = np.broadcast_arrays(*(operand.astype(object) for operand in operands))
    parts = zip(*(array.reshape(-1) for array in arrays), strict=True)
    found = np.empty(arrays[0].size, object)
    found[:] = [function(*values) for values in parts]
    return found.reshape(arrays[0].shape)


def as_array(extents: Sequence[Extent], shape: Sequence[int]) -> Array:
    """Return numbers and sizes as an array: of i64 where none is a size, else of objects."""
    if all(isinstance(extent, int) for extent in extents):
        return np.array(extents, np.int64).reshape(shape)
    array = np.empty(len(extents), object)
    array[:] = extents
    return array.reshape(shape)


_COMBINES = ("add", "mul", "maximum", "minimum")
"""Kinds of reductions that are evaluated."""


def _reduced(op: ReduceOp, operand: Array, known: Assumptions) -> list[Array] | None:
    """Return a reduction over all dims of a vector."""
    combine = ARITHMETIC[op.kind.data] if op.kind.data in _COMBINES else None
    if combine is None or operand.ndim != 1 or not operand.size or op.dims.get_values() != (0,):
        return None
    found = reduce(partial(combine, known), operand.tolist())
    return None if found is None else [as_array([found], [1])]
