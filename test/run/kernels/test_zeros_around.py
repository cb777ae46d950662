"""Convolutions leave out products with the zeros that are known to be around their input."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import IntegerType, Signedness, TensorType, bf16, f32, i32

from braid.dialects.braid.base import integers
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.dtypes import is_float, to_numpy
from braid.dialects.braid.elementwise import elementwise
from braid.lowering.cpu.call import CallableKernel
from braid.lowering.cpu.kernels.contraction.arithmetic import (
    ByteArithmetic,
    HalfArithmetic,
    PairArithmetic,
    SingleArithmetic,
)
from braid.lowering.cpu.kernels.contraction.floats import FLOATS
from braid.lowering.cpu.kernels.contraction.low_precision import LOW_PRECISION
from braid.lowering.cpu.kernels.conv_direct import ConvDirectFamily
from braid.tuning.kernel_runs import Reference
from test.machines import AVX2, HOST
from test.run.kernels.conftest import candidate_of, make_group
from test.storage import from_storage, to_storage

U8, I8 = IntegerType(8, Signedness.UNSIGNED), IntegerType(8)
HAS_HALVES = HalfArithmetic.on(HOST, int(HOST.fact("vector_bytes")) // 4) is not None
NARROW = [
    pytest.param(
        HOST, bf16, bf16, f32, id="bf16",
        marks=pytest.mark.skipif(not HAS_HALVES, reason="this CPU multiplies no pairs of bf16"),
    ),
    pytest.param(HOST, U8, I8, i32, id="bytes"),
    pytest.param(AVX2, U8, I8, i32, id="bytes-avx2"),
]  # fmt: skip


def convolution(low, high, strides, dilations, groups=1, accumulator=None):
    """With a second addend after it, if it is float."""

    def build(x, w, *residual):
        none = [0] * len(low)
        conv = ConvOp.get(
            x, w, strides=strides, dilations=dilations, pad_low=none, pad_high=none,
            groups=groups, accumulator=accumulator,
        )  # fmt: skip
        conv.zeros_low, conv.zeros_high = integers(low), integers(high)
        ops = [conv]
        for value in residual:
            ops.append(elementwise("add", ops[-1].results[0], value))
        return ops, [ops[-1].results[0]]

    return build


def padded(shape, low, high, dtype, generator):
    """Random numbers with zeros around them."""
    inside = generator.integers(0, 256, shape) if dtype == np.uint8 else None
    if inside is None:
        inside = generator.uniform(-2, 2, shape)
    pads = [(0, 0), (0, 0), *zip(low, high, strict=True)]
    return np.pad(inside.astype(dtype), pads)


@st.composite
def cases(draw, narrow: bool = False):
    """Spatial extents, zeros on both sides, windows, strides, dilations; batch; channels."""
    rank = draw(st.integers(1, 3))

    def of(least, most):
        return draw(st.tuples(*[st.integers(least, most)] * rank))

    extents = of(1, (31, 13, 6)[rank - 1])
    window, strides, dilations = of(1, 5 if rank < 3 else 3), of(1, 3), of(1, 3)
    low, high = of(0, 6), of(0, 6)
    reach = [d * (s - 1) + 1 for s, d in zip(window, dilations, strict=True)]
    missing = [r - e - a - b for r, e, a, b in zip(reach, extents, low, high, strict=True)]
    high = tuple(b + max(0, m) for b, m in zip(high, missing, strict=True))
    groups = draw(st.integers(1, 2))
    depth = draw(st.integers(1, 9))
    # Groups of one channel that are merged into one are depthwise, which other families take.
    columns = draw(st.integers(2 if depth < groups else 1, 35))
    if narrow and groups > 1:
        depth, columns = 4 * depth, 16 * (1 + columns % 3)
    channels = groups, depth, columns
    return extents, (low, high), (window, strides, dilations), draw(st.integers(1, 2)), channels


def shapes_of(case):
    """Layouts of the inside of the padding, the weight, and the result."""
    extents, (low, high), (window, strides, dilations), batch, (groups, depth, columns) = case
    padded = [e + a + b for e, a, b in zip(extents, low, high, strict=True)]
    out = [
        (p - d * (k - 1) - 1) // s + 1
        for p, k, s, d in zip(padded, window, strides, dilations, strict=True)
    ]
    weight = (groups * columns, depth, *window)
    return (batch, groups * depth, *extents), weight, (batch, groups * columns, *out)


@settings(max_examples=25, deadline=None)
@given(case=cases(), seed=st.integers(0, 99))
def test_direct(check, case, seed) -> None:
    _, (low, high), (_, *steps), _, (groups, _, _) = case
    generator = np.random.default_rng(seed)
    inside, weight, out = shapes_of(case)
    x = padded(inside, low, high, np.float32, generator)
    arrays = [x, *(generator.uniform(-2, 2, shape).astype(np.float32) for shape in (weight, out))]
    build = convolution(low, high, *steps, groups)
    check(ConvDirectFamily(HOST), [a.shape for a in arrays], build, arrays=arrays)


@pytest.mark.parametrize(("machine", "kind", "weights", "accumulator"), NARROW)
@settings(max_examples=10, deadline=None)
@given(case=cases(narrow=True), seed=st.integers(0, 99))
def test_narrow(check, machine, kind, weights, accumulator, case, seed) -> None:
    _, (low, high), (_, *steps), _, (groups, _, _) = case
    generator = np.random.default_rng(seed)
    inside, weight, _ = shapes_of(case)
    w = generator.uniform(-100, 100, weight).astype(to_numpy(weights))
    arrays = [padded(inside, low, high, to_numpy(kind), generator), w]
    types = [
        TensorType(type, array.shape) for type, array in zip((kind, weights), arrays, strict=True)
    ]
    build = convolution(low, high, *steps, groups, accumulator)
    check(ConvDirectFamily(machine, LOW_PRECISION), types, build, arrays=arrays, choices=[0])


@pytest.mark.parametrize(
    ("size", "window", "strides", "dilations", "low", "high"),
    [
        ((7, 7), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1)),
        ((14, 29), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1)),
        ((28, 28), (3, 3), (2, 2), (1, 1), (1, 1), (1, 1)),
        ((12, 40), (3, 3), (1, 1), (4, 12), (4, 12), (4, 12)),
        ((9, 20), (7, 7), (1, 2), (1, 1), (5, 0), (1, 8)),
        ((5, 6), (1, 7), (1, 1), (1, 1), (0, 3), (0, 3)),
        ((1, 1), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1)),
        ((4, 4), (1, 1), (1, 1), (1, 1), (2, 3), (1, 0)),
        ((3, 5, 7), (3, 3, 3), (1, 2, 1), (1, 1, 2), (1, 1, 2), (1, 1, 2)),
        ((37,), (5,), (1,), (2,), (4,), (4,)),
    ],
)
@pytest.mark.parametrize("narrow", [False, True], ids=["f32", "bytes"])
def test_what_is_left_out_is_not_read(
    narrow, size, window, strides, dilations, low, high, monkeypatch
) -> None:
    """Kernels that are told of zeros compute the same where there are other numbers instead.

    Those that multiply bytes in pairs, where a CPU has no dot products, read the zeros.
    """
    lanes = int(HOST.fact("vector_bytes")) // 4
    if narrow and isinstance(ByteArithmetic.of(HOST, lanes), PairArithmetic):
        monkeypatch.setattr(ByteArithmetic, "of", lambda *_: SingleArithmetic())
    kind, weights = (U8, I8) if narrow else (f32, f32)
    family = ConvDirectFamily(HOST, LOW_PRECISION if narrow else FLOATS)
    generator = np.random.default_rng(3)
    dtype = to_numpy(kind)
    x = padded((2, 8, *size), low, high, dtype, generator)
    w = generator.uniform(-9, 9, (24, 8, *window)).astype(to_numpy(weights))
    types = [TensorType(kind, x.shape), TensorType(weights, w.shape)]
    build = convolution(low, high, strides, dilations, 1, i32 if narrow else None)
    choice = candidate_of(family, make_group(types, build)).layouts[0]
    group = make_group(types, build, choice)
    kernel = CallableKernel(
        candidate_of(family, group).emit("kernel", next(candidate_of(family, group).space(0)))
    )
    border = padded((2, 8, *size), low, high, np.float32, np.random.default_rng(3)) * 0 + 1
    border[(..., *(slice(a, a + e) for a, e in zip(low, size, strict=True)))] = 0
    results = []
    for around in (0, 7 if narrow else np.nan):
        filled = np.where(border == 1, np.asarray(around, dtype), x)
        result = np.zeros(group.outputs[0].type.get_shape(), np.int32 if narrow else np.float32)
        stored = to_storage(result, choice.results[0])
        operands = zip((filled, w), choice.operands, strict=True)
        kernel(*(to_storage(array, layout) for array, layout in operands), stored)
        results.append(from_storage(stored, choice.results[0], result.shape))
    np.testing.assert_array_equal(*results)
    assert np.any(results[0]) and not (is_float(kind) and np.any(np.isnan(results[0])))


def test_operands_of_measured_kernels_have_the_zeros() -> None:
    """Otherwise, kernels that leave out products would count as wrong."""
    family = ConvDirectFamily(HOST)
    build = convolution((1, 2), (3, 1), (1, 1), (1, 1))
    types = [TensorType(f32, shape) for shape in ((2, 8, 10, 10), (24, 8, 3, 3), (2, 24, 8, 8))]
    choice = candidate_of(family, make_group(types, build)).layouts[0]
    group = make_group(types, build, choice)
    reference = Reference.of(group, choice)
    assert reference is not None
    inside = (slice(None), slice(1, 7), slice(2, 9))
    outside = reference.operands[0].copy()
    assert np.all(outside[inside])
    outside[inside] = 0
    assert not np.any(outside)
    candidate = candidate_of(family, group)
    kernel = CallableKernel(candidate.emit("kernel", next(candidate.space(0))))
    results = reference.unwritten()
    kernel(*reference.operands, *results)
    assert reference.agrees(results)
