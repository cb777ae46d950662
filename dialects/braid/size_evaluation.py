"""Evaluate what a model computes about its own shapes: sizes where dims are open.

Exporters write `Shape`, `Gather`, arithmetic, `Concat` and then `Reshape`. Where all that goes into
such an op is known, it is a number or a size, and so is what comes out: the values are arrays of
objects, `int` and `Size`. Sizes as floats are `Scalar`, rounded as the model's are, until they are
integers again. An op that is not in the tables here is left to the model.
"""

import operator
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
from braid.support.sizes.assumptions import Answer, Assumptions
from braid.support.sizes.expression import (
    Atom,
    Extent,
    Size,
    SizeError,
    all_factors,
    of_atom,
    substitute,
    terms_of,
)
from braid.support.sizes.operators import (
    Condition,
    FloorDiv,
    Select,
    ceildiv,
    is_at_most,
    is_equal,
    maximum,
    minimum,
    select,
)
from braid.support.sizes.program import is_int64
from braid.support.sizes.scalars import Scalar, apply, convert, number, of_size, rounded

SIZES = Assumptions.of({})
"""Symbols are extents of inputs: 0 or more."""

_LARGEST_FACTOR = 2**32
"""Products of larger numbers with an extent may exceed 64 bits."""

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

    What is `known` of the symbols decides which way a quotient is rounded, and comparisons. Bools
    are `int` and sizes of 0 and 1.
    """
    kinds = [element_type_of(value) for value in (*op.operands, *op.results)]
    if any(kind in _WIDTHS for kind in kinds):
        return _floats(op, operands)
    if not all(element_type_of(value) in _INTEGERS for value in op.results):
        return _decided(op, operands, known)
    if isinstance(op, ElementwiseOp):
        function = _ELEMENTWISE.get(op.ROW.name)
        if op.ROW.name == "select" and not is_sized(operands[0]):
            return [np.where(operands[0].astype(bool), operands[1], operands[2])]
        found = None if function is None else _map(partial(function, known), operands)
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
"""Types that extents fit; in narrower ones they would wrap around."""
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


_Rule = Callable[..., Extent | None]
"""What an op makes of each element, from what is assumed of symbols and the operands."""


def _plain(function: Callable[..., Extent]) -> _Rule:
    """Return the rule of a function that need not know anything of the symbols."""

    def rule(known: Assumptions, *values: Extent) -> Extent:
        return function(*values)

    return rule


def _in_cases(rule: _Rule) -> _Rule:
    """Return a rule that distinguishes the two cases of a condition where that is shorter.

    Models compute quotients that are rounded down by comparisons of quotients and remainders that
    are rounded toward zero; where nothing is negative, the cases are alike.
    """

    def in_cases(known: Assumptions, *values: Extent) -> Extent | None:
        factors = [atom for value in values for atom in all_factors(value)]
        selects = [atom for atom in factors if isinstance(atom, Select)]
        for condition in dict.fromkeys(atom.condition for atom in selects):
            alike = [atom for atom in selects if atom.condition == condition]
            cases: list[dict[Atom, Extent]] = [
                {atom: atom.chosen for atom in alike},
                {atom: atom.otherwise for atom in alike},
            ]
            try:
                chosen, otherwise = (
                    rule(known, *(substitute(value, parts) for value in values)) for parts in cases
                )
            except SizeError:
                continue  # one of the cases has no value
            if chosen is not None and chosen == otherwise:
                return chosen
            if isinstance(chosen, int) and isinstance(otherwise, int):
                return select(condition, chosen, otherwise)
        return rule(known, *values)

    return in_cases


def _negative(a: Extent) -> Extent:
    return 0 - a


def _same(a: Extent) -> Extent:
    return a


def _chosen(condition: Extent, a: Extent, b: Extent) -> Extent:
    """Return a select by a bool, which is often itself a select of 0 and 1."""
    factors = all_factors(condition)
    for atom in (atom for atom in factors if isinstance(atom, Select)):
        cases = [substitute(condition, {atom: part}) for part in (atom.chosen, atom.otherwise)]
        if all(isinstance(case, int) for case in cases):
            first, second = (b if case == 0 else a for case in cases)
            rounded = _rounded_up(atom.condition)
            if rounded is not None and second - first in (1, -1):
                return first + (second - first) * rounded
            return select(atom.condition, first, second)
    return select(is_equal(condition, 0), b, a)


def _rounded_up(condition: Condition) -> Extent | None:
    """Return a ceildiv b - a floordiv b, which is 0 where a mod b is, where that is the condition.

    It is 1 elsewhere: a quotient that is corrected by cases is one that is rounded the other way.
    """
    for atom in all_factors(condition.size) if condition.is_zero else ():
        if isinstance(atom, FloorDiv) and isinstance(atom.divisor, int) and atom.divisor > 0:
            rest = atom.numerator - atom.divisor * of_atom(atom)
            if condition.size in (rest, 0 - rest):
                return ceildiv(atom.numerator, atom.divisor) - of_atom(atom)
    return None


def _quotient(known: Assumptions, a: Extent, b: Extent) -> Extent | None:
    """Return the quotient, which models round toward zero; None where its sign is unknown.

    It has no value where the divisor is zero, as in the model.
    """
    if b == 0 or not _at_most(known, 0, b):
        return None
    if _at_most(known, 0, a):
        return a // b
    return 0 - (0 - a) // b if _at_most(known, a, 0) else None


def _remainder(known: Assumptions, a: Extent, b: Extent) -> Extent | None:
    quotient = _quotient(known, a, b)
    return None if quotient is None else a - b * quotient


def _at_most(known: Assumptions, a: Extent, b: Extent) -> bool:
    return known.at_most(a, b) is Answer.YES


def _largest(known: Assumptions, a: Extent, b: Extent) -> Extent:
    return known.simplified(maximum(a, b))


def _least(known: Assumptions, a: Extent, b: Extent) -> Extent:
    return known.simplified(minimum(a, b))


def _sign(known: Assumptions, a: Extent) -> Extent | None:
    for sign, size in ((1, a), (-1, 0 - a)):
        if _at_most(known, 1, size):
            return sign
        if _at_most(known, 0, size):
            return select(is_equal(a, 0), 0, sign)
    return None


_ELEMENTWISE: dict[str, _Rule] = {
    "add": _plain(operator.add),
    "sub": _plain(operator.sub),
    "mul": _plain(operator.mul),
    "div": _quotient,
    "rem": _remainder,
    "neg": _plain(_negative),
    "maximum": _largest,
    "minimum": _least,
    "cast": _plain(_same),
    "sign": _in_cases(_sign),
    "select": _in_cases(_plain(_chosen)),
}
"""On integers of 64 bits, which extents of tensors never leave."""


def _equal(known: Assumptions, a: Extent, b: Extent) -> Extent:
    return _bool(known.equal(a, b), is_equal(a, b))


def _no_more(known: Assumptions, a: Extent, b: Extent) -> Extent:
    return _bool(known.at_most(a, b), is_at_most(a, b))


def _bool(answer: Answer, condition: Condition | bool) -> Extent:
    """Return 1 or 0 for an answer, or the size that is 1 where the condition holds."""
    return select(condition, 1, 0) if answer is Answer.UNKNOWN else int(answer is Answer.YES)


def _not_equal(known: Assumptions, a: Extent, b: Extent) -> Extent:
    return 1 - _equal(known, a, b)


def _less(known: Assumptions, a: Extent, b: Extent) -> Extent:
    return 1 - _no_more(known, b, a)


def _no_less(known: Assumptions, a: Extent, b: Extent) -> Extent:
    return _no_more(known, b, a)


def _more(known: Assumptions, a: Extent, b: Extent) -> Extent:
    return 1 - _no_more(known, a, b)


def _or(a: Extent, b: Extent) -> Extent:
    return a + b - a * b


def _xor(a: Extent, b: Extent) -> Extent:
    return a + b - 2 * a * b


def _not(a: Extent) -> Extent:
    return 1 - a


_LOGIC: dict[str, _Rule] = {
    name: _in_cases(rule)
    for name, rule in {
        "eq": _equal,
        "ne": _not_equal,
        "le": _no_more,
        "lt": _less,
        "ge": _no_less,
        "gt": _more,
        "and": _plain(operator.mul),
        "or": _plain(_or),
        "xor": _plain(_xor),
        "not": _plain(_not),
    }.items()
}
"""Bools as numbers and sizes of 0 and 1."""


def _decided(op: TensorOp, operands: Sequence[Array], known: Assumptions) -> list[Array] | None:
    """Return bools: a plain array where all of them are decided, else one of sizes of 0 and 1."""
    if isinstance(op, _MOVEMENT):
        return list(op.evaluate(*operands))
    rule = _LOGIC.get(op.ROW.name) if isinstance(op, ElementwiseOp) else None
    found = None if rule is None else _map(partial(rule, known), operands)
    if found is None:
        return None
    return [found if is_sized(found) else found.astype(np.bool_)]


def _map(function: Callable[..., Extent | None], operands: Sequence[Array]) -> Array | None:
    """Return a function of each element, None where it has no value for one of them.

    Nor where 64 bits may not hold it: what the model computes wraps around, and sizes do not.
    """
    found = _mapped(function, operands)
    results = found.reshape(-1).tolist()
    if any(result is None or _may_wrap(result) for result in results):
        return None
    return as_array(cast("list[Extent]", results), found.shape)


def _may_wrap(extent: Extent | Scalar) -> bool:
    """Return whether a number is none of 64 bits, or a size is none for extents of up to 2^31."""
    if isinstance(extent, Size):
        return any(abs(factor) > _LARGEST_FACTOR for product, factor in terms_of(extent) if product)
    return isinstance(extent, int) and not is_int64(extent)


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


_COMBINES: dict[str, _Rule] = {
    "add": _plain(operator.add),
    "mul": _plain(operator.mul),
    "maximum": _largest,
    "minimum": _least,
}


def _reduced(op: ReduceOp, operand: Array, known: Assumptions) -> list[Array] | None:
    """Return a reduction over all dims of a vector."""
    combine = _COMBINES.get(op.kind.data)
    if combine is None or operand.ndim != 1 or not operand.size or op.dims.get_values() != (0,):
        return None
    found = reduce(partial(combine, known), operand.tolist())
    return None if found is None else [as_array([found], [1])]
