"""Windows channels last on GPUs: depthwise convolutions with epilogues, and pooling."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import IntegerType, TensorType, VectorType, bf16, f16, f32, i8, i32
from xdsl.dialects.gpu import FuncOp

from braid.dialects.braid.attributes import with_layout
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.pooling import PoolOp
from braid.dialects.braid.regions import FusedOp
from braid.lowering.gpu.codegen.compiler import compile_gpu_kernels
from braid.lowering.gpu.fallback.emit_fallback import emit_fallback
from braid.lowering.gpu.kernels.depthwise import DepthwiseFamily
from braid.lowering.gpu.launch.gpu_kernel import GpuKernel
from braid.lowering.gpu.nests import sum_tile, wide_sums
from braid.lowering.gpu.nests.sum_tile import SumTile
from braid.lowering.gpu.nests.wide_sums import WideSums
from braid.lowering.gpu.nests.window_span import WindowSpan
from braid.lowering.host.codegen.target_machine import host_machine
from braid.support.errors import BraidError
from test.run.fallback.conftest import make_group
from test.run.gpu.conftest import check_group, gpu, spilled_bytes
from test.run.gpu.test_convolutions import convolution, last
from test.schedules import emitted


def emit(group: FusedOp, symbol: str) -> GpuKernel:
    found = DepthwiseFamily(gpu("sm_80")).match(group)
    assert found is not None
    made = emitted(found, symbol=symbol)
    assert isinstance(made, GpuKernel)
    even = shape_of(found.found.op.output)[1] % 2 == 0
    assert len(made.launches.launches) == 1 or not even, "it is not made by channels"
    return made


def depthwise(
    element: Any,
    image: tuple[int, int, int, int],
    window: tuple[int, int],
    *,
    stride: int = 1,
    dilation: int = 1,
    bias: bool = False,
    residual: bool = False,
    activation: str | None = None,
) -> FusedOp:
    accumulator = i32 if isinstance(element, IntegerType) else None
    count, channels, *points = image
    size = [
        (extent - dilation * (own - 1) - 1) // stride + 1
        for extent, own in zip(points, window, strict=True)
    ]
    weights = with_layout(TensorType(element, (channels, 1, *window)), Layout.parse("bcda"))
    types = [last(element, *image), weights]
    types += [last(accumulator or element, 1, channels, 1, 1)] if bias else []
    types += [last(accumulator or element, count, channels, *size)] if residual else []

    def build(x: Any, w: Any, *others: Any) -> Any:
        ops: list[Any] = [
            ConvOp.get(
                x,
                w,
                strides=[stride] * 2,
                dilations=[dilation] * 2,
                pad_low=[0, 0],
                pad_high=[0, 0],
                groups=channels,
                accumulator=accumulator,
            )
        ]
        for other in others:
            ops.append(elementwise("add", ops[-1], other))
        if activation is not None:
            ops.append(elementwise(activation, ops[-1]))
        return ops

    return make_group(types, build, ("acdb",))


def random_depthwise(seed: int) -> FusedOp:
    rng = np.random.default_rng(seed)
    element = (f32, bf16, f16, i8)[rng.integers(4)]
    channels = (
        int(rng.choice([2, 4, 8, 16, 24, 32])) if rng.integers(3) else int(rng.integers(2, 40))
    )
    stride, dilation = (int(n) for n in rng.integers(1, 3, 2))
    window = [int(n) for n in rng.choice([1, 2, 3, 5], 2)]
    points = [dilation * (own - 1) + 1 + int(rng.integers(0, 9)) for own in window]
    return depthwise(
        element,
        (int(rng.integers(1, 3)), channels, points[0], points[1]),
        (window[0], window[1]),
        stride=stride,
        dilation=dilation,
        bias=bool(rng.integers(2)),
        residual=bool(rng.integers(2)),
        activation="tanh" if element in (f32, bf16) and rng.integers(2) else None,
    )


@pytest.mark.parametrize("seed", range(4))
def test_random_depthwise_convolutions(seed: int) -> None:
    check_group(random_depthwise(seed), emit, seed=seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 300))
def test_many_random_depthwise_convolutions(seed: int) -> None:
    check_group(random_depthwise(seed), emit, seed=seed, unaligned=seed % 5 == 0)


def channels_first(element: Any, image: tuple[int, ...], window: int, stride: int) -> FusedOp:
    """Maxima of windows, whose rows neighbours read together."""
    return make_group(
        [TensorType(element, image)],
        lambda x: [
            PoolOp.get(
                x,
                "max",
                [window] * 2,
                strides=[stride] * 2,
                pad_low=[0, 0],
                pad_high=[0, 0],
                dilations=[1, 1],
            )
        ],
        (),
    )


@pytest.mark.parametrize(("window", "stride"), [(2, 2), (3, 1), (3, 2), (1, 3)])
@pytest.mark.parametrize("element", [f32, bf16], ids=str)
def test_windows_of_a_row(element: Any, window: int, stride: int) -> None:
    """Overlapping or not, and with elements between that no window has."""
    group = channels_first(element, (1, 2, 9, window + 15 * stride), window, stride)
    for unaligned in (False, True):
        check_group(group, emit_fallback, unaligned=unaligned)


@pytest.fixture
def strips(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads have several rows even if that leaves few threads."""
    monkeypatch.setattr(sum_tile, "_ENOUGH_THREADS", 1)


