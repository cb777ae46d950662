"""Scores in registers: elementwise ops on them, their maxima, and weights for values.

A thread has pairs of neighbours in two rows, 8 apart, whose other elements three more lanes have,
as `mma.sync` and `wgmma` leave sums.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import log2
from typing import Any, cast

from xdsl.dialects import arith, llvm, math
from xdsl.dialects.builtin import Float32Type, FloatAttr, VectorType, i32
from xdsl.ir import Operation, SSAValue

from braid.lowering.gpu.contraction.code import Code, Value
from braid.lowering.gpu.contraction.epilogue import Epilogue, merge_points, point_of
from braid.lowering.gpu.contraction.kernel import Product

LOG2_E = log2(2.718281828459045)
MINUS_INFINITY = float("-inf")
_LARGE = 2.0**28
"""Exponents of 2 from which f32 cannot distinguish exponents from the largest one."""
_CHAINS = 2
"""Maxima and sums of a row that do not wait for each other."""


@dataclass(frozen=True)
class RunningWeights:
    """The largest score so far, and the sum of the thread's weights, for each of a thread's
    rows.
    """

    maxima: tuple[Value, ...]
    totals: tuple[Value, ...]

    @staticmethod
    def none(code: Code, rows: int) -> "RunningWeights":
        """Return the state before the first score."""
        least, zero = (code.number(n, Float32Type()) for n in (MINUS_INFINITY, 0.0))
        return RunningWeights((least,) * rows, (zero,) * rows)

    @staticmethod
    def of(values: Sequence[Value], rows: int) -> "RunningWeights":
        """Return the inverse of `values`, after which others may follow."""
        return RunningWeights(tuple(values[:rows]), tuple(values[rows : 2 * rows]))

    @property
    def values(self) -> list[Value]:
        """Return the values that loops carry."""
        return [*self.maxima, *self.totals]

    def after(
        self, code: Code, scores: Sequence[Value], factor: float | None = None
    ) -> tuple["RunningWeights", list[Value], list[Value]]:
        """Return the state after more scores, their weights, and the factor for the sums so far.

        Weights are powers of e by the scores and a positive `factor`, relative to the largest one
        of the row. Scores without a factor may be as low as masks make them: see `exponents`.
        """
        weights = list(scores)
        maxima, totals, scales = (list[Value]() for _ in range(3))
        for row, before in enumerate(self.maxima):
            own = [n for n in range(len(scores)) if n // 2 % len(self.maxima) == row]
            most = _chained(code, [scores[n] for n in own], arith.MaximumfOp)
            most = across(code, code.insert(arith.MaximumfOp(before, most)), arith.MaximumfOp)
            log2_e, base = exponents(code, most, factor)
            scale = code.power_of_two(less(code, before, log2_e, base))
            for n in own:
                weights[n] = code.power_of_two(less(code, scores[n], log2_e, base))
            total = code.insert(arith.MulfOp(self.totals[row], scale))
            total = code.insert(
                arith.AddfOp(total, _chained(code, [weights[n] for n in own], arith.AddfOp))
            )
            maxima.append(most)
            totals.append(total)
            scales.append(scale)
        return RunningWeights(tuple(maxima), tuple(totals)), weights, scales


def exponents(code: Code, most: Value, factor: float | None = None) -> tuple[Value, Value]:
    """Return the factor that makes a row's scores exponents of 2, and the largest one's exponent.

    That is log2 e times the factor. If masks with the lowest finite number make all scores of a row
    very low, their exponents would be infinite, or rounded instead of relative to the largest one.
    Scores differ so much there that powers of 2 are as good as powers of e: the multiplication by 1
    is exact. Scores with a constant factor have no mask, and are not looked at.
    """
    none = code.insert(arith.CmpfOp(most, code.number(MINUS_INFINITY, most.type), "oeq"))
    known = code.select(none, code.number(0, most.type), most)
    log2_e = code.number(LOG2_E * (1.0 if factor is None else factor), Float32Type())
    base = code.insert(arith.MulfOp(known, log2_e))
    if factor is not None:
        return log2_e, base
    size = code.insert(math.AbsFOp(base))
    usual = code.insert(arith.CmpfOp(size, code.number(_LARGE, size.type), "olt"))
    one = code.number(1.0, Float32Type())
    return code.select(usual, log2_e, one), code.select(usual, base, known)


def normalized(code: Code, running: RunningWeights, sums: Sequence[Value]) -> list[Value]:
    """Return weighted values divided by the sums of weights."""
    made = list(sums)
    one = code.number(1, Float32Type())
    for row, own in enumerate(running.totals):
        inverse = code.insert(arith.DivfOp(one, across(code, own, arith.AddfOp)))
        for n in range(len(sums)):
            if n // 2 % len(running.totals) == row:
                made[n] = code.insert(arith.MulfOp(sums[n], inverse))
    return made


def elementwise_scores(
    code: Code,
    product: Product,
    sums: Sequence[Value],
    place: tuple[Value, Value, Value],
    values: Mapping[SSAValue, SSAValue],
) -> list[Value]:
    """Return two neighbouring scores after the epilogue, as f32: computed together if they are
    adjacent in operands.

    `place` is a batch, a row, and a column that may be after the last one. If only a
    `constant_factor` follows, it is left out.
    """
    if constant_factor(product.epilogue) is not None:
        return list(sums)
    problem, count = product.problem, product.columns
    batch, row, column = place
    width = 2 if count % 2 == 0 else 1
    lane = problem.columns[-1].dim if problem.columns else None
    found: list[Value] = []
    for first in range(0, 2, width):
        n = code.least(code.add(column, first), count - width)
        parts = (problem.batches, problem.rows, problem.columns)
        points = [point_of(code, p, v) for p, v in zip(parts, (batch, row, n), strict=True)]
        own = list(sums[first : first + width])
        (held,) = product.epilogue.compute(code, own, merge_points(code, *points), lane, values)
        found += [single(code, cast(Value, value)) for value in held]
    return found


def constant_factor(epilogue: Epilogue) -> float | None:
    """Return the positive number by which scores are multiplied, if nothing else happens to
    them.
    """
    factors: dict[SSAValue, float] = {epilogue.body.args[0]: 1.0}
    for op in epilogue.body.ops:
        if (factor := _factor_of(op, factors)) is not None:
            factors[op.results[0]] = factor
    whole = factors.get(epilogue.stored[0])
    return whole if whole is not None and 0 < whole < float("inf") else None


def _factor_of(op: Operation, known: Mapping[SSAValue, float]) -> float | None:
    match op:
        case arith.ExtFOp() | arith.TruncFOp():
            return known.get(op.operands[0])
        case arith.MulfOp():
            scaled, other = sorted(op.operands, key=lambda value: value not in known)
            number = constant_number(other)
            return None if number is None or scaled not in known else known[scaled] * number
        case arith.DivfOp():
            scaled, other = op.operands
            number = constant_number(other)
            return known[scaled] / number if number and scaled in known else None
        case _:
            return None


def constant_number(value: SSAValue) -> float | None:
    """Return a constant float."""
    owner = value.owner
    if not isinstance(owner, arith.ConstantOp) or not isinstance(owner.value, FloatAttr):
        return None
    return cast(FloatAttr[Any], owner.value).value.data


def single(code: Code, value: Value) -> Value:
    """Return a float in 32 bits."""
    if isinstance(value.type, Float32Type):
        return value
    return code.insert(arith.ExtFOp(value, Float32Type()))


def less(code: Code, a: Value, factor: Value, b: Value) -> Value:
    """Return a · factor - b."""
    negative = code.insert(arith.NegfOp(b))
    return code.insert(llvm.FMAOp(a, factor, negative))


def across(code: Code, value: Value, op: Any) -> Value:
    """Return the total or maximum of the four lanes that have elements of a row."""
    for distance in (1, 2):
        operands = [code.number(-1), value, code.number(distance), code.number(31)]
        (other,) = code.intrinsic("llvm.nvvm.shfl.sync.bfly.f32", operands, [value.type])
        value = code.insert(op(value, other))
    return value


def packed(code: Code, pair: Sequence[Value], type: Any) -> Value:
    """Return two numbers, rounded, in one register."""
    narrow = [code.insert(arith.TruncFOp(value, type)) for value in pair]
    vector = code.vector(narrow)
    assert isinstance(vector.type, VectorType)
    return code.insert(llvm.BitcastOp(vector, i32))


def _chained(code: Code, values: Sequence[Value], op: Callable[[Value, Value], Any]) -> Value:
    """Return the sum or maximum."""
    ends = list(values[:_CHAINS])
    for n, value in enumerate(values[_CHAINS:]):
        ends[n % _CHAINS] = code.insert(op(ends[n % _CHAINS], value))
    while len(ends) > 1:
        ends = [code.insert(op(ends[0], ends[1])), *ends[2:]]
    return ends[0]
