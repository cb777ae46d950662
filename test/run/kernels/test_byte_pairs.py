"""Products of bytes whose weights are stored in pairs, against the ops, operands at page ends."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import TensorType, UnitAttr

from braid.dialects.braid.attribute_names import PAIRABLE
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.relayout import Array
from braid.lowering.cpu.kernels.contraction import low_precision_kernel
from braid.lowering.cpu.kernels.contraction.arithmetic import BytePairArithmetic
from braid.lowering.cpu.kernels.contraction.low_precision import LOW_PRECISION
from braid.lowering.cpu.kernels.contraction.staged import RowBlock
from braid.lowering.cpu.kernels.conv_direct import ConvDirectFamily
from braid.lowering.cpu.kernels.gemm import GemmFamily
from braid.targets.machines.machine import Machine
from test.machines import AVX2, cpu_machine
from test.run.kernels.conftest import Build, KernelCheck, make_group
from test.run.kernels.test_bytes import (
    RNG,
    U8,
    bytes_of,
    convolution,
    product,
    scales,
    types_of,
)

SSSE3, VNNI = cpu_machine("x86-64-v2"), cpu_machine("x86-64-v3,+avxvnni")
MACHINES = pytest.mark.parametrize("machine", [AVX2, SSSE3], ids=["avx2", "ssse3"])


def weight_of(*shape: int, dim: int = 1) -> Array:
    """Bytes of the whole range along `dim`; one in a block of 16 needs one partner."""
    array = np.moveaxis(RNG.integers(-64, 65, shape), dim, 0)
    for begin in range(0, len(array) - 1, 16):
        places = range(begin, min(begin + 16, len(array)))
        first, second = RNG.choice(places, 2, replace=False)
        array[first] = RNG.integers(-128, 128, array[first].shape)
        array[first].flat[:2] = -128, 127
        array[second] = -array[first] // 2
    return np.ascontiguousarray(np.moveaxis(array, 0, dim)).astype(np.int8)


def bright(*shape: int) -> Array:
    """Mostly the largest byte: sums that do not fit show."""
    array = bytes_of(U8, *shape)
    return np.where(RNG.random(shape) < 0.7, 255, array).astype(np.uint8)


def pairable(build: Build) -> Build:
    """Return the same group, with its product marked."""

    def marked(*arguments):
        ops, results = build(*arguments)
        for op in ops:
            if isinstance(op, ConvOp | MatmulOp):
                op.attributes[PAIRABLE] = UnitAttr()
        return ops, results

    return marked


def check_pairs(
    check: KernelCheck,
    family: ConvDirectFamily | GemmFamily,
    build: Build,
    arrays: Sequence[Array],
    count: int = 2,
) -> None:
    """In the first `count` choices of layouts, which are of pairs."""
    types: list[TensorType] = types_of(arrays)
    candidate = family.match(make_group(types, pairable(build)))
    assert candidate is not None
    paired = [c.operands[1].pairs for c in candidate.layouts]
    assert paired == sorted(paired, reverse=True) and sum(paired) >= count
    check(family, types, pairable(build), choices=range(count), arrays=arrays)


@MACHINES
@settings(max_examples=3, deadline=None)
@given(m=st.integers(1, 150), n=st.integers(1, 130), k=st.integers(13, 60))
def test_products(check, machine: Machine, m: int, n: int, k: int) -> None:
    bias = RNG.integers(-9999, 9999, (1, n)).astype(np.int32)
    arrays = [bright(m, k), weight_of(k, n, dim=0), bias, *scales(1, n)]
    check_pairs(check, GemmFamily(machine, LOW_PRECISION), product, arrays)


def test_products_of_batches(check) -> None:
    bias = RNG.integers(-9, 9, (1, 1, 35)).astype(np.int32)
    arrays = [bright(2, 5, 30), weight_of(1, 30, 35), bias, *scales(1, 1, 35)]
    check_pairs(check, GemmFamily(AVX2, LOW_PRECISION), product, arrays)


@MACHINES
@pytest.mark.parametrize(
    ("channels", "filters", "size", "stride", "dilation"),
    [
        (16, 20, 3, 2, 1),
        (24, 100, 1, 1, 1),
        (20, 64, 1, 2, 1),
        (32, 50, 3, 1, 2),
        (18, 33, 2, 1, 1),
        (48, 97, 3, 1, 1),
    ],
)
def test_convolutions(check, machine, channels, filters, size, stride, dilation) -> None:
    vector = (1, filters, 1, 1)
    arrays = [
        bright(2, channels, 9, 8),
        weight_of(filters, channels, size, size),
        RNG.integers(-999, 999, vector).astype(np.int32),
        *scales(*vector),
    ]
    build = convolution(stride, dilation, 1)
    check_pairs(check, ConvDirectFamily(machine, LOW_PRECISION), build, arrays)


@pytest.mark.parametrize("extents", [(31,), (4, 5, 9)], ids=["lines", "volumes"])
def test_convolutions_of_other_ranks(check, extents) -> None:
    vector = (1, 20, *[1] * len(extents))
    arrays = [
        bright(2, 24, *extents),
        weight_of(20, 24, *[3] * len(extents)),
        RNG.integers(-999, 999, vector).astype(np.int32),
        *scales(*vector),
    ]
    build = convolution(1, 1, 1, len(extents))
    check_pairs(check, ConvDirectFamily(AVX2, LOW_PRECISION), build, arrays)


@pytest.mark.parametrize(("rows", "lines"), [(1, 1), (4, 1), (99, 1), (99, 2), (99, 7)])
@pytest.mark.parametrize("dims", [2, 3])
def test_blocks_of_rows_that_are_shuffled(check, monkeypatch, lines, rows, dims) -> None:
    """Parts of lines, whole lines, several lines; windows whose planes are far from each other."""

    def block(staged, nest, tile, unit, outside) -> RowBlock:
        extent = nest.row.extent
        whole = min(extent, -(-rows // tile.rows) * tile.rows)
        return RowBlock(lines if whole == extent and nest.outer else 1, whole)

    monkeypatch.setattr(low_precision_kernel, "row_block", block)
    vector = (1, 60, *[1] * dims)
    arrays = [
        bright(2, 20, *(5, 6, 19)[-dims:]),
        weight_of(60, 20, *[3] * dims),
        RNG.integers(-999, 999, vector).astype(np.int32),
        *scales(*vector),
    ]
    build = convolution(1, 1, 1, dims)
    check_pairs(check, ConvDirectFamily(AVX2, LOW_PRECISION), build, arrays, count=1)


def test_where_dot_products_are_faster_there_are_no_pairs() -> None:
    assert BytePairArithmetic.on(AVX2, 8) is not None
    assert BytePairArithmetic.on(VNNI, 8) is None


@pytest.mark.parametrize("groups", [2, 4])
def test_grouped_convolutions_have_none(groups) -> None:
    vector = (1, 64, 1, 1)
    x, w = bright(1, 64, 4, 4), weight_of(64, 64 // groups, 1, 1)
    arrays = [x, w, np.zeros(vector, np.int32), *scales(*vector)]
    group = make_group(types_of(arrays), pairable(convolution(1, 1, groups)))
    candidate = ConvDirectFamily(AVX2, LOW_PRECISION).match(group)
    assert candidate is not None
    assert not any(choice.operands[1].pairs for choice in candidate.layouts)
