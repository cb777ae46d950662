"""Convolutions by tiles: random strides, dilations, groups, types, tails and epilogues."""

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import IntegerType, TensorType, bf16, f16, f32, i8, i32

from braid.dialects.braid.attributes import with_layout
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.regions import FusedOp
from braid.lowering.gpu.gpu_kernel import GpuKernel
from braid.lowering.gpu.kernels.contraction.code import Code
from braid.lowering.gpu.kernels.conv import ConvFamily
from braid.support.errors import BraidError
from braid.targets.kernels.kernel_family import Schedule
from test.run.fallback.conftest import make_group
from test.run.gpu.conftest import PLAIN, SMALL, check_group, gpu, made_by_tiles, spilled_bytes


def emit(group: FusedOp, symbol: str, schedule: Schedule | None = None) -> GpuKernel:
    found = ConvFamily(gpu("sm_80")).match(group)
    assert found is not None
    small = PLAIN if found.found.number.value == "f32" else SMALL
    made = found.emit(symbol, schedule or small)
    return made_by_tiles(made)


def last(element: Any, *shape: int) -> Any:
    return with_layout(TensorType(element, shape), Layout.parse("acdb"))


def convolution(
    element: Any,
    image: tuple[int, int, int, int],
    weight: tuple[int, int, int],
    *,
    stride: int = 1,
    dilation: int = 1,
    groups: int = 1,
    bias: bool = False,
    residual: bool = False,
    activation: str | None = None,
) -> FusedOp:
    """`weight` is the number of channels of the result, and the window."""
    accumulator = i32 if isinstance(element, IntegerType) else None
    count, channels, *points = image
    out, *window = weight
    size = [
        (extent - dilation * (own - 1) - 1) // stride + 1
        for extent, own in zip(points, window, strict=True)
    ]
    types = [last(element, *image), last(element, out, channels // groups, *window)]
    more = [TensorType(accumulator or element, (1, out, 1, 1))] if bias else []
    more += [last(accumulator or element, count, out, *size)] if residual else []

    def build(x: Any, w: Any, *others: Any) -> Any:
        ops: list[Any] = [
            ConvOp.get(
                x,
                w,
                strides=[stride] * 2,
                dilations=[dilation] * 2,
                pad_low=[0, 0],
                pad_high=[0, 0],
                groups=groups,
                accumulator=accumulator,
            )
        ]
        for other in others:
            ops.append(elementwise("add", ops[-1], other))
        if activation is not None:
            ops.append(elementwise(activation, ops[-1]))
        return ops

    return make_group([*types, *more], build, ("acdb",))


def random_convolution(seed: int) -> FusedOp:
    rng = np.random.default_rng(seed)
    element = (f32, bf16, bf16, f16, i8)[rng.integers(5)]
    groups = int(rng.choice([1, 1, 2, 3]))
    channels = groups * int(rng.choice([1, 3, 4, 8, 16, 24, 32, 37]))
    out = groups * int(rng.choice([8, 11, 16, 24, 40]))
    stride, dilation = (int(n) for n in rng.integers(1, 4, 2))
    window = [int(n) for n in rng.choice([1, 2, 3, 5], 2)]
    points = [dilation * (own - 1) + 1 + int(rng.integers(0, 12)) for own in window]
    return convolution(
        element,
        (int(rng.integers(1, 4)), channels, points[0], points[1]),
        (out, window[0], window[1]),
        stride=stride,
        dilation=dilation,
        groups=groups,
        bias=bool(rng.integers(2)),
        residual=bool(rng.integers(2)),
        activation="tanh" if element in (f32, bf16) and rng.integers(2) else None,
    )


@pytest.mark.parametrize("seed", range(3))
def test_random_convolutions(seed: int) -> None:
    check_group(random_convolution(seed), emit, seed=seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 300))
def test_many_random_convolutions(seed: int) -> None:
    check_group(random_convolution(seed), emit, seed=seed)


@pytest.mark.slow
def test_unaligned_buffers() -> None:
    group = convolution(bf16, (2, 16, 9, 9), (24, 3, 3), stride=2, bias=True)
    check_group(group, emit, unaligned=True)


def test_what_is_left_to_others() -> None:
    family = ConvFamily(gpu("sm_80"))
    assert family.match(convolution(f32, (1, 32, 9, 9), (32, 3, 3), groups=32)) is None
    assert family.match(convolution(f32, (1, 32, 9, 9), (32, 3, 3), groups=2)) is not None


def test_bytes_of_three_channels_spill_nowhere() -> None:
    """Elements that are gathered one by one, most of them to a thread."""
    group = convolution(i8, (1, 3, 225, 225), (32, 3, 3), stride=2, bias=True)
    found = ConvFamily(gpu("sm_80")).match(group)
    assert found is not None and found.size.copied == (1, 1)
    assert spilled_bytes(found.emit("tested", next(found.space(0))), "sm_80") == 0


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ["sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120"])
@pytest.mark.parametrize("element", [f32, bf16, i8], ids=str)
def test_default_schedules_spill_nowhere(element: Any, architecture: str) -> None:
    family = ConvFamily(gpu(architecture))
    images = (
        ((1, 64, 58, 58), (64, 3, 3)),
        ((1, 3, 230, 230), (64, 7, 7)),
        ((1, 3, 225, 225), (32, 3, 3)),
        ((1, 5, 64, 64), (37, 3, 3)),
    )
    for image, weight in images:
        found = family.match(convolution(element, image, weight, stride=2, bias=True))
        assert found is not None
        for schedule in found.space(0):
            made = found.emit("tested", schedule)
            assert spilled_bytes(made, architecture) == 0, (image, schedule)


@pytest.mark.slow
def test_a_wrong_point_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """One element further, the last window reads beyond the image, or the result is wrong."""
    original = Code.offset
    monkeypatch.setattr(
        Code, "offset", lambda self, index, *terms: original(self, self.add(index, 1), *terms)
    )
    with pytest.raises((BraidError, AssertionError), match=r"at offset|conv|not aligned"):
        check_group(convolution(bf16, (1, 16, 9, 9), (24, 3, 3)), emit)
