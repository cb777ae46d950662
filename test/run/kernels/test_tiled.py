"""Groups that are computed tile by tile: borders, halos, several tiled dims, workers."""

import math

import numpy as np
import pytest
from xdsl.dialects.builtin import MemRefType, StringAttr, TensorType, f32, i64

from braid.dialects.braid.attribute_names import DEVICE
from braid.dialects.braid.base import integer, integers, shape_of
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.dtypes import bytes_of
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.indexing import GatherElementsOp, GatherOp
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.movement import ConcatOp, PadOp, ReshapeOp, SliceOp, TransposeOp
from braid.dialects.braid.normalization import SoftmaxOp
from braid.dialects.braid.reduction import ReduceOp
from braid.dialects.braid.resampling import Resampling
from braid.dialects.braid.resize import ResizeOp
from braid.lowering.cpu.families import cpu_families
from test.machines import HOST
from test.run.kernels.conftest import KernelCheck, candidate_of, make_group
from test.schedules import emitted

(FAMILY,) = (family for family in cpu_families(HOST) if family.name == "tiled")
LINEAR = Resampling("linear", "half_pixel", "floor", -0.75, False, False, 0.0)


def chain(*ops):
    """All ops, and the result of the last one."""
    return list(ops), [ops[-1].results[0]]


def attention(q, k, v, scale):
    """On tensors [batch, length, heads, depth]; so is the result."""
    queries = TransposeOp.get(q, [0, 2, 1, 3])
    keys = TransposeOp.get(k, [0, 2, 3, 1])
    values = TransposeOp.get(v, [0, 2, 1, 3])
    products = MatmulOp.on(queries, keys)
    scores = elementwise("mul", products, scale)
    weights = SoftmaxOp.get(scores, 3)
    mixed = MatmulOp.on(weights, values)
    back = TransposeOp.get(mixed, [0, 2, 1, 3])
    return chain(queries, keys, values, products, scores, weights, mixed, back)


def log_softmax(x, w, labels):
    logits = MatmulOp.on(x, w)
    high = ReduceOp.get(logits, "maximum", [1])
    shifted = elementwise("sub", logits, high)
    powers = elementwise("exp", shifted)
    total = ReduceOp.get(powers, "add", [1])
    logs = elementwise("sub", shifted, elementwise("log", total))
    picked = GatherElementsOp.get(logs, labels, 1)
    log = logs.operands[1].owner
    return chain(logits, high, shifted, powers, total, log, logs, picked)


def conv(x, w):
    ones = integers([1] * (len(shape_of(x)) - 2))
    none = integers([0] * (len(shape_of(x)) - 2))
    return ConvOp.on(
        x, w, strides=ones, dilations=ones, pad_low=none, pad_high=none, groups=integer(1)
    )


def upsampled(x, w):
    """Twice as large in three dims, padded, convolved."""
    n, c, *spatial = shape_of(x)
    large = ResizeOp.get(x, [n, c, *(2 * s for s in spatial)], [1, 1, 2, 2, 2], LINEAR)
    padded = PadOp.get(large, [0, 0, 1, 1, 1], [0, 0, 1, 1, 1], 0.5)
    return chain(large, padded, conv(padded.results[0], w))


def unfolded(x, w):
    """Windows of 2 × 2 pixels side by side, times a matrix."""
    _, height, width, channels = shape_of(x)
    sizes = [1, height - 1, width - 1, channels]
    parts = [SliceOp.get(x, [0, i, j, 0], sizes) for i in (0, 1) for j in (0, 1)]
    windows = ConcatOp.get(parts, 3)
    flat = ReshapeOp.get(windows, [(height - 1) * (width - 1), 4 * channels])
    return chain(*parts, windows, flat, MatmulOp.on(flat, w))


def differences(x, y):
    difference = elementwise("sub", x, y)
    squares = elementwise("mul", difference, difference)
    return chain(difference, squares, ReduceOp.get(squares, "add", [2]))


def gathered(table, indices, w):
    rows = GatherOp.get(table, indices, 0)
    half = ConstantOp.of(np.full((1, 1), 0.5, np.float32))
    scaled = elementwise("mul", rows, half)
    return chain(rows, half, scaled, MatmulOp.on(scaled, w))


def normalized(dim):
    """Divided by the norm along a dim."""

    def build(x):
        squares = elementwise("mul", x, x)
        total = ReduceOp.get(squares, "add", [dim])
        norm = elementwise("sqrt", total)
        return chain(squares, total, norm, elementwise("div", x, norm.results[0]))

    return build


