"""The tiles into which a group is cut, and their classes."""

import math
from itertools import product

import pytest
from xdsl.dialects.builtin import TensorType, f32
from xdsl.ir import Block

from braid.analysis.tiles.tile_classes import Tiling
from braid.analysis.tiles.tile_sizes import SCRATCH_TARGET, candidates, tile_sizes
from braid.analysis.tiles.tiles import group_tile, recomputation, scratch_bytes, work
from braid.dialects.braid.base import integer, integers, shape_of
from braid.dialects.braid.boxes import reshaped, sizes, whole
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.movement import PadOp, ReshapeOp, TransposeOp
from braid.dialects.braid.normalization import SoftmaxOp


def group(types, build):
    """Return the ops that `build` makes on block arguments, in a block."""
    block = Block(arg_types=[TensorType(f32, shape) for shape in types])
    ops = build(*block.args)
    block.add_ops(ops)
    return ops


def attention(length, rows=None, width=64):
    def build(q, k, v):
        scores = MatmulOp.on(q, k)
        weights = SoftmaxOp.get(scores, 2)
        return [scores, weights, MatmulOp.on(weights, v)]

    return group([(4, rows or length, width), (4, width, length), (4, length, width)], build)


def padded_conv(extent):
    def build(x, w):
        padded = PadOp.get(x, [0, 0, 1, 1], [0, 0, 1, 1], 0.0)
        ones, none = integers([1, 1]), integers([0, 0])
        conv = ConvOp.on(
            padded, w, strides=ones, dilations=ones, pad_low=none, pad_high=none, groups=integer(1)
        )
        return [padded, conv]

    return group([(1, 8, extent, extent), (4, 8, 3, 3)], build)


def test_tiles_fit_the_cache_and_keep_products_efficient():
    ops = attention(1024)
    extents = tile_sizes(ops, ops[-1].results[0])
    assert extents is not None
    tile = group_tile(ops, ops[-1].results[0], tuple((0, n) for n in extents))
    assert tile is not None
    assert extents[0] == 1
    assert extents[1] >= 64
    assert scratch_bytes(tile) <= SCRATCH_TARGET


def test_rows_that_fit_no_cache_still_make_efficient_products():
    """64 rows of 65536 scores exceed a cache, but are a small part of the group's saving."""
    ops = attention(65_536)
    extents = tile_sizes(ops, ops[-1].results[0])
    assert extents is not None
    assert extents[:2] == (1, 64)


def test_tiles_have_fewer_rows_where_a_cache_then_holds_what_they_read():
    """Keys and values of two heads are 721 KiB, 73 and 32 rows of their scores 329 and 144."""
    ops = attention(577, width=80)
    result = ops[-1].results[0]
    assert tile_sizes(ops, result) == (2, 73, 80)
    assert tile_sizes(ops, result, cache=2048 * 1024) == (2, 73, 80)
    assert tile_sizes(ops, result, cache=1024 * 1024) == (2, 32, 80)
    assert tile_sizes(ops, result, cache=512 * 1024) == (2, 73, 80)


def test_rows_and_columns_have_no_common_tiles():
    def build(x):
        rows = SoftmaxOp.get(x, 1)
        return [rows, SoftmaxOp.get(rows, 0)]

    ops = group([(2048, 2048)], build)
    assert tile_sizes(ops, ops[-1].results[0]) is None


def test_what_every_tile_would_compute_again_is_refused():
    """The right operand of a product is needed whole by every tile of whole rows."""

    def build(x, y):
        squares = MatmulOp.on(y, y)
        product = MatmulOp.on(x, squares)
        return [squares, product, SoftmaxOp.get(product, 1)]

    ops = group([(4096, 512), (512, 512)], build)
    assert tile_sizes(ops, ops[-1].results[0], target=64 * 1024) is None


def turned_attention(length, width, values, heads):
    """Heads are inside of tokens, as products leave them."""

    def build(q, k, v):
        orders = ([1, 0, 2], [1, 2, 0], [1, 0, 2])
        turned = [TransposeOp.get(x, order) for x, order in zip((q, k, v), orders, strict=True)]
        scores = MatmulOp.on(*turned[:2])
        scaled = elementwise("neg", scores)
        weights = SoftmaxOp.get(scaled, 2)
        sums = MatmulOp.on(weights, turned[2])
        return [*turned, scores, scaled, weights, sums, TransposeOp.get(sums, [1, 0, 2])]

    return group([(length, heads, columns) for columns in (width, width, values)], build)