@pytest.mark.usefixtures("strips")
@pytest.mark.parametrize("seed", range(4))
def test_rows_of_random_depthwise_convolutions(seed: int) -> None:
    check_group(random_depthwise(seed), emit, seed=seed, unaligned=seed == 3)


@pytest.mark.slow
@pytest.mark.usefixtures("strips")
@pytest.mark.parametrize("seed", range(300, 500))
def test_rows_of_many_random_depthwise_convolutions(seed: int) -> None:
    check_group(random_depthwise(seed), emit, seed=seed, unaligned=seed % 5 == 0)


@pytest.mark.usefixtures("strips")
@pytest.mark.parametrize(
    ("window", "stride", "width", "rows"), [(3, 1, 2, 6), (3, 2, 2, 6), (5, 1, 4, 3)]
)
def test_rows_read_elements_once(window: int, stride: int, width: int, rows: int) -> None:
    """A thread has some of six rows of windows, which overlap, in a line of code that is short."""
    image = (1, 2, 5 * stride + window, window + 15 * stride)
    group = channels_first(f32, image, window, stride)
    for unaligned in (False, True):
        kernel = check_group(group, emit_fallback, unaligned=unaligned)
    assert kernel.launches.launches[0].blocks == 1
    aligned = next(op for op in kernel.module.walk() if isinstance(op, FuncOp))
    loads = [op.results[0].type for op in aligned.walk() if op.name.endswith(".load")]
    read = sum(type.get_shape()[0] if isinstance(type, VectorType) else 1 for type in loads)
    once = ((rows - 1) * stride + window) * ((width - 1) * stride + window)
    # Buffers that begin anywhere have one more a row, in loops.
    assert read == once + rows


@pytest.mark.parametrize("steps", [(1, 1), (2, 1), (3, 1), (2, 3)])
@pytest.mark.parametrize("others", [(), (4,), (6,), (3,)])
def test_pieces_of_a_span(steps: tuple[int, int], others: tuple[int, ...]) -> None:
    """Each element is read once, by accesses that are aligned wherever a span may begin."""
    span = WindowSpan.of(steps, 4, 3, others, 4)
    assert span is not None
    elements = [start + n for start, size in span.pieces() for n in range(size)]
    assert elements == list(range(span.place(3, 2) + 1))
    for start, size in span.pieces():
        assert size in (1, 2, 4)
        assert all((by + start) % size == 0 for by in (0, 4 * steps[0], *others))


def test_windows_of_another_neighbour_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    place = WindowSpan.place
    monkeypatch.setattr(WindowSpan, "place", lambda span, lane, tap: place(span, 0, tap))
    with pytest.raises(AssertionError, match="pool"):
        check_group(channels_first(f32, (1, 2, 8, 16), 2, 2), emit_fallback)


