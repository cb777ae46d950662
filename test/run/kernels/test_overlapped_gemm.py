"""Products that are written over their left operand."""

import random
from itertools import pairwise

import numpy as np
import pytest
from xdsl.dialects.builtin import TensorType, f32

from braid.analysis.storage.strided_storage import set_overlap, set_strides
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.relayout import Array, to_storage
from braid.lowering.cpu.call import CallableKernel
from braid.lowering.cpu.kernels.gemm import GemmFamily
from braid.targets.kernels.kernel_family import Kernel, Overlap
from braid.targets.kernels.schedules import Entries
from test.machines import HOST
from test.run.kernels.conftest import Build, candidate_of, evaluate, make_group, random_array
from test.schedules import emitted

FAMILY = GemmFamily(HOST)


def product(x, w):
    op = MatmulOp.on(x, w)
    return [op], [op.output]


def with_epilogue(x, w, bias):
    op = MatmulOp.on(x, w)
    add = elementwise("add", op.output, bias)
    tanh = elementwise("tanh", add.output)
    return [op, add, tanh], [tanh.output]


def swapped(w, x):
    op = MatmulOp.on(x, w)
    return [op], [op.output]


def groups(shapes: list[tuple[int, ...]], build: Build):
    """Return the group with packed and with row-major weights, and the layouts."""
    types = [TensorType(f32, shape) for shape in shapes]
    packed, *_, plain = candidate_of(FAMILY, make_group(types, build)).layouts
    for choice in (packed, plain):
        yield make_group(types, build, choice), choice


def run_shuffled(call: CallableKernel, kernel: Kernel, arrays: list[Array]) -> None:
    """Run iterations without a barrier between them in random order."""
    bounds = [0, *kernel.barriers, kernel.grid]
    for begin, end in pairwise(bounds):
        order = list(range(begin, end))
        random.Random(0).shuffle(order)
        for iteration in order:
            call(*arrays, begin=iteration, end=iteration + 1)


@pytest.mark.parametrize(
    ("shapes", "build", "schedule"),
    [
        ([(64, 24), (24, 300)], product, {}),
        ([(7, 13), (13, 37)], product, {}),
        ([(5, 19), (19, 19)], product, {}),
        ([(23, 40), (40, 41)], product, {"rows": 3}),
        ([(2, 3, 17), (1, 17, 70)], product, {"columns_outside": 0}),
        ([(31, 8), (8, 515), (1, 515)], with_epilogue, {"columns_outside": 1}),
        ([(11, 33), (33, 129), (11, 1)], with_epilogue, {}),
        ([(16, 50), (9, 16)], swapped, {}),
    ],
)
def test_overlapping_operand(
    shapes: list[tuple[int, ...]], build: Build, schedule: Entries
) -> None:
    number = 1 if build is swapped else 0
    for group, choice in groups(shapes, build):
        arrays = [random_array(value.type, seed) for seed, value in enumerate(group.inputs)]
        (expected,) = evaluate(group, arrays)
        set_overlap(group, number)
        candidate = candidate_of(FAMILY, group)
        found = candidate.overlap()
        assert found is not None and found.operand == number
        kernel = emitted(candidate, schedule)
        assert kernel.overlap == number and kernel.in_place == ()
        stored = [to_storage(a, tag) for a, tag in zip(arrays, choice.operands, strict=True)]
        result = np.full(expected.shape, 7, np.float32)
        apart = [*stored, result.copy()]
        room = result.reshape(-1)[: stored[number].size]
        room[...] = stored[number].reshape(-1)
        stored[number] = room
        call = CallableKernel(kernel)
        call(*apart)
        run_shuffled(call, kernel, [*stored, result])
        # Terms of sums may be larger than the result of an epilogue.
        bound = 1e-5 * np.abs(expected).max()
        np.testing.assert_allclose(result, expected, rtol=0, atol=bound)
        np.testing.assert_array_equal(apart[-1], result)


def test_scratch_is_small() -> None:
    group, _ = next(groups([(64, 768), (768, 50257)], product))
    found = candidate_of(FAMILY, group).overlap()
    assert found == Overlap(0, found.scratch_bytes if found else -1)
    assert found.scratch_bytes <= 8 * 768 * 4


def add_operand(x, w):
    op = MatmulOp.on(x, w)
    add = elementwise("add", op.output, x)
    return [op, add], [add.output]


@pytest.mark.parametrize(
    ("shapes", "build"),
    [
        ([(8, 40), (40, 39)], product),  # Rows of A do not fit into those of the result.
        ([(3, 8, 16), (3, 16, 32)], product),  # Each matrix of A has another B.
        ([(8, 16), (16, 16)], add_operand),  # A is read again after the product.
        ([(8, 16), (16, 32), (8, 32)], with_epilogue),  # A sum that is computed in place instead.
        ([(1, 16), (16, 32)], product),  # One row: all of it would be copied.
    ],
)
def test_no_overlap(shapes: list[tuple[int, ...]], build: Build) -> None:
    for group, _ in groups(shapes, build):
        assert candidate_of(FAMILY, group).overlap() is None
        set_overlap(group, 0)
        kernel = emitted(candidate_of(FAMILY, group))
        assert kernel.overlap is None and kernel.barriers == ()


def test_strided_operands_do_not_overlap() -> None:
    group, _ = next(groups([(8, 16), (16, 32)], product))
    set_strides(group, [(20, 1), None, None])
    assert candidate_of(FAMILY, group).overlap() is None
