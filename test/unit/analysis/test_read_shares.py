"""The share of an operand that is read bounds what is found by changing each of its elements."""

import math

import numpy as np
import pytest
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType, f32, i64
from xdsl.ir import Block

from braid.analysis.tiles.read_shares import read_share
from braid.dialects.braid.indexing import GatherElementsOp, GatherNdOp, GatherOp
from braid.dialects.braid.movement import ReshapeOp, SliceOp
from braid.dialects.braid.reduction import ReduceOp
from braid.dialects.braid.regions import FusedOp, YieldOp
from test.unit.analysis.test_op_tiles import conv

CASES = {
    "rows": ([(50, 3), (4,)], lambda x, i: [GatherOp.get(x, i, 0)], 4 / 50),
    "columns": ([(3, 50), (2, 2)], lambda x, i: [GatherOp.get(x, i, 1)], 4 / 50),
    "elements": ([(9, 5), (2, 5)], lambda x, i: [GatherElementsOp.get(x, i, 0)], 2 / 9),
    "tuples": ([(9, 5), (2, 2)], lambda x, i: [GatherNdOp.get(x, i)], 2 / 45),
    "more than there is": ([(4,), (90,)], lambda x, i: [GatherOp.get(x, i, 0)], 1),
    "slice": ([(10, 6)], lambda x: [SliceOp.get(x, [2, 0], [3, 6], [1, 1])], 3 / 10),
    "strided slice": ([(10, 6)], lambda x: [SliceOp.get(x, [2, 0], [3, 6], [2, 1])], 5 / 10),
    "reduction": ([(10, 6)], lambda x: [ReduceOp.get(x, "add", [0])], 1),
    "convolution": ([(1, 2, 6, 6), (2, 2, 1, 1)], lambda x, w: [conv(x, w, pads=(0, 0))], 1),
    "two slices": (
        [(10, 6)],
        lambda x: [
            SliceOp.get(x, [0, 0], [3, 6], [1, 1]),
            SliceOp.get(x, [7, 0], [3, 6], [1, 1]),
        ],
        6 / 10,
    ),
}


def made(shapes, ops):
    block = Block(arg_types=[TensorType(f32, shapes[0])])
    for shape in shapes[1:]:
        element_type = f32 if len(shape) == 4 else i64
        block.insert_arg(TensorType(element_type, shape), len(block.args))
    found = ops(*block.args)
    block.add_ops(found)
    return block, found


@pytest.mark.parametrize(("shapes", "ops", "share"), CASES.values(), ids=CASES)
def test_read_share(shapes, ops, share) -> None:
    block, found = made(shapes, ops)
    results = [op.results[0] for op in found]
    block.add_op(YieldOp(*results))
    outer = Block(arg_types=block.arg_types)
    group = FusedOp(outer.args, [result.type for result in results], block)
    assert math.isclose(read_share(group, outer.args[0]), share)
    assert read_dependence(found, block, shapes) <= share


def read_dependence(ops, block: Block, shapes) -> float:
    """Return the fraction of the first operand's elements that change the results of `ops`."""
    rng = np.random.default_rng(0)
    data = [
        rng.standard_normal(shape).astype(np.float32)
        if number == 0 or len(shape) == 4
        else rng.integers(0, 2, shape)
        for number, shape in enumerate(shapes)
    ]
    values = dict(zip(block.args, data, strict=True))

    def run(first):
        given = {**values, block.args[0]: first}
        return [op.evaluate(*(given[v] for v in op.operands))[0] for op in ops]

    base, changing = run(data[0]), 0
    for index in np.ndindex(*shapes[0]):
        other = data[0].copy()
        other[index] += 1
        changing += any(not np.array_equal(a, b) for a, b in zip(base, run(other), strict=True))
    return changing / data[0].size


def test_what_an_op_reads_whole() -> None:
    block, (op,) = made([(6, 4)], lambda x: [ReshapeOp.get(x, [24])])
    assert read_share(op, block.args[0]) == 1
    open_dim, (op,) = made([(DYNAMIC_INDEX, 4), (2,)], lambda x, i: [GatherOp.get(x, i, 0)])
    assert read_share(op, open_dim.args[0]) == 1
