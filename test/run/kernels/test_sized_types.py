"""Families take open dims from types that say their sizes, as inference finds them."""

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import TensorType, f32

from braid.dialects.braid.base import extents_of
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.movement import ConcatOp, PadOp, TransposeOp
from braid.dialects.braid.normalization import LayerNormOp, SoftmaxOp
from braid.dialects.braid.reduction import ReduceOp
from braid.dialects.braid.scan import ScanOp
from braid.dialects.braid.sizes import sized_type
from braid.dialects.braid.sorting import TopKOp
from braid.lowering.cpu.call import CallableKernel
from braid.lowering.cpu.kernels.concat import ConcatFamily
from braid.lowering.cpu.kernels.elementwise import ElementwiseFamily
from braid.lowering.cpu.kernels.movement import MovementFamily
from braid.lowering.cpu.kernels.normalization import NormalizationFamily
from braid.lowering.cpu.kernels.pad import PadFamily
from braid.lowering.cpu.kernels.reduction import ReductionFamily
from braid.lowering.cpu.kernels.scan import ScanFamily
from braid.lowering.cpu.kernels.top_k import TopKFamily
from braid.support.sizes.evaluation import evaluate as value_of
from braid.support.sizes.expression import symbol
from test.machines import HOST
from test.run.groups import evaluate
from test.run.kernels.conftest import make_group, random_array
from test.schedules import emitted

ROWS, LENGTH = symbol("rows"), symbol("length")
ROW = (1, LENGTH)


def one(make: Any) -> Any:
    """Build the op that `make` makes of the operands."""
    return lambda *values: ([op := make(*values)], list(op.results))


CASES: dict[str, Any] = {
    "softmax": (NormalizationFamily, [(ROWS, LENGTH)], one(lambda x: SoftmaxOp.get(x, 1))),
    "layer norm": (
        NormalizationFamily,
        [(ROWS, LENGTH), ROW, ROW],
        one(lambda x, s, b: LayerNormOp.get(x, s, b, first_dim=1, epsilon=1e-5)),
    ),
    "transpose": (MovementFamily, [(ROWS, LENGTH)], one(lambda x: TransposeOp.get(x, (1, 0)))),
    "pad": (PadFamily, [(ROWS, LENGTH)], one(lambda x: PadOp.get(x, (1, 0), (0, 2), 5.0))),
    "concat": (
        ConcatFamily,
        [(ROWS, LENGTH), (ROWS, 3000)],
        one(lambda x, y: ConcatOp.get([x, y], 1)),
    ),
    "reduction": (ReductionFamily, [(ROWS, LENGTH)], one(lambda x: ReduceOp.get(x, "add", (1,)))),
    "elementwise": (
        ElementwiseFamily,
        [(ROWS, LENGTH), ROW],
        one(lambda x, y: elementwise("add", x, y)),
    ),
    "scan": (ScanFamily, [(ROWS, LENGTH)], one(lambda x: ScanOp.get(x, "add", 1))),
    "top-k": (TopKFamily, [(ROWS, 40)], one(lambda x: TopKOp.get(x, 3, 1))),
}


@pytest.mark.parametrize("case", CASES)
def test_kernels_of_sized_types(case: str) -> None:
    family, shapes, build = CASES[case]
    group = make_group([sized_type(f32, shape) for shape in shapes], build)
    assert family(HOST).match(group) is None, "who asks without sizes gets no open kernel"
    candidate = family(HOST).match(group, extents_of)
    assert candidate is not None
    call = CallableKernel(emitted(candidate, next(candidate.space(0))))
    for rows, length in ((1, 1), (5, 37)):
        symbols = {"rows": rows, "length": length}
        types = [TensorType(f32, [value_of(e, symbols) for e in shape]) for shape in shapes]
        arrays = [random_array(type, seed) for seed, type in enumerate(types)]
        expected = evaluate(make_group(types, build), arrays)
        results = [np.full(array.shape, 7, array.dtype) for array in expected]
        call(*arrays, *results, symbols=symbols)
        for result, reference in zip(results, expected, strict=True):
            np.testing.assert_allclose(result, reference, rtol=2e-5, atol=2e-5)
