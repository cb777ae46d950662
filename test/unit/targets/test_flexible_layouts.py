"""Layouts that the generic lowering offers, and that its kernels compute the same in them."""

import numpy as np
import pytest
from xdsl.dialects.builtin import TensorType, f32

from braid.analysis.storage.view_groups import moves_nothing
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.movement import ConcatOp, PadOp, TransposeOp
from braid.dialects.braid.reduction import ReduceOp
from braid.dialects.braid.relayout import to_storage
from braid.lowering.cpu.call import CallableKernel
from braid.lowering.cpu.fallback.emit_fallback import emit_fallback
from braid.targets.kernels.flexible_layouts import flexible_choices
from test.run.kernels.conftest import evaluate, make_group, random_array
from test.storage import from_storage


def pad(x):
    op = PadOp.get(x, (0, 0, 1, 2), (0, 0, 0, 1), 0.5)
    return [op], [op.output]


def concat(x, y):
    op = ConcatOp.get([x, y], 1)
    return [op], [op.output]


def total(dim):
    def build(x):
        op = ReduceOp.get(x, "add", (dim,))
        return [op], [op.output]

    return build


def transpose(*permutation):
    def build(x):
        op = TransposeOp.get(x, permutation)
        return [op], [op.output]

    return build


def test_open_channels_are_no_whole_blocks() -> None:
    group = make_group([TensorType(f32, (1, DYNAMIC, 4, 4))], pad)
    assert [choice.results[0].tag for choice in flexible_choices(group)] == ["abcd", "acdb"]


@pytest.mark.parametrize(
    ("shapes", "build", "tags"),
    [
        ([(1, 32, 4, 4)], pad, ["abcd", "acdb", "aBcd8b", "aBcd16b"]),
        ([(1, 16, 4, 4), (1, 24, 4, 4)], concat, ["abcd", "acdb", "aBcd8b"]),
        ([(1, 16, 4, 4), (1, 4, 4, 4)], concat, ["abcd", "acdb"]),
        ([(1, 16, 4, 4)], total(1), ["abcd", "acdb"]),
        ([(2, 16, 4, 4)], total(3), ["abcd", "acdb", "aBcd8b", "aBcd16b"]),
        ([(2, 3, 4)], transpose(2, 0, 1), ["abc", "bca", "abc"]),
    ],
)
def test_layouts_are_offered_and_right(shapes, build, tags) -> None:
    types = [TensorType(f32, shape) for shape in shapes]
    plain = make_group(types, build)
    choices = flexible_choices(plain)
    assert [choice.results[0].tag for choice in choices] == tags
    arrays = [random_array(type, seed) for seed, type in enumerate(types)]
    [expected] = evaluate(plain, arrays)
    for choice in choices:
        kernel = CallableKernel(emit_fallback(make_group(types, build, choice), "k"))
        stored = [to_storage(a, x) for a, x in zip(arrays, choice.operands, strict=True)]
        output = to_storage(np.zeros_like(expected), choice.results[0])
        kernel(*stored, output)
        actual = from_storage(output, choice.results[0], expected.shape)
        np.testing.assert_allclose(actual, expected, rtol=1e-5)


def test_a_transpose_can_leave_everything_in_place() -> None:
    group = make_group([TensorType(f32, (2, 3, 4, 5))], transpose(0, 2, 3, 1))
    choices = flexible_choices(group)
    assert [moves_nothing(group, choice) for choice in choices] == [False, True, True]
