"""Softmax and layer normalization by their family."""

import numpy as np
import pytest
from xdsl.dialects.builtin import TensorType, f32

from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.normalization import LayerNormOp, SoftmaxOp
from braid.lowering.cpu.kernels.normalization import NormalizationFamily
from test.machines import AVX2, HOST, SSE, distinct
from test.run.kernels.conftest import make_group

FAMILY = NormalizationFamily(HOST)


def softmax(x):
    op = SoftmaxOp.get(x, 1)
    return [op], [op.output]


@pytest.mark.parametrize("length", [1, 15, 16, 64, 128, 197, 300])
def test_softmax(check, length) -> None:
    check(FAMILY, [(5, length)], softmax)


@pytest.mark.parametrize("machine", distinct(HOST, AVX2, SSE), ids=lambda machine: machine.name)
@pytest.mark.parametrize(
    "shape",
    [
        (5, 7, 1),
        (3, 9, 5),
        (2, 33, 64),
        (1, 1, 65),
        (2, 37, 3),
        (3, 100, 8),
        (2, 16, 2),
        (4, 17, 130),
    ],
)
def test_softmax_down_columns(check, machine, shape) -> None:
    check(NormalizationFamily(machine), [shape], softmax)


def test_softmax_down_columns_of_infinities(check) -> None:
    x = np.random.default_rng(0).uniform(-50, 50, (4, 9, 70)).astype(np.float32)
    x[:, 3:7, :40] = -np.inf
    x[1, 2, 5] = np.nan
    check(FAMILY, [x.shape], softmax, arrays=[x])
    x = x.reshape(4, 90, 7)
    check(FAMILY, [x.shape], softmax, arrays=[x])


def test_softmax_of_masked_scores(check) -> None:
    x = np.random.default_rng(0).uniform(-50, 50, (4, 70)).astype(np.float32)
    x[:, 20:] = -np.inf
    check(FAMILY, [x.shape], softmax, arrays=[x])


@pytest.mark.parametrize("length", [1, 7, 64, 100, 768])
def test_layer_norm(check, length) -> None:
    def build(x, scale, bias):
        op = LayerNormOp.get(x, scale, bias, first_dim=1, epsilon=1e-5)
        return [op], [op.output]

    check(FAMILY, [(6, length), (1, length), (1, length)], build)


def test_layer_norm_over_two_dims(check) -> None:
    def build(x, scale, bias):
        op = LayerNormOp.get(x, scale, bias, first_dim=1, epsilon=1e-3)
        return [op], [op.output]

    check(FAMILY, [(2, 3, 33), (1, 3, 33), (1, 3, 33)], build)


SCALES = {
    "channels": ((2, 5, 7, 9), (1, 5, 1, 1), (1, 5, 1, 1)),
    "images": ((2, 5, 7, 9), (2, 5, 1, 1), (2, 1, 1, 1)),
    "groups": ((2, 4, 3, 5, 7), (1, 4, 3, 1, 1), (1, 4, 3, 1, 1)),
    "one of the groups": ((2, 4, 3, 5, 7), (1, 4, 1, 1, 1), (1, 4, 3, 1, 1)),
    "elements and channels": ((3, 4, 33), (3, 1, 33), (1, 4, 1)),
    "elements and sections": ((3, 4, 6, 8), (1, 1, 6, 8), (1, 1, 6, 1)),
    "ones": ((3, 4, 1, 1), (1, 4, 1, 1), (1, 4, 1, 1)),
}


@pytest.mark.parametrize("shapes", SCALES.values(), ids=SCALES)
def test_scales_of_sections(check, shapes) -> None:
    def build(x, scale, bias):
        op = LayerNormOp.get(x, scale, bias, first_dim=2, epsilon=1e-5)
        return [op], [op.output]

    check(FAMILY, shapes, build)


def test_scales_that_are_constants(check) -> None:
    def build(x, bias):
        scale = ConstantOp.of(np.full((1, 1, 1), 2.5, np.float32))
        op = LayerNormOp.get(x, scale, bias, first_dim=2, epsilon=1e-5)
        return [scale, op], [op.output]

    check(FAMILY, [(2, 3, 40), (1, 3, 1)], build)


@pytest.mark.parametrize(
    "scale, bias",
    [((1, 1, 6, 1), (1, 1, 1, 1)), ((1, 4, 1, 8), (1, 1, 1, 1)), ((1, 4, 6, 1), (1, 4, 1, 1))],
)
def test_scales_of_what_is_no_section(scale, bias) -> None:
    def build(x, scale, bias):
        op = LayerNormOp.get(x, scale, bias, first_dim=1, epsilon=1e-5)
        return [op], [op.output]

    types = [TensorType(f32, shape) for shape in ((3, 4, 6, 8), scale, bias)]
    assert FAMILY.match(make_group(types, build)) is None