@pytest.mark.parametrize("heads", [2, 3, 5])
def test_little_is_computed_again_where_the_last_tile_is_smaller(heads):
    """Scores of two of three heads were computed for each fourth of the columns of values."""
    ops = turned_attention(577, 96, 192, heads)
    result = ops[-1].results[0]
    extents = tile_sizes(ops, result)
    if extents is None:  # Then there are kernels for its parts.
        return
    tiles = tiles_of(Tiling(tuple(ops), result, extents))
    computed = sum(work(op, tile.boxes[op.results[0]]) for tile in tiles for op in ops)
    assert computed <= 1.1 * sum(work(op, whole(shape_of(op.results[0]))) for op in ops)


def test_exponentials_cost_more_than_products():
    """Weights of 1,024 keys for each fourth of 192 columns took half as long as the products."""

    def build(scores, v):
        weights = SoftmaxOp.get(scores, 2)
        return [weights, MatmulOp.on(weights, v)]

    ops = group([(4, 1024, 1024), (4, 1024, 192)], build)
    tiling = Tiling(tuple(ops), ops[-1].results[0], (1, 64, 48))
    tile = tiling.tile((0, 0, 0))
    assert tile is not None
    assert recomputation(ops, tile, math.prod(tiling.counts)) > 1.3


def test_tiles_of_few_rows_are_taken_only_where_they_fit():
    """Tiles of 32 rows, each of which copies 768 KiB of keys and values, took 1.24 times as
    long."""
    ops = turned_attention(1024, 64, 128, heads=4)
    assert tile_sizes(ops, ops[-1].results[0], target=384 * 1024) is None


def tiles_of(tiling):
    return [tiling.tile(numbers) for numbers in product(*(range(n) for n in tiling.counts))]


@pytest.mark.parametrize("extents", [(1, 4, 3, 10), (1, 2, 10, 10), (1, 4, 4, 3)])
def test_classes_say_where_every_tile_lies(extents):
    ops = padded_conv(10)
    tiling = Tiling(tuple(ops), ops[-1].results[0], extents)
    classes = tiling.classes()
    assert classes is not None
    covered = 0
    for found in classes:
        ranges = [range(a, b + 1) for a, b in zip(found.first, found.last, strict=True)]
        for numbers in product(*ranges):
            tile = tiling.tile(numbers)
            assert tile is not None
            assert tile.key == found.tile.key
            moves = [n - a for n, a in zip(numbers, found.first, strict=True)]
            expected = [
                start + sum(move * step[i] for move, step in zip(moves, found.steps, strict=True))
                for i, start in enumerate(found.tile.starts)
            ]
            assert list(tile.starts) == expected
            covered += 1
    assert covered == math.prod(tiling.counts)


def test_borders_are_classes_of_their_own():
    """The first row of tiles has padding above, those in the middle have none, the last has it
    below."""
    ops = padded_conv(12)
    classes = Tiling(tuple(ops), ops[-1].results[0], (1, 4, 3, 12)).classes()
    assert classes is not None
    assert [(c.first[2], c.last[2]) for c in classes] == [(0, 0), (1, 2), (3, 3)]


def test_dims_that_a_reshape_joined_are_cut_apart():
    def build(x, w):
        turned = TransposeOp.get(x, [1, 2, 0])
        flat = ReshapeOp.get(turned, [30, 8])
        negated = elementwise("neg", flat)
        return [turned, flat, negated, MatmulOp.on(negated, w)]

    ops = group([(8, 5, 6), (8, 3)], build)
    tiling = Tiling(tuple(ops), ops[-1].results[0], (1, 4, 3))
    assert tiling.shape == (5, 6, 3)
    for tile in tiles_of(tiling):
        assert tile is not None
        (_, box), *_ = tile.inputs
        assert sizes(box)[1] == 1
        assert reshaped(tile.boxes[tile.result], shape_of(tile.result), (5, 6, 3)) is not None


def test_candidates_are_divisors_where_there_are_some():
    assert candidates(12) == [6, 4, 3, 2, 1]
    assert candidates(13) == [7, 4, 2, 1]
