"""Which operands the families let a result overwrite; that they may is checked by every test."""

from collections.abc import Sequence

import numpy as np
import pytest
from xdsl.dialects.builtin import TensorType, f32

from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.movement import SliceOp
from braid.dialects.braid.normalization import LayerNormOp, SoftmaxOp
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.call import CallableKernel
from braid.lowering.cpu.fallback.emit_fallback import emit_fallback
from braid.lowering.cpu.kernels.conv_direct import ConvDirectFamily
from braid.lowering.cpu.kernels.elementwise import ElementwiseFamily
from braid.lowering.cpu.kernels.gemm import GemmFamily
from braid.lowering.cpu.kernels.normalization import NormalizationFamily
from braid.targets.kernels.kernel_family import InPlace, KernelFamily
from test.machines import HOST
from test.run.kernels.conftest import Build, candidate_of, evaluate, make_group, random_array
from test.schedules import emitted


def product_and_add(a, b, c):
    op = MatmulOp.on(a, b)
    add = elementwise("add", op.output, c)
    return [op, add], [add.output]


def product_and_left(a, b):
    op = MatmulOp.on(a, b)
    add = elementwise("add", op.output, a)
    return [op, add], [add.output]


def convolution_and_add(x, w, y):
    none = (0, 0)
    op = ConvOp.get(x, w, strides=(1, 1), pad_low=none, pad_high=none, dilations=(1, 1))
    add = elementwise("add", op.output, y)
    return [op, add], [add.output]


def scale_and_add(x, scale, y):
    product = elementwise("mul", x, scale)
    add = elementwise("add", product.output, y)
    return [product, add], [add.output]


def add_to_slice(x, y):
    part = SliceOp.get(x, (0, 5), (7, 37))
    add = elementwise("add", part.output, y)
    return [part, add], [add.output]


def softmax(x):
    op = SoftmaxOp.get(x, 1)
    return [op], [op.output]


def layer_norm(x, scale, bias):
    op = LayerNormOp.get(x, scale, bias, first_dim=1, epsilon=1e-5)
    return [op], [op.output]


def group_of(shapes: Sequence[Sequence[int]], build: Build) -> FusedOp:
    return make_group([TensorType(f32, shape) for shape in shapes], build)


@pytest.mark.parametrize(
    ("family", "shapes", "build", "pairs"),
    [
        (GemmFamily(HOST), [(13, 21), (21, 37), (13, 37)], product_and_add, {(2, 0)}),
        (GemmFamily(HOST), [(13, 21), (21, 37), (1, 37)], product_and_add, set()),
        (GemmFamily(HOST), [(16, 16), (16, 16)], product_and_left, set()),
        (
            ConvDirectFamily(HOST),
            [(1, 5, 7, 9), (20, 5, 3, 3), (1, 20, 5, 7)],
            convolution_and_add,
            {(2, 0)},
        ),
        (
            ElementwiseFamily(HOST),
            [(7, 37), (1, 37), (7, 37)],
            scale_and_add,
            {(0, 0), (2, 0)},
        ),
        (ElementwiseFamily(HOST), [(7, 64), (7, 37)], add_to_slice, {(1, 0)}),
        (NormalizationFamily(HOST), [(3, 37)], softmax, {(0, 0)}),
        (NormalizationFamily(HOST), [(3, 37), (1, 37), (1, 37)], layer_norm, {(0, 0)}),
    ],
)
def test_what_may_alias(
    check, family: KernelFamily, shapes: list[tuple[int, ...]], build: Build, pairs: set[InPlace]
) -> None:
    group = group_of(shapes, build)
    types = [value.type for value in group.inputs]
    typed = make_group(types, build, candidate_of(family, group).layouts[0])
    assert set(emitted(candidate_of(family, typed)).in_place) == pairs
    check(family, shapes, build)


def test_fallback_works_in_place_on_what_it_reads_at_one_element() -> None:
    def build(x, y):
        square = elementwise("mul", x, x)
        add = elementwise("add", square.output, y)
        return [square, add], [add.output]

    group = group_of([(5, 6), (1, 6)], build)
    kernel = emit_fallback(group, "chain")
    assert kernel.in_place == ((0, 0),)
    inputs = [random_array(value.type, seed) for seed, value in enumerate(group.inputs)]
    (expected,) = evaluate(group, inputs)
    CallableKernel(kernel)(*inputs, inputs[0])
    np.testing.assert_allclose(inputs[0], expected, rtol=1e-6)


def test_fallback_does_not_overwrite_what_it_reads_elsewhere() -> None:
    def build(x):
        op = SoftmaxOp.get(x, 0)
        return [op], [op.output]

    assert emit_fallback(group_of([(5, 5)], build), "column").in_place == ()
