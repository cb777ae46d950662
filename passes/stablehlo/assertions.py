"""Turn assertions of StableHLO models about shapes into assumptions that every run checks."""

from dataclasses import replace
from math import lcm

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from braid.analysis.sizes.binding import Binding
from braid.dialects.braid.attribute_names import SYMBOLS
from braid.dialects.braid.elementwise import ElementwiseOp
from braid.dialects.braid.size_evaluation import is_sized
from braid.dialects.braid.sizes import assumptions_of, symbols_attribute
from braid.passes.stablehlo.node import StablehloNode
from braid.support.sizes.assumptions import Assumed
from braid.support.sizes.expression import (
    Extent,
    Size,
    SizeError,
    Symbol,
    sum_of,
    symbol,
    symbols_of,
)

_RELATIONS = ("eq", "ge", "gt", "le", "lt")


def assume_asserted(t: StablehloNode) -> None:
    """Assume operand 0, a comparison of sizes: its two sides are equal, or one is bounded.

    Two symbols that are equal become one; a symbol that is compared with a number gets a range.
    Any other condition is not assumed, and not checked: what ops need of their shapes is.

    Raises:
        BraidError: the condition never holds.

    """
    condition = t.known_values(t.value(0))
    if condition is not None and not is_sized(condition):
        if not condition.all():
            t.fail(f"it never holds: {t.text('error_message')}")
        return
    comparison, function = t.value(0).owner, t.op.parent_op()
    if not isinstance(function, FuncOp) or not isinstance(comparison, ElementwiseOp):
        return  # what a branch asserts holds where the branch is taken
    sides = [_extent(t, value) for value in comparison.operands]
    if comparison.ROW.name in _RELATIONS and len(sides) == 2:
        left, right = sides
        if left is not None and right is not None:
            try:
                _assume(function, comparison.ROW.name, left, right)
            except SizeError as error:
                t.fail(f"it never holds: {error.message}")


def _extent(t: StablehloNode, value: SSAValue) -> Extent | None:
    """Return the only element of a value of numbers and sizes."""
    array = t.known_values(value)
    if array is None or array.size != 1:
        return None
    element = array.reshape(-1)[0]
    return element if isinstance(element, Size) else int(element)


def _assume(function: FuncOp, name: str, left: Extent, right: Extent) -> None:
    """Assume a relation of two sizes where it is about one symbol, or makes two one."""
    difference = left - right if name in ("eq", "ge", "gt") else right - left
    if name in ("gt", "lt"):
        difference = difference - 1
    if isinstance(difference, int):
        return
    if name == "eq" and _is_symbol(left) and _is_symbol(right):
        _make_one(function, left, right)
    elif len(difference.open_terms) == 1 and len(symbols_of(difference)) == 1:
        ((monomial, factor),) = difference.open_terms
        if sum_of({monomial: 1}) == symbol(*symbols_of(difference)):
            (own,) = symbols_of(difference)
            _bound(function, own, name, factor, difference.constant)


def _is_symbol(size: Extent) -> bool:
    return isinstance(size, Size) and [size] == [symbol(name) for name in symbols_of(size)]


def _bound(function: FuncOp, own: str, name: str, factor: int, constant: int) -> None:
    """Assume that `factor · own + constant` is 0, or at least that."""
    known = dict(assumptions_of(function).symbols)
    assumed = known.get(own, Assumed())
    least, most = assumed.minimum, assumed.maximum
    if factor > 0 or name == "eq":
        least = max(least, -(constant // factor))
    if factor < 0 or name == "eq":
        limit = constant // -factor
        most = limit if most is None else min(most, limit)
    function.attributes[SYMBOLS] = symbols_attribute(
        {**known, own: replace(assumed, minimum=least, maximum=most)}
    )


def _make_one(function: FuncOp, left: Extent, right: Extent) -> None:
    """Replace the symbol on the left by the one on the right, which gets its range."""
    (own,), (other,) = symbols_of(left), symbols_of(right)
    Binding.replacing(Symbol(own), right).bind_all(function)
    known = dict(assumptions_of(function).symbols)
    dropped = known.pop(own, None)
    if dropped is not None:
        kept = known.get(other, Assumed())
        most = [each.maximum for each in (dropped, kept) if each.maximum is not None]
        known[other] = Assumed(
            minimum=max(dropped.minimum, kept.minimum),
            maximum=min(most, default=None),
            multiple_of=lcm(dropped.multiple_of, kept.multiple_of),
        )
        function.attributes[SYMBOLS] = symbols_attribute(known)