def test_unaligned_buffers() -> None:
    group = depthwise(bf16, (1, 16, 7, 6), (3, 3), bias=True, residual=True)
    check_group(group, emit, unaligned=True)


def test_one_entry_with_wide_accesses() -> None:
    """Layouts of the image, weights, residual and result; nothing spills."""
    group = depthwise(bf16, (1, 64, 30, 30), (3, 3), bias=True, residual=True, activation="tanh")
    kernel = emit(group, "tested")
    (launch,) = kernel.launches.launches
    assert launch.blocks == -(-28 * 28 * 64 // 8 // 256) and kernel.scratch_bytes == 0
    (code,) = compile_gpu_kernels([kernel], gpu("sm_80"), host_machine(), jobs=1)
    text = code.ptx.decode()
    wide = [len(re.findall(rf"{kind}\.global\.(?:nc\.)?v4\.b32", text)) for kind in ("ld", "st")]
    assert wide[0] >= 4 and wide[1] == 1, text
    assert spilled_bytes(kernel, "sm_80") == 0


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ["sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120"])
@pytest.mark.parametrize("element", [f32, bf16, f16, i8], ids=str)
def test_it_spills_nowhere(element: Any, architecture: str) -> None:
    for channels, window in ((96, 3), (960, 7)):
        group = depthwise(element, (1, channels, 28, 28), (window, window), bias=True)
        assert spilled_bytes(emit(group, "tested"), architecture) == 0


def test_what_is_left_to_others() -> None:
    family = DepthwiseFamily(gpu("sm_80"))
    assert family.match(convolution(f32, (1, 32, 9, 9), (32, 3, 3), groups=2)) is None
    assert family.match(convolution(f32, (1, 32, 9, 9), (64, 3, 3), groups=32)) is None
    assert family.match(convolution(f32, (1, 32, 9, 9), (32, 3, 3), groups=32)) is not None


@pytest.mark.parametrize(("kind", "channels"), [("max", 16), ("add", 24), ("max", 6)])
def test_pooling(kind: str, channels: int) -> None:
    """Neighbouring channels at once, where their number allows."""
    group = make_group(
        [last(f32, 2, channels, 9, 8)],
        lambda x: [
            PoolOp.get(
                x,
                kind,
                [3, 2],
                strides=[2, 1],
                pad_low=[0, 0],
                pad_high=[0, 0],
                dilations=[1, 1],
            )
        ],
        ("acdb",),
    )
    for unaligned in (False, True):
        kernel = check_group(group, emit_fallback, unaligned=unaligned)
    assert "vector<" in str(kernel.module)


# ---- Mutants ----


def _shifted(patch: pytest.MonkeyPatch) -> None:
    original = wide_sums.element_of
    patch.setattr(wide_sums, "element_of", lambda b, vector, n: original(b, vector, n ^ 1))


def _shorter(patch: pytest.MonkeyPatch) -> None:
    own = WideSums.threads.fget
    assert own is not None
    patch.setattr(WideSums, "threads", property(lambda self: own(self) - 1))


def _longer(patch: pytest.MonkeyPatch) -> None:
    own = WideSums.threads.fget
    assert own is not None
    patch.setattr(WideSums, "threads", property(lambda self: own(self) + 1))


def _misaligned(patch: pytest.MonkeyPatch) -> None:
    """Twice as many channels a thread as make 16 bytes begin at its place."""
    original = WideSums.of

    def of(own: Any, *stored: int) -> Any:
        found = original(own, *stored)
        if found is None:
            return None
        tile = found.tile
        return WideSums(SumTile(own, tile.nest, tile.steps, 2 * tile.width))

    patch.setattr(WideSums, "of", of)


@pytest.mark.parametrize("mutate", [_shifted, _shorter, _longer, _misaligned])
def test_mutants_are_caught(
    mutate: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutate(monkeypatch)
    with pytest.raises((BraidError, AssertionError)):
        check_group(depthwise(f32, (1, 12, 5, 5), (3, 3)), emit)
