"""Reorders, transposes and channel shuffles by the movement family."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import IntegerType, TensorType, f32

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.movement import ReshapeOp, TransposeOp
from braid.dialects.braid.placement import ReorderOp
from braid.dialects.braid.relayout import to_storage
from braid.lowering.cpu.call import CallableKernel
from braid.lowering.cpu.kernels.movement import MovementFamily
from test.machines import AVX2, AVX512, HOST
from test.run.kernels.conftest import candidate_of, make_group, random_array
from test.schedules import emitted

FAMILY = MovementFamily(HOST)


def reorder(x):
    op = ReorderOp.to(x, Layout.row_major(len(x.type.get_shape())))
    return [op], [op.output]


def transpose(*permutation):
    def build(x):
        op = TransposeOp.get(x, permutation)
        return [op], [op.output]

    return build


def shuffle(groups):
    def build(x):
        n, c, h, w = x.type.get_shape()
        split = ReshapeOp.get(x, (n, groups, c // groups, h, w))
        turned = TransposeOp.get(split.output, (0, 2, 1, 3, 4))
        joined = ReshapeOp.get(turned.output, (n, c, h, w))
        return [split, turned, joined], [joined.output]

    return build


def check_reorder(type, source, target, family=FAMILY):
    """Move a random tensor from one layout to the other, in two parts."""
    choice = LayoutChoice((Layout.parse(source),), (Layout.parse(target),))
    group = make_group([type], reorder, choice)
    candidate = candidate_of(family, group)
    assert candidate.layouts == [choice]
    assert candidate.seconds(choice) > 0
    kernel = CallableKernel(emitted(candidate))
    array = random_array(type, 0)
    expected = to_storage(array, choice.results[0])
    actual = np.zeros_like(expected)
    stored = to_storage(array, choice.operands[0])
    kernel(stored, actual, begin=0, end=kernel.grid // 2)
    kernel(stored, actual, begin=kernel.grid // 2)
    np.testing.assert_array_equal(actual, expected)


tags = st.sampled_from(["abcd", "acdb", "aBcd8b", "aBcd16b", "cdba", "ABcd8b8a", "dcab"])


@settings(max_examples=40, deadline=None)
@given(
    blocks=st.tuples(st.integers(1, 2), st.integers(1, 3)),
    size=st.tuples(st.integers(1, 9), st.integers(1, 40)),
    source=tags,
    target=tags,
)
def test_reorders(check, blocks, size, source, target) -> None:
    shape = (8 * blocks[0], 16 * blocks[1], *size)
    check_reorder(TensorType(f32, shape), source, target)


@pytest.mark.parametrize("machine", [AVX512, AVX2])
@pytest.mark.parametrize("channels", [2, 3, 4, 5, 8, 16, 31])
def test_few_and_many_channels(check, machine, channels) -> None:
    type = TensorType(f32, (2, channels, 7, 43))
    check_reorder(type, "abcd", "acdb", MovementFamily(machine))
    check_reorder(type, "acdb", "abcd", MovementFamily(machine))


@pytest.mark.parametrize("bits", [8, 16, 64])
def test_integers(check, bits) -> None:
    check_reorder(TensorType(IntegerType(bits), (1, 21, 5, 13)), "abcd", "acdb")


def test_long_lines_are_shared(check) -> None:
    type = TensorType(f32, (1, 20, 40, 40))
    check_reorder(type, "abcd", "acdb")
    check_reorder(type, "acdb", "abcd")


@settings(max_examples=25, deadline=None)
@given(
    shape=st.tuples(*[st.integers(1, 20)] * 4),
    permutation=st.permutations(range(4)),
    choice=st.integers(0, 3),
)
def test_transposes(check, shape, permutation, choice) -> None:
    check(FAMILY, [shape], transpose(*permutation), choices=[choice])


def test_transposes_of_other_ranks(check) -> None:
    check(FAMILY, [(37, 50)], transpose(1, 0))
    check(FAMILY, [(3, 17, 50)], transpose(2, 0, 1))
    check(FAMILY, [(2, 3, 4, 5, 6)], transpose(4, 2, 0, 3, 1))


@pytest.mark.parametrize("groups", [2, 3, 4, 8, 20])
def test_channel_shuffles(check, groups) -> None:
    check(FAMILY, [(2, 60 if groups != 8 else 200, 5, 7)], shuffle(groups))


def test_a_reshape_across_a_block_is_refused() -> None:
    def build(x):
        split = ReshapeOp.get(x, (4, 9))
        turned = TransposeOp.get(split.output, (1, 0))
        return [split, turned], [turned.output]

    assert FAMILY.match(make_group([TensorType(f32, (6, 6))], build)) is None
    reorder_of_seven = make_group(
        [TensorType(f32, (1, 7, 2, 2))],
        reorder,
        LayoutChoice((Layout.parse("abcd"),), (Layout.parse("aBcd16b"),)),
    )
    assert FAMILY.match(reorder_of_seven) is None
