"""The dims of a stage, and the elements from one step along each to the next in stored tensors."""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
)

from braid.dialects.braid.structure import Stage


@dataclass(frozen=True)
class Part:
    """Steps along one dim of a stage, each over `factor` of its indices."""

    dim: int
    factor: int
    extent: int


def parts_of(stage: Stage) -> list[Part]:
    """Return the dims of a stage without open dims; one whose quotient indexes an operand is two.

    The channels of a grouped convolution, for example, are the groups and the channels of one.
    """
    divisors: dict[int, int] = {}
    for access in stage.reads:
        for expr in (inner for result in access.map.results for inner in result.dfs()):
            quotient = _quotient(expr)
            if quotient is not None:
                dim, divisor = quotient
                divisors[dim] = divisor
    parts: list[Part] = []
    for dim, extent in enumerate(stage.extents):
        size = divisors.get(dim, 1)
        if size > 1 and extent % size == 0:
            parts += [Part(dim, size, extent // size), Part(dim, 1, size)]
        else:
            parts.append(Part(dim, 1, extent))
    return parts


def steps_along(map: AffineMap, strides: Sequence[int], parts: Sequence[Part]) -> list[int] | None:
    """Return the elements that one step along each part leads to; None where that is no number.

    `map` gives the index into a tensor whose dims have these `strides`.
    """
    steps = [0] * len(parts)
    for expr, stride in zip(map.results, strides, strict=True):
        if not _add_steps(expr, stride, parts, steps):
            return None
    return steps


def _quotient(expr: AffineExpr) -> tuple[int, int] | None:
    """Return the dim and the divisor of a quotient that is rounded down."""
    if not isinstance(expr, AffineBinaryOpExpr) or expr.kind is not AffineBinaryOpKind.FloorDiv:
        return None
    if not isinstance(expr.lhs, AffineDimExpr) or not isinstance(expr.rhs, AffineConstantExpr):
        return None
    return expr.lhs.position, expr.rhs.value


def _add_steps(expr: AffineExpr, scale: int, parts: Sequence[Part], steps: list[int]) -> bool:
    """Add what `expr` times `scale` advances by; return whether all of it is linear in parts."""
    if isinstance(expr, AffineConstantExpr):
        return expr.value == 0
    if isinstance(expr, AffineDimExpr):
        for number, part in enumerate(parts):
            if part.dim == expr.position:
                steps[number] += scale * part.factor
        return True
    assert isinstance(expr, AffineBinaryOpExpr)
    left, right = expr.lhs, expr.rhs
    if expr.kind is AffineBinaryOpKind.Add:
        return _add_steps(left, scale, parts, steps) and _add_steps(right, scale, parts, steps)
    if expr.kind is AffineBinaryOpKind.Mul and isinstance(right, AffineConstantExpr):
        return _add_steps(left, scale * right.value, parts, steps)
    if (quotient := _quotient(expr)) is None:
        return False
    own = [(number, part) for number, part in enumerate(parts) if part.dim == quotient[0]]
    for number, part in own:
        if part.factor == quotient[1]:
            steps[number] += scale
            return True
    return any(part.extent == 1 for _, part in own)
