"""The comparison of a sort's region: keys, each a value of one of the two elements."""

from dataclasses import dataclass, field

import numpy as np
from xdsl.ir import Block, BlockArgument, SSAValue

from braid.dialects.stablehlo import StablehloOp
from braid.passes.stablehlo.node import StablehloNode

_IN_ORDER = (frozenset({0}), frozenset({1}))
"""The sides of a comparison that has a value of the first element on the left."""


@dataclass(frozen=True)
class Key:
    """The sort key of elements: a value of the region that depends on one of the two."""

    value: SSAValue
    is_descending: bool
    is_total: bool
    """True if floats are in their total order, in which -0 is before 0, and NaNs have signs."""


@dataclass(frozen=True)
class Comparator:
    """The region of a sort, whose arguments are the two elements of each operand in turn."""

    node: StablehloNode
    found_sides: dict[SSAValue, frozenset[int]] = field(
        default_factory=dict[SSAValue, frozenset[int]]
    )
    found_same: dict[tuple[SSAValue, SSAValue, bool], bool] = field(
        default_factory=dict[tuple[SSAValue, SSAValue, bool], bool]
    )

    def keys(self, scalar: SSAValue) -> list[Key] | None:
        """Return the keys by which `scalar` compares; None if it is another order.

        It compares a key, or else means: this key is less, or equal and the next one decides.
        """
        if (either := op_of(scalar, "or")) is not None:
            for first, second in (either.operands, reversed(either.operands)):
                both = op_of(second, "and")
                for tie, rest in () if both is None else (both.operands, reversed(both.operands)):
                    keys = self._then(first, tie, rest)
                    if keys is not None:
                        return keys
        if (choice := op_of(scalar, "select")) is not None:
            tie, rest, first = choice.operands
            return self._then(first, tie, rest)
        return self._key(scalar)

    def _then(self, first: SSAValue, tie: SSAValue, rest: SSAValue) -> list[Key] | None:
        """Return the key `first`, followed by `rest` if these decide when it is equal."""
        comparison, equal = op_of(first, "compare"), op_of(tie, "compare")
        if comparison is None or equal is None or _direction(equal) != "EQ":
            return None
        leading, sides = self._key(first), list(comparison.operands)
        compared = (list(equal.operands), list(equal.operands)[::-1])
        is_of_it = any(all(map(self._same, sides, operands)) for operands in compared)
        following = self.keys(rest) if leading is not None and is_of_it else None
        return None if leading is None or following is None else [*leading, *following]

    def _key(self, scalar: SSAValue) -> list[Key] | None:
        """Return the key of a comparison of one value of both elements."""
        comparison = op_of(scalar, "compare")
        if comparison is None or _direction(comparison) not in ("LT", "GT"):
            return None
        left, right = comparison.operands
        sides = (self._sides(left), self._sides(right))
        if sides not in (_IN_ORDER, _IN_ORDER[::-1]) or not self._same(left, right, mirrored=True):
            return None
        key, is_swapped = (left, False) if sides == _IN_ORDER else (right, True)
        is_total = StablehloNode(comparison).text("compare_type") == "TOTALORDER"
        plain = self._canonicalized(key) if is_total else None
        is_descending = (_direction(comparison) == "GT") != is_swapped
        return [Key(plain or key, is_descending, is_total and plain is None)]

    def _canonicalized(self, key: SSAValue) -> SSAValue | None:
        """Return the float that JAX compares by: with one zero and one NaN, the largest number."""
        nan, zero = op_of(key, "select"), None
        if nan is not None:
            zero = op_of(nan.operands[2], "select")
        if nan is None or zero is None:
            return None
        value = zero.operands[2]
        is_nan, is_zero = op_of(nan.operands[0], "compare"), op_of(zero.operands[0], "compare")
        if is_nan is None or is_zero is None:
            return None
        fits = (
            (_direction(is_nan), *is_nan.operands) == ("NE", value, value)
            and (_direction(is_zero), is_zero.operands[0]) == ("EQ", value)
            and np.isnan(self._number(nan.operands[1]))
            and not np.signbit(self._number(nan.operands[1]))
            and self._number(is_zero.operands[1]) == self._number(zero.operands[1]) == 0
        )
        return value if fits else None

    def _number(self, value: SSAValue) -> float:
        """Return a constant of the region, or from before it; 1 for any other value."""
        inside = op_of(value, "constant")
        node = self.node if inside is None else StablehloNode(inside)
        known = node.known(value) if inside is None else node.dense("value")
        return 1.0 if known is None or known.size != 1 else float(known.reshape(-1)[0])

    def _sides(self, value: SSAValue) -> frozenset[int]:
        """Return of which of the two elements, 0 or 1, a value of a region is computed."""
        if isinstance(value, BlockArgument):
            return frozenset({value.index % 2})
        if value not in self.found_sides:
            op = value.owner
            operands = op.operands if isinstance(op, StablehloOp) else ()
            self.found_sides[value] = frozenset().union(*map(self._sides, operands))
        return self.found_sides[value]

    def _same(self, left: SSAValue, right: SSAValue, *, mirrored: bool = False) -> bool:
        """Return whether two values are computed in the same way.

        If `mirrored`, one is computed from the first element as the other is from the second.
        """
        key = (left, right, mirrored)
        if key not in self.found_same:
            self.found_same[key] = self._compared(left, right, mirrored)
        return self.found_same[key]

    def _compared(self, left: SSAValue, right: SSAValue, mirrored: bool) -> bool:
        if isinstance(left, BlockArgument) and isinstance(right, BlockArgument):
            return left.block is right.block and right.index == left.index ^ mirrored
        if left == right:
            return not mirrored or not self._sides(left)
        a, b = left.owner, right.owner
        if isinstance(a, Block) or isinstance(b, Block) or a.regions or b.regions:
            return False
        return (
            (a.name, a.properties, a.attributes) == (b.name, b.properties, b.attributes)
            and len(a.operands) == len(b.operands) > 0
            and all(
                self._same(x, y, mirrored=mirrored)
                for x, y in zip(a.operands, b.operands, strict=True)
            )
        )


def op_of(value: SSAValue, name: str) -> StablehloOp | None:
    """Return the op `name` of StableHLO that makes a value."""
    owner = value.owner
    return owner if isinstance(owner, StablehloOp) and owner.short_name() == name else None


def _direction(comparison: StablehloOp) -> str:
    return StablehloNode(comparison).text("comparison_direction")
