"""Kernels on quantized numbers are exact, on every vector unit and with all its instructions."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import IntegerType, Signedness, TensorType, f32, i32
from xdsl.ir import SSAValue

from braid.dialects.braid.base import TensorOp
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.pooling import PoolOp
from braid.dialects.braid.quantization import DequantizeOp, QuantizeOp, RequantizeOp
from braid.dialects.braid.reduction import ReduceOp
from braid.dialects.braid.relayout import Array
from braid.driver.compile_source import missing_here
from braid.lowering.cpu.call import CallableKernel
from braid.lowering.cpu.kernels.contraction import low_precision_kernel
from braid.lowering.cpu.kernels.contraction.arithmetic import ByteArithmetic, SingleArithmetic
from braid.lowering.cpu.kernels.contraction.low_precision import LOW_PRECISION
from braid.lowering.cpu.kernels.contraction.staged import RowBlock
from braid.lowering.cpu.kernels.conv_depthwise import ConvDepthwiseFamily
from braid.lowering.cpu.kernels.conv_direct import ConvDirectFamily
from braid.lowering.cpu.kernels.conv_grouped import ConvGroupedFamily
from braid.lowering.cpu.kernels.elementwise import ElementwiseFamily
from braid.lowering.cpu.kernels.gemm import GemmFamily
from braid.lowering.cpu.kernels.pooling import PoolFamily
from braid.targets.machines.cpus import cpu_machine
from test.machines import AVX2, AVX512, HOST, SSE, distinct
from test.pairs import all_pairs
from test.run.groups import evaluate
from test.run.kernels.conftest import candidate_of, make_group
from test.schedules import emitted

U8, I8 = IntegerType(8, Signedness.UNSIGNED), IntegerType(8)
DISTINCT = distinct(HOST, AVX2, SSE)
MACHINES = pytest.mark.parametrize("machine", DISTINCT, ids=lambda machine: machine.name)
VNNI = cpu_machine("x86-64-v4,+avx512vnni")
RNG = np.random.default_rng(11)


def bytes_of(kind: IntegerType, *shape: int) -> Array:
    """Numbers of the whole range, including its ends."""
    low = 0 if kind == U8 else -128
    array = RNG.integers(low, low + 256, shape).astype(np.uint8 if kind == U8 else np.int8)
    array.flat[0] = low
    array.flat[-1] = low + 255
    return array


def scales(*shape: int) -> tuple[Array, Array]:
    """Multipliers and shifts."""
    return (
        RNG.integers(1 << 23, 1 << 24, shape).astype(np.int32),
        RNG.integers(30, 40, shape).astype(np.int32),
    )


def requantized(sums: SSAValue, *parts: SSAValue) -> tuple[list[TensorOp], list[SSAValue]]:
    """Add a bias, a scale for each column, and the zero point 3."""
    biased = elementwise("add", sums, parts[0])
    zero = ConstantOp.of(np.full([1] * len(sums.type.get_shape()), 3, np.uint8))
    op = RequantizeOp.get(biased.output, parts[1], parts[2], zero.output)
    return [biased, zero, op], [op.output]


def product(
    a: SSAValue, b: SSAValue, *parts: SSAValue
) -> tuple[Sequence[TensorOp], list[SSAValue]]:
    op = MatmulOp.on(a, b, accumulator=i32)
    ops, results = requantized(op.output, *parts)
    return [op, *ops], results


def types_of(arrays: Sequence[Array]) -> list[TensorType]:
    kinds = {"uint8": U8, "int8": I8, "int32": i32, "float32": f32}
    return [TensorType(kinds[array.dtype.name], array.shape) for array in arrays]


@MACHINES
@settings(max_examples=4, deadline=None)
@given(m=st.integers(1, 20), n=st.integers(1, 70), k=st.integers(1, 70))
def test_products(check, machine, m: int, n: int, k: int) -> None:
    bias = RNG.integers(-9999, 9999, (1, n)).astype(np.int32)
    arrays = [bytes_of(U8, m, k), bytes_of(I8, k, n), bias, *scales(1, n)]
    check(
        GemmFamily(machine, LOW_PRECISION), types_of(arrays), product, choices=[0, 2], arrays=arrays
    )


def test_products_without_instructions(check, monkeypatch) -> None:
    monkeypatch.setattr(ByteArithmetic, "of", lambda *_: SingleArithmetic())
    arrays = [bytes_of(U8, 2, 5, 19), bytes_of(I8, 1, 19, 35)]
    arrays += [RNG.integers(-9, 9, (1, 1, 35)).astype(np.int32), *scales(1, 1, 35)]
    check(GemmFamily(HOST, LOW_PRECISION), types_of(arrays), product, choices=[1], arrays=arrays)


@MACHINES
def test_nothing_is_written_behind_one_last_byte(machine) -> None:
    """LLVM 22 makes a store of four or eight bytes of a masked one of a byte."""

    def build(x, *parts):
        op = RequantizeOp.get(x, *parts)
        return [op], [op.output]

    lanes = int(machine.fact("vector_bytes")) // 4
    x = RNG.integers(-99, 99, (1, 2 * lanes + 1)).astype(np.int32)
    arrays = [x, *(part[:, :1] for part in scales(1, 1)), np.full((1, 1), 3, np.uint8)]
    group = make_group(types_of(arrays), build)
    family = ElementwiseFamily(machine)
    kernel = emitted(candidate_of(family, group))
    buffer = np.full(64 + x.size, 77, np.uint8)
    CallableKernel(kernel)(*arrays, buffer)
    np.testing.assert_array_equal(buffer[: x.size], evaluate(group, arrays)[0][0])
    assert (buffer[x.size :] == 77).all()


def window(stride: int, dilation: int = 1, dims: int = 2) -> dict[str, list[int]]:
    none = {"pad_low": [0] * dims, "pad_high": [0] * dims}
    return {"strides": [stride] * dims, "dilations": [dilation] * dims, **none}


def convolution(stride: int, dilation: int, groups: int, dims: int = 2):
    def build(x, w, *parts):
        op = ConvOp.get(x, w, **window(stride, dilation, dims), groups=groups, accumulator=i32)
        ops, results = requantized(op.output, *parts)
        return [op, *ops], results

    return build


@MACHINES
@pytest.mark.parametrize(
    ("channels", "filters", "size", "stride", "groups"),
    [(3, 20, 3, 2, 1), (8, 64, 1, 1, 1), (16, 33, 3, 1, 1), (7, 5, 2, 1, 1), (16, 64, 3, 1, 2)],
)
def test_convolutions(check, machine, channels, filters, size, stride, groups) -> None:
    check_convolution(check, machine, channels, filters, size, stride, groups)


@pytest.mark.parametrize(
    ("machine", "columns", "size"), all_pairs([AVX512, VNNI], [5, 12, 20, 40, 100], [1, 3])
)
def test_groups_that_fill_no_vectors(check, machine, columns, size) -> None:
    """The last vector of columns is masked."""
    if (missing := missing_here(machine)) is not None:
        pytest.skip(str(missing))
    check_convolution(check, machine, 24, 3 * columns, size, 1, 3)


def check_convolution(check, machine, channels, filters, size, stride, groups) -> None:
    bias = RNG.integers(-999, 999, (1, filters, 1, 1)).astype(np.int32)
    x = bytes_of(U8, 2, channels, 9, 8)
    w = bytes_of(I8, filters, channels // groups, size, size)
    arrays = [x, w, bias, *scales(1, filters, 1, 1)]
    check(
        ConvDirectFamily(machine, LOW_PRECISION),
        types_of(arrays),
        convolution(stride, 1, groups),
        choices=[0],
        arrays=arrays,
    )


@pytest.mark.parametrize(("lines", "rows", "dims"), all_pairs([1, 2, 7], [1, 4, 99], [2, 3]))
def test_blocks_of_rows_that_are_widened(check, monkeypatch, lines, rows, dims) -> None:
    """Parts of lines, whole lines, several lines; windows whose planes are far from each other."""

    def block(staged, nest, tile, unit, outside) -> RowBlock:
        extent = nest.row.extent
        whole = min(extent, -(-rows // tile.rows) * tile.rows)
        return RowBlock(lines if whole == extent and nest.outer else 1, whole)

    monkeypatch.setattr(low_precision_kernel, "row_block", block)
    vector = (1, 20, *[1] * dims)
    arrays = [
        bytes_of(U8, 2, 6, *(5, 6, 19)[-dims:]),
        bytes_of(I8, 20, 6, *[3] * dims),
        RNG.integers(-999, 999, vector).astype(np.int32),
        *scales(*vector),
    ]
    build = convolution(1, 1, 1, dims)
    check(
        ConvDirectFamily(AVX2, LOW_PRECISION),
        types_of(arrays),
        build,
        choices=[0, 1],
        arrays=arrays,
    )


@pytest.mark.parametrize(
    ("machine", "extents", "channels"), all_pairs(DISTINCT, [(31,), (4, 5, 9)], [7, 16])
)
def test_convolutions_of_other_ranks(check, machine, extents, channels) -> None:
    dims, filters = len(extents), 20
    vector = (1, filters, *[1] * dims)
    arrays = [
        bytes_of(U8, 2, channels, *extents),
        bytes_of(I8, filters, channels, *[3] * dims),
        RNG.integers(-999, 999, vector).astype(np.int32),
        *scales(*vector),
    ]
    build = convolution(1, 1, 1, dims)
    check(
        ConvDirectFamily(machine, LOW_PRECISION),
        types_of(arrays),
        build,
        choices=[0],
        arrays=arrays,
    )


@pytest.mark.parametrize(("machine", "kind", "stride"), all_pairs(DISTINCT, [U8, I8], [1, 2]))
def test_depthwise(check, machine, kind, stride) -> None:
    arrays = [bytes_of(kind, 1, 24, 9, 11), bytes_of(I8, 24, 1, 3, 3)]
    arrays += [RNG.integers(-9, 9, (1, 24, 1, 1)).astype(np.int32), *scales(1, 24, 1, 1)]
    build = convolution(stride, 1, 24)
    check(ConvDepthwiseFamily(machine), types_of(arrays), build, arrays=arrays)


@pytest.mark.parametrize(("machine", "kind", "depth"), all_pairs(DISTINCT, [U8, I8], [1, 2, 4]))
def test_groups_of_few_channels(check, machine, kind, depth) -> None:
    arrays = [bytes_of(kind, 1, 13 * depth, 9, 11), bytes_of(I8, 26, depth, 3, 3)]
    arrays += [RNG.integers(-9, 9, (1, 26, 1, 1)).astype(np.int32), *scales(1, 26, 1, 1)]
    build = convolution(2, 1, 13)
    check(ConvGroupedFamily(machine), types_of(arrays), build, arrays=arrays)


@pytest.mark.parametrize(
    ("machine", "kind", "combine"), all_pairs(DISTINCT, [U8, I8], ["max", "add"])
)
def test_pools(check, machine, kind, combine) -> None:
    def build(x):
        wider = i32 if combine == "add" else None
        op = PoolOp.get(x, combine, [3, 3], **window(2), accumulator=wider)
        return [op], [op.output]

    arrays = [bytes_of(kind, 1, 20, 9, 37)]
    check(PoolFamily(machine), types_of(arrays), build, arrays=arrays)


@MACHINES
@pytest.mark.parametrize("kind", [U8, I8], ids=["u8", "i8"])
def test_sums_of_images(check, machine, kind) -> None:
    def build(x):
        op = ReduceOp.get(x, "add", [3, 2], accumulator=i32)
        return [op], [op.output]

    arrays = [bytes_of(kind, 1, 72, 9, 7)]
    check(PoolFamily(machine), types_of(arrays), build, arrays=arrays)


@MACHINES
@pytest.mark.parametrize("kind", [U8, I8], ids=["u8", "i8"])
def test_quantizing(check, machine, kind) -> None:
    """NaN, infinities, halves and what is out of range, and back again."""

    def build(x, scale, zero):
        op = QuantizeOp.on(x, scale, zero)
        real = DequantizeOp.on(op.output, scale, zero)
        return [op, real], [op.output, real.output]

    x = (RNG.integers(-300, 300, (5, 41)) / 2).astype(np.float32)
    x.flat[:3] = np.nan, np.inf, -np.inf
    arrays = [x, np.full((1, 41), 0.5, np.float32), bytes_of(kind, 1, 41)]
    check(ElementwiseFamily(machine), types_of(arrays), build, arrays=arrays)


@MACHINES
def test_requantizing_next_to_halves(check, machine) -> None:
    """Products that are by one more or less than the half of a power of two: f64 cannot say so."""

    def build(*x):
        op = RequantizeOp.get(*x)
        return [op], [op.output]

    near = [(738340563, 2147067557, 58), (954521771, 283090429, 55), (513419743, 2105224673, 57)]
    near += [(-x, m, s) for x, m, s in near] + [(604471957, 89405629, 55)]
    arrays = [np.array([column], np.int32) for column in zip(*near, strict=True)]
    arrays.append(np.zeros((1, 1), np.int8))
    check(ElementwiseFamily(machine), types_of(arrays), build, arrays=arrays)


@MACHINES
@pytest.mark.parametrize("rounding", ["half_even", "half_up"])
def test_requantizing(check, machine, rounding) -> None:
    def build(*x):
        op = RequantizeOp.get(*x, rounding)
        return [op], [op.output]

    x = RNG.integers(-(2**31), 2**31, (7, 33)).astype(np.int32)
    x[:3] = RNG.integers(-99, 99, (3, 33))
    multiplier = RNG.integers(-(2**31), 2**31, (1, 33)).astype(np.int32)
    multiplier[0, :9] = [1, -1, 3, 2**30, 5, 2**31 - 1, 0, 7, 2**24]
    shift = RNG.integers(1, 63, (1, 33)).astype(np.int32)
    shift[0, :9] = [1, 1, 2, 31, 3, 62, 62, 4, 26]
    arrays = [x, multiplier, shift, bytes_of(I8, 1, 33)]
    check(ElementwiseFamily(machine), types_of(arrays), build, arrays=arrays)
