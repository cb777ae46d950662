"""Dims of nests: those of a stage or of a reshape, in parts where indices divide them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
)

from braid.dialects.braid.structure import Stage
from braid.solvers.hls.nests import Affine


def dim(number: int) -> str:
    """Return the variable of a dim."""
    return f"d{number}"


@dataclass(frozen=True)
class Domain:
    """Dims of a nest: the dims of a stage; a dim that an index divides becomes two.

    `values` has each dim of the stage by them, `quotients` (dim, divisor) where it divides.
    """

    extents: tuple[int, ...]
    parallel: int
    values: tuple[Affine, ...]
    quotients: dict[tuple[int, int], Affine]
    result: tuple[int, ...] | None
    place: tuple[Affine, ...] | None


def domain_of(stage: Stage) -> Domain:
    """Return the dims of a stage; those that an index divides exactly are two."""
    divisors: dict[int, int] = {}
    for access in stage.reads:
        for expression in access.map.results:
            for at, divisor in _divided(expression):
                if divisor > 1 and stage.extents[at] % divisor == 0:
                    divisors.setdefault(at, divisor)
    extents: list[int] = []
    values: list[Affine] = []
    quotients: dict[tuple[int, int], Affine] = {}
    for at, extent in enumerate(stage.extents):
        inner = Affine(0, ((dim(len(extents)), 1),))
        if at in divisors:
            extents += [extent // divisors[at], divisors[at]]
            quotients[at, divisors[at]] = inner
            rest = Affine(0, ((dim(len(extents) - 1), 1),))
            values.append(inner.scaled(divisors[at]) + rest)
        else:
            extents.append(extent)
            values.append(inner)
    count = len(stage.extents) - len(stage.reduction_dims)
    parallel = count + sum(at < count for at in divisors)
    if parallel == count:
        return Domain(tuple(extents), parallel, tuple(values), quotients, None, None)
    place = tuple(values[:count])
    result = tuple(stage.extents[:count])
    return Domain(tuple(extents), parallel, tuple(values), quotients, result, place)


def _divided(expression: AffineExpr) -> Iterator[tuple[int, int]]:
    """Return the dims that are divided in an index, and by what."""
    match expression:
        case AffineBinaryOpExpr(
            AffineBinaryOpKind.FloorDiv, AffineDimExpr(position=at), AffineConstantExpr(value=by)
        ):
            yield at, by
        case AffineBinaryOpExpr(_, left, right):
            yield from _divided(left)
            yield from _divided(right)
        case _:
            pass


def common_dims(given: Sequence[int], made: Sequence[int]) -> tuple[int, ...] | None:
    """Return the fewest dims that refine the dims of both shapes; None if there are none."""
    one, other = ([extent for extent in shape if extent > 1] for shape in (given, made))
    found: list[int] = []
    while one and other:
        least = min(one[-1], other[-1])
        if one[-1] % least or other[-1] % least:
            return None
        found.insert(0, least)
        for left in (one, other):
            left[-1] //= least
            if left[-1] == 1:
                left.pop()
    return tuple(found)


def joined_dims(extents: Sequence[int], shape: Sequence[int]) -> tuple[Affine, ...]:
    """Return the index into a shape whose dims are products of neighbouring ones among these."""
    index: list[Affine] = []
    left = list(range(len(extents)))
    for size in reversed(shape):
        one, factor = Affine(), 1
        while factor < size:
            at = left.pop()
            one += Affine.of(0, {dim(at): factor})
            factor *= extents[at]
        index.insert(0, one)
    return tuple(index)
