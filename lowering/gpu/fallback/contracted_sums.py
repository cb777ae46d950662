"""Sums of products whose roundings between the product and the sum are left out."""

from collections.abc import Iterable

from xdsl.dialects import arith
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.utils.fast_math import FastMathFlag

from braid.lowering.gpu.nests.row_program import combiner
from braid.lowering.gpu.nests.thread_nests import ThreadNest

_CONTRACTED = arith.FastMathFlagsAttr([FastMathFlag.ALLOW_CONTRACT])


def contract_sums(nests: Iterable[linalg.GenericOp]) -> None:
    """Let nests that add up products do so by fused multiply-adds, half as many instructions."""
    for nest in nests:
        if len(nest.outputs) != 1 or not ThreadNest.of(nest).reduced:
            continue
        total = combiner(nest)
        if not isinstance(total, arith.AddfOp):
            continue
        products = [v.owner for v in total.operands if isinstance(v.owner, arith.MulfOp)]
        for op in (total, *products) if products else ():
            op.properties["fastmath"] = _CONTRACTED
