"""Folds by their kernels: taps, phases and edges along several dims."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import TensorType, f16, f32, f64

from braid.dialects.braid.folding import FoldOp
from braid.lowering.cpu.kernels.fold import FoldFamily
from braid.support.sizes.expression import symbol
from braid.targets.machines.machine import Machine
from test.machines import AVX512, HOST, SSE
from test.run.kernels.chosen_kernels import ChosenKernel
from test.run.kernels.conftest import make_group

FAMILY = FoldFamily(HOST)


def fold(block: Sequence[int], image: Sequence[int], **options: Sequence[int]):
    """Return a function that builds such an op."""
    defaults = {"strides": [1] * len(block), "dilations": [1] * len(block)}
    lists = defaults | {"pad_low": [0] * len(block)} | options

    def build(x):
        op = FoldOp.get(x, block, image, **lists)
        return [op], [op.output]

    return build


@pytest.mark.parametrize(
    ("shape", "block", "image", "options"),
    [
        ((2, 27, 20, 50), (3, 3), (20, 50), {"pad_low": (1, 1)}),
        ((1, 8, 17, 40), (2, 2), (34, 80), {"strides": (2, 2)}),
        ((1, 16, 9, 33), (4, 4), (18, 66), {"strides": (2, 2), "pad_low": (1, 1)}),
        ((1, 25, 6, 18), (5, 5), (19, 55), {"strides": (3, 3), "pad_low": (2, 2)}),
        ((3, 9, 30), (9,), (300,), {"strides": (10,), "dilations": (2,)}),
        ((1, 8, 4, 3, 21), (2, 2, 2), (6, 4, 23), {"dilations": (2, 1, 2)}),
    ],
)
def test_shapes(check, shape, block, image, options) -> None:
    check(FAMILY, [shape], fold(block, image, **options))


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_any_image(check, data) -> None:
    """That blocks fill, or not, or are larger than."""
    rank = data.draw(st.integers(1, 2))

    def drawn(*values: int) -> list[int]:
        return [data.draw(st.sampled_from(values)) for _ in range(rank)]

    block, counts, image = drawn(1, 2, 3), drawn(1, 3, 19), drawn(1, 7, 20, 45)
    options = {"strides": drawn(1, 2, 3), "dilations": drawn(1, 2), "pad_low": drawn(0, 1, 4)}
    shape = (1, 2 * int(np.prod(block)), *counts)
    check(FAMILY, [shape], fold(block, image, **options))


@pytest.mark.parametrize("machine", [AVX512, SSE], ids=["avx512", "sse"])
@pytest.mark.parametrize("type", [f32, f64], ids=["f32", "f64"])
def test_machines(check, machine: Machine, type) -> None:
    options = {"strides": (2, 2), "pad_low": (1, 1)}
    types = [TensorType(type, (2, 9, 5, 21))]
    check(FoldFamily(machine), types, fold((3, 3), (10, 42), **options))


def test_what_others_do() -> None:
    """Other types, steps that exceed a vector, and very large blocks are scattered."""
    for shape, build, type in (
        ((1, 2, 9), fold((2,), (10,)), f16),
        ((1, 2, 9), fold((2,), (600,), strides=(65,)), f32),
        ((1, 4096, 2, 2), fold((64, 64), (65, 65)), f32),
    ):
        group = make_group([TensorType(type, shape)], build)
        assert FAMILY.match(group) is None


def test_open_channels() -> None:
    channels = symbol("c")
    kernel = ChosenKernel(
        [(2, channels * 4, 6, 7)],
        fold((2, 2), (7, 8)),
        {"c": 8},
        family="fold",
    )
    for count in (1, 5):
        kernel.check(c=count)
