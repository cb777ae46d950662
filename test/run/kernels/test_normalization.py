"""Softmax and layer normalization by their family."""

import numpy as np
import pytest

from braid.dialects.braid.normalization import LayerNormOp, SoftmaxOp
from braid.lowering.cpu.kernels.normalization import NormalizationFamily
from test.machines import HOST

FAMILY = NormalizationFamily(HOST)


def softmax(x):
    op = SoftmaxOp.get(x, 1)
    return [op], [op.output]


@pytest.mark.parametrize("length", [1, 15, 16, 64, 128, 197, 300])
def test_softmax(check, length) -> None:
    check(FAMILY, [(5, length)], softmax)


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
