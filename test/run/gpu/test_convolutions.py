"""Convolutions by tiles: random strides, dilations, groups, types, tails and epilogues."""

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import IntegerType, TensorType, bf16, f16, f32, i8, i32

from braid.analysis.storage.strided_storage import set_strides, stored_choice
from braid.dialects.braid.attributes import with_layout
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.regions import FusedOp
from braid.lowering.gpu.call import call_emulated
from braid.lowering.gpu.codegen.compiler import compile_gpu_kernels
from braid.lowering.gpu.contraction.code import Code
from braid.lowering.gpu.kernels.conv import ConvFamily
from braid.lowering.gpu.kernels.hopper_conv import HopperConvFamily
from braid.lowering.gpu.launch.gpu_kernel import GpuKernel
from braid.lowering.host.codegen.target_machine import host_machine
from braid.support.errors import BraidError
from braid.targets.kernels.schedules import Entries
from test.run.fallback.conftest import make_group, random_input, stored_arrays
from test.run.gpu.conftest import (
    PLAIN,
    SMALL,
    check_group,
    gpu,
    made_by_tiles,
    run_kernel,
    spilled_bytes,
)
from test.schedules import emitted


def emit(group: FusedOp, symbol: str, schedule: Entries | None = None) -> GpuKernel:
    found = ConvFamily(gpu("sm_80")).match(group)
    assert found is not None
    small = PLAIN if found.found.kind.value == "f32" else SMALL
    made = emitted(found, schedule or small, symbol=symbol)
    return made_by_tiles(made)


def last(element: Any, *shape: int, layout: str = "acdb") -> Any:
    return with_layout(TensorType(element, shape), Layout.parse(layout))


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
    filters: str = "acdb",
) -> FusedOp:
    """`weight` is the number of channels of the result, and the window; `filters` how it lies."""
    accumulator = i32 if isinstance(element, IntegerType) else None
    count, channels, *points = image
    out, *window = weight
    size = [
        (extent - dilation * (own - 1) - 1) // stride + 1
        for extent, own in zip(points, window, strict=True)
    ]
    types = [last(element, *image), last(element, out, channels // groups, *window, layout=filters)]
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
        filters="cdba" if element == f32 and rng.integers(2) else "acdb",
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


def hopper(group: FusedOp, symbol: str) -> GpuKernel:
    found = HopperConvFamily(gpu("sm_90a")).match(group)
    assert found is not None
    made = emitted(found, {"rows": 64, "columns": 64, "groups": 1, "stages": 3}, symbol=symbol)
    assert isinstance(made, GpuKernel)
    assert made.launches.launches[0].tensor_maps, "it is not made by copies of tensors"
    return made


@pytest.mark.parametrize(
    ("element", "image", "out"),
    [(f16, (2, 72, 7, 9), 40), (bf16, (1, 64, 6, 6), 136), (i8, (1, 80, 7, 7), 48)],
    ids=str,
)
def test_single_points_by_wgmma(element: Any, image: Any, out: int) -> None:
    group = convolution(element, image, (out, 1, 1), bias=True, residual=True)
    check_group(group, hopper)


def test_what_wgmma_takes() -> None:
    family = HopperConvFamily(gpu("sm_90a"))
    assert family.match(convolution(f16, (1, 64, 9, 9), (64, 1, 1))) is not None
    assert HopperConvFamily(gpu("sm_80")).match(convolution(f16, (1, 64, 9, 9), (64, 1, 1))) is None
    for other in (
        convolution(f32, (1, 64, 9, 9), (64, 1, 1)),
        convolution(f16, (1, 64, 9, 9), (64, 1, 1), stride=2),
        convolution(f16, (1, 64, 9, 9), (64, 3, 3)),
        convolution(f16, (1, 68, 9, 9), (64, 1, 1)),
        convolution(f16, (1, 64, 9, 9), (64, 1, 1), groups=2),
        convolution(f16, (1, 64, 5, 5), (64, 1, 1)),
    ):
        assert family.match(other) is None


@pytest.mark.parametrize("splits", [1, 2])
def test_a_part_of_the_channels_of_a_larger_tensor(splits: int) -> None:
    """As those have whose results are concatenated."""

    def emit_split(group: FusedOp, symbol: str) -> GpuKernel:
        found = ConvFamily(gpu("sm_80")).match(group)
        assert found is not None and found.supports_strides(stored_choice(group))
        made = emitted(found, {**SMALL, "splits": splits}, symbol=symbol)
        assert isinstance(made, GpuKernel)
        assert made.launches.launches[0].shared_bytes > 0, "it is not made by tiles"
        return made

    group = convolution(f16, (2, 32, 6, 7), (24, 3, 3), bias=True, activation="tanh")
    generator = np.random.default_rng(0)
    inputs = [random_input(type, generator) for type in group.inputs.types]
    (expected,) = run_kernel(emit_split(group, "tested"), group, inputs)
    whole = np.full((2, 4, 5, 40), 77, np.float16)
    set_strides(group, [None, None, None, (20 * 40, 5 * 40, 40, 1)])
    kernel = emit_split(group, "tested")
    (code,) = compile_gpu_kernels([kernel], gpu("sm_80"), host_machine(), jobs=1)
    stored, _ = stored_arrays(group, inputs)
    call_emulated(code.emulated, kernel.launches, [*stored, whole.reshape(-1)[8:]])
    np.testing.assert_array_equal(whole[..., 8:32], expected)
    assert (whole[..., :8] == 77).all() and (whole[..., 32:] == 77).all()


@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("out", [36, 33])
def test_filters_last(out: int, groups: int) -> None:
    group = convolution(f32, (2, 12, 9, 8), (out, 3, 2), groups=groups, bias=True, filters="cdba")
    check_group(group, emit)


def test_weights_of_f32_have_their_filters_last() -> None:
    """Then all are copied 16 bytes at once, and that is predicted to be faster."""
    first, second = ("cdba", "acdb")
    narrow = "cp.async.ca.shared.global.4"
    groups = [convolution(f32, (1, 32, 9, 9), (64, 3, 3), filters=own) for own in (first, second)]
    assert [narrow in str(emit(group, "tested").module) for group in groups] == [False, True]
    found = ConvFamily(gpu("sm_90a")).match(groups[0])
    assert found is not None
    assert [str(choice.operands[1]) for choice in found.layouts] == [first, second]
    preferred, other = (found.seconds(choice) for choice in found.layouts)
    assert preferred < other
    halves = ConvFamily(gpu("sm_90a")).match(convolution(f16, (1, 32, 9, 9), (64, 3, 3)))
    assert halves is not None and [str(c.operands[1]) for c in halves.layouts] == [second]


def test_what_is_left_to_others() -> None:
    family = ConvFamily(gpu("sm_80"))
    assert family.match(convolution(f32, (1, 32, 9, 9), (32, 3, 3), groups=32)) is None
    assert family.match(convolution(f32, (1, 32, 9, 9), (32, 3, 3), groups=2)) is not None


def test_bytes_of_three_channels_spill_nowhere() -> None:
    """Elements that are gathered one by one, most of them in a thread."""
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
            made = emitted(found, schedule, symbol="tested")
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