LABELS = TensorType(i64, [37, 1])
IDS = TensorType(i64, [23])
GROUPS = {
    "attention": (attention, [(2, 19, 3, 8)] * 3 + [(1, 1, 1, 1)], [(1, 5, 1, 8), (2, 19, 2, 8)]),
    "log-softmax": (log_softmax, [(37, 9), (9, 21), LABELS], [(8, 1)]),
    "upsampled": (
        upsampled,
        [(1, 3, 4, 5, 6), (2, 3, 3, 3, 3)],
        [(1, 1, 3, 10, 12)],
    ),
    "unfolded": (unfolded, [(1, 8, 11, 5), (20, 6)], [(3, 10, 6), (1, 4, 6)]),
    "differences": (differences, [(13, 1, 10), (1, 7, 10)], [(5, 2, 1)]),
    "normalized-0": (normalized(0), [(24, 70)], [(24, 32), (5, 70), (24, 6), (7, 16), (1, 70)]),
    "normalized-1": (normalized(1), [(24, 70)], [(24, 32), (5, 70), (24, 6), (7, 16)]),
    "normalized-middle": (normalized(1), [(2, 9, 40)], [(1, 9, 16), (2, 4, 40), (2, 9, 7)]),
    "gathered": (gathered, [(50, 12), IDS, (12, 9)], [(10, 9)]),
}
"""Makers of groups, the types of their operands, and extents of tiles."""


def arrays_of(types):
    rng = np.random.default_rng(0)
    return [
        rng.integers(0, 9, type.get_shape())
        if isinstance(type, TensorType)
        else rng.uniform(-1, 1, type).astype(np.float32)
        for type in types
    ]


def tensors(types):
    return [type if isinstance(type, TensorType) else TensorType(f32, type) for type in types]


def schedule_of(extents):
    return {f"tile{dim}": extent for dim, extent in enumerate(extents)}


@pytest.mark.parametrize(
    ("name", "extents"), [(name, e) for name, (_, _, tiles) in GROUPS.items() for e in tiles]
)
def test_tiles_of_any_size_make_the_result(name, extents, check: KernelCheck):
    """Sizes that do not divide the extents leave smaller tiles at the borders."""
    build, types, _ = GROUPS[name]
    schedule = schedule_of(extents)
    check(FAMILY, tensors(types), build, schedule=schedule, arrays=arrays_of(types))


def test_default_tiles_make_the_result(check: KernelCheck):
    build, types, _ = GROUPS["attention"]
    check(FAMILY, tensors(types), build, arrays=arrays_of(types))


@pytest.mark.parametrize("name", [name for name in GROUPS if "normalized" not in name])
def test_no_tensor_inside_of_the_group_is_in_memory(name):
    """Read from the kernel's code: every buffer is a tensor from outside, or smaller than one."""
    build, types, tiles = GROUPS[name]
    group = make_group(tensors(types), build)
    inside = [
        shape_of(op.results[0])
        for op in group.body.block.ops
        if op.results and not isinstance(op, ConstantOp)
    ]
    outside = {math.prod(shape_of(value)) for value in (*group.inputs, *group.outputs)}
    largest = max(math.prod(shape) for shape in inside)
    kernel = emitted(candidate_of(FAMILY, group), schedule_of(tiles[0]))
    for value in (value for op in kernel.module.walk() for value in op.results):
        if isinstance(value.type, MemRefType) and bytes_of(value.type.element_type) > 1:
            elements = math.prod(value.type.get_shape())
            assert elements in outside or elements <= 0.6 * largest
    assert kernel.scratch_bytes < bytes_of(f32) * sum(map(math.prod, inside))


def test_groups_on_a_device_need_no_memory_of_its_own(check: KernelCheck):
    """Devices on a tile's ops are about the model's memories, not about the tile's."""
    build, types, tiles = GROUPS["attention"]

    def placed(*values):
        ops, results = build(*values)
        for op in ops:
            op.attributes[DEVICE] = StringAttr("cpu:0")
        return ops, results

    check(FAMILY, tensors(types), placed, schedule=schedule_of(tiles[0]), arrays=arrays_of(types))


def test_a_tile_that_is_part_of_an_operand(check: KernelCheck):
    """Tiles of a concatenation that no op computes are copied."""

    def build(x):
        negated = elementwise("neg", x)
        return chain(negated, ConcatOp.get([x, negated], 1))

    check(FAMILY, [TensorType(f32, [6, 4])], build, schedule=schedule_of([3, 2]))


def test_a_constant_that_is_no_number_is_not_taken():
    """A part of it could not be distinguished from another part."""

    def build(x, w):
        row = ConstantOp.of(np.arange(6, dtype=np.float32)[None])
        scaled = elementwise("mul", x, row)
        return chain(row, scaled, MatmulOp.on(scaled, w))

    group = make_group([TensorType(f32, [4, 6]), TensorType(f32, [6, 5])], build)
    assert FAMILY.match(group) is None


def test_simple_groups_are_left_to_others():
    def build(x, w):
        product = MatmulOp.on(x, w)
        return chain(product, elementwise("exp", product))

    group = make_group([TensorType(f32, [4, 6]), TensorType(f32, [6, 5])], build)
    assert FAMILY.match(group) is None
