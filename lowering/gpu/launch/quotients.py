"""Quotients of f32 by shorter code than what divides any two numbers.

A correctly rounded quotient takes some ten instructions and a branch, half of what memory leaves
time for where elements are of 16 bits. Numbers that a thread divides by the same one are multiplied
by its reciprocal and corrected (P. Markstein, "Computation of elementary functions on the IBM RISC
System/6000 processor", 1990), with the same results where those are above 2^-100. If all results
that depend on a quotient are rounded to 16 bits, through ops that change little when their operands
do, the correction is omitted, or the quotient is within 2 ulp in f32 (PTX ISA, "div.full"). A
quotient that is rounded to a whole number, or compared, stays exact.
"""

from collections import defaultdict
from collections.abc import Sequence

from xdsl.builder import Builder
from xdsl.dialects import arith, llvm, math, scf
from xdsl.dialects.builtin import ModuleOp, bf16, f16, f32
from xdsl.ir import Block, SSAValue, Use
from xdsl.rewriter import InsertPoint, Rewriter

from braid.lowering.common.element_types import constant

_SMOOTH = (
    *(arith.AddfOp, arith.SubfOp, arith.MulfOp, arith.DivfOp, arith.NegfOp),
    *(arith.MaximumfOp, arith.MinimumfOp, math.AbsFOp),
    *(math.ExpOp, math.TanhOp, math.ErfOp, math.SqrtOp),
)
_FEWEST = 4
"""Quotients of a thread with one divisor, from which a reciprocal is worth it."""
_LARGE = 2.0**100
"""Divisors beyond, and below its reciprocal, are scaled: their reciprocals would lose bits."""


def shorten_quotients(module: ModuleOp) -> None:
    """Change the quotients of f32 in a kernel's entries."""
    by_divisor: dict[SSAValue, list[arith.DivfOp]] = defaultdict(list)
    for op in module.walk():
        if isinstance(op, arith.DivfOp) and op.result.type == f32:
            by_divisor[op.rhs].append(op)
    rounded = {op for ops in by_divisor.values() for op in ops if _is_rounded(op.result, set())}
    for divisor, ops in by_divisor.items():
        if len(ops) >= _FEWEST:
            _multiply(divisor, ops, rounded)
            continue
        for op in ops:
            if op in rounded:
                short = llvm.CallIntrinsicOp("llvm.nvvm.div.full", [op.lhs, op.rhs], [f32])
                Rewriter.replace_op(op, short)


def _multiply(
    divisor: SSAValue, quotients: Sequence[arith.DivfOp], rounded: set[arith.DivfOp]
) -> None:
    """Multiply by the reciprocal of a divisor, which is scaled so that both are normal."""
    b = _after(divisor)
    size = b.insert(math.AbsFOp(divisor)).result
    one, large, small = (_number(b, value) for value in (1.0, _LARGE, 1.0 / _LARGE))
    is_large = b.insert(arith.CmpfOp(size, large, "oge")).result
    is_small = b.insert(arith.CmpfOp(size, small, "ole")).result
    scale = b.insert(arith.SelectOp(is_small, large, one)).result
    scale = b.insert(arith.SelectOp(is_large, small, scale)).result
    # Its sign too, so that zeros keep theirs when they are corrected.
    scale = b.insert(math.CopySignOp(scale, divisor)).result
    scaled = b.insert(arith.MulfOp(divisor, scale)).result
    inverse = b.insert(arith.DivfOp(one, scaled)).result
    for op in quotients:
        own = Builder(InsertPoint.before(op))
        dividend = own.insert(arith.MulfOp(op.lhs, scale)).result
        result = own.insert(arith.MulfOp(dividend, inverse)).result
        if op not in rounded:
            result = _corrected(own, dividend, scaled, inverse, result)
        Rewriter.replace_op(op, [], [result])


def _corrected(
    b: Builder, dividend: SSAValue, divisor: SSAValue, inverse: SSAValue, quotient: SSAValue
) -> SSAValue:
    """Return the quotient corrected by the divided remainder, unless that is NaN, as for
    infinities.
    """
    missing = b.insert(arith.NegfOp(dividend)).result
    excess = b.insert(math.FmaOp(quotient, divisor, missing)).result
    rest = b.insert(arith.NegfOp(excess)).result
    better = b.insert(math.FmaOp(rest, inverse, quotient)).result
    known = b.insert(arith.CmpfOp(better, better, "ord")).result
    return b.insert(arith.SelectOp(known, better, quotient)).result


def _after(value: SSAValue) -> Builder:
    """Return where a value is known."""
    owner = value.owner
    if isinstance(owner, Block):
        return Builder(InsertPoint.at_start(owner))
    return Builder(InsertPoint.after(owner))


def _number(builder: Builder, value: float) -> SSAValue:
    return constant(builder, value, f32)


def _is_rounded(value: SSAValue, seen: set[SSAValue]) -> bool:
    """Return whether nothing but numbers of 16 bits comes of a value; those `seen` are known to."""
    if value in seen:
        return True
    seen.add(value)
    return all(_rounds(use, seen) for use in value.uses)


def _rounds(use: Use, seen: set[SSAValue]) -> bool:
    op = use.operation
    match op:
        case arith.TruncFOp():
            return op.result.type in (f16, bf16)
        case arith.SelectOp():
            return use.index > 0 and _is_rounded(op.result, seen)
        case scf.YieldOp() if isinstance(branch := op.parent_op(), scf.IfOp):
            return _is_rounded(branch.results[use.index], seen)
        case _ if isinstance(op, _SMOOTH):
            return _is_rounded(op.results[0], seen)
        case _:
            return False
