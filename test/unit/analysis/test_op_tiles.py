"""A tile of an op, computed from slices of the operands, is that part of the op's result."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.builder import Builder
from xdsl.dialects.builtin import BoolAttr, StringAttr, TensorType, f32, i64
from xdsl.ir import Block
from xdsl.rewriter import InsertPoint

from braid.analysis.tiles.op_tiles import iteration_domain, op_tile, tiled
from braid.dialects.braid.arg_reduction import ArgReduceOp
from braid.dialects.braid.base import DecomposableOp, TensorOp, integer, integers, shape_of
from braid.dialects.braid.constants import IotaOp
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.folding import FoldOp
from braid.dialects.braid.fourier import FftOp
from braid.dialects.braid.indexing import GatherElementsOp, GatherNdOp, GatherOp
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.movement import (
    BroadcastOp,
    ConcatOp,
    PadOp,
    ReshapeOp,
    SliceOp,
    TransposeOp,
)
from braid.dialects.braid.normalization import LayerNormOp, SoftmaxOp
from braid.dialects.braid.pooling import PoolOp
from braid.dialects.braid.reduction import ReduceOp
from braid.dialects.braid.resampling import Resampling
from braid.dialects.braid.resize import ResizeOp
from braid.dialects.braid.scalar import Apply, Argument, Literal
from braid.dialects.braid.scan import ScanOp
from braid.dialects.braid.scattering import ScatterElementsOp, ScatterNdOp
from braid.dialects.braid.sorting import TopKOp
from braid.dialects.braid.tiling import IterationDim
from braid.dialects.braid.transposed_convolution import ConvTransposeOp

LINEAR = Resampling("linear", "half_pixel", "floor", -0.75, False, False, 0.0)
NEAREST = Resampling("nearest", "asymmetric", "floor", -0.75, False, False, 0.0)
CORNERS = Resampling("cubic", "align_corners", "floor", -0.75, True, False, 0.0)
CROPPED = Resampling("linear", "tf_crop_and_resize", "floor", -0.75, False, False, 2.5)


def conv(x, w, groups=1, strides=(1, 2), pads=(1, 0)):
    return ConvOp.on(
        x,
        w,
        strides=integers(strides),
        dilations=integers((1, 2)),
        pad_low=integers(pads),
        pad_high=integers(pads),
        groups=integer(groups),
    )


def transposed(x, w, groups=1, strides=(2, 3), dilations=(1, 2), pads=(1, 0), extra=(0, 1)):
    lists = {"strides": strides, "dilations": dilations, "pad_low": pads, "pad_high": (0, 1)}
    return ConvTransposeOp.get(x, w, **lists, output_padding=extra, groups=groups)


CASES = {
    "exp": ([(3, 4)], lambda x: elementwise("exp", x)),
    "add repeated": ([(3, 1, 4), (1, 5, 4)], lambda x, y: elementwise("add", x, y)),
    "transpose": ([(2, 3, 4)], lambda x: TransposeOp.get(x, [2, 0, 1])),
    "broadcast": ([(3, 1)], lambda x: BroadcastOp.get(x, [3, 5])),
    "reshape": ([(4, 3, 5)], lambda x: ReshapeOp.get(x, [12, 5])),
    "reshape apart": ([(12, 5)], lambda x: ReshapeOp.get(x, [4, 1, 3, 5])),
    "slice": ([(7, 6)], lambda x: SliceOp.get(x, [1, 5], [3, 3], [2, -2])),
    "pad": ([(3, 4)], lambda x: PadOp.get(x, [1, 2], [2, 0], 1.5)),
    "concat": ([(2, 3), (2, 1), (2, 4)], lambda *x: ConcatOp.get(x, 1)),
    "reduce": ([(3, 4, 5)], lambda x: ReduceOp.get(x, "add", [1])),
    "maximum": ([(3, 4, 5)], lambda x: ReduceOp.get(x, "maximum", [0])),
    "argmax": ([(3, 4)], lambda x: argmax(x)),
    "softmax": ([(3, 4, 5)], lambda x: SoftmaxOp.get(x, 1)),
    "layer norm": (
        [(3, 4, 5), (1, 4, 5), (1, 1, 5)],
        lambda x, s, b: LayerNormOp.get(x, s, b, first_dim=1, epsilon=1e-5),
    ),
    "matmul": ([(2, 3, 4), (1, 4, 5)], lambda x, y: MatmulOp.on(x, y)),
    "conv": ([(2, 4, 6, 7), (3, 4, 3, 2)], conv),
    "grouped conv": ([(1, 4, 6, 7), (6, 2, 3, 2)], lambda x, w: conv(x, w, 2)),
    "pool": (
        [(1, 3, 6, 7)],
        lambda x: PoolOp.get(
            x, "max", (3, 2), strides=(2, 1), pad_low=(1, 0), pad_high=(1, 1), dilations=(1, 1)
        ),
    ),
    "resize nearest": ([(2, 3, 4)], lambda x: ResizeOp.get(x, [2, 6, 4], [1, 2, 1], NEAREST)),
    "resize linear": ([(2, 3, 4)], lambda x: ResizeOp.get(x, [2, 7, 6], [1, 2.5, 1.5], LINEAR)),
    "resize corners": ([(1, 5, 4)], lambda x: ResizeOp.get(x, [1, 9, 4], [1, 1.8, 1], CORNERS)),
    "resize cropped": (
        [(2, 6)],
        lambda x: ResizeOp.get(x, [2, 7], [1, 1], CROPPED, (0, -0.3, 1, 1.2)),
    ),
    "transposed conv": ([(2, 3, 4, 5), (3, 2, 3, 2)], transposed),
    "transposed conv in groups": ([(1, 4, 3, 3), (4, 3, 2, 3)], lambda x, w: transposed(x, w, 2)),
    "transposed conv apart": (
        [(1, 2, 4, 4), (2, 1, 1, 1)],
        lambda x, w: transposed(x, w, strides=(3, 2), dilations=(1, 1), extra=(2, 5)),
    ),
    "scan": ([(3, 4, 5)], lambda x: ScanOp.get(x, "add", 1)),
    "fold": (
        [(3, 12, 4, 3)],
        lambda x: FoldOp.get(x, [3, 2], [4, 6], strides=[1, 2], dilations=[1, 1], pad_low=[1, 0]),
    ),
    "fft": ([(3, 6, 4, 2)], lambda x: FftOp.get(x, "fft", 1)),
    "irfft": ([(4, 3, 2)], lambda x: FftOp.get(x, "irfft", 0)),
    "top k": ([(3, 6, 4)], lambda x: TopKOp.get(x, 2, 1)),
    "scatter elements": (
        [(3, 5, 4), ((3, 2, 3), 5), (3, 2, 3)],
        lambda x, i, u: ScatterElementsOp.get(x, i, u, 1, "add"),
    ),
    "scatter nd": (
        [(3, 5, 4, 2), ((6, 2), 3), (6, 4, 2)],
        lambda x, i, u: ScatterNdOp.get(x, i, u, "maximum"),
    ),
    "iota": ([], lambda: IotaOp.of(1, TensorType(i64, [3, 4]))),
    "gather": ([(3, 5, 2), ((2, 4), 5)], lambda x, i: GatherOp.get(x, i, 1)),
    "gather elements": ([(3, 5), ((3, 4), 5)], lambda x, i: GatherElementsOp.get(x, i, 1)),
    "gather nd": ([(3, 5, 4), ((2, 3, 1), 3)], lambda x, i: gather_nd(x, i)),
}
WHOLE = {
    "softmax": [1],
    "layer norm": [1, 2],
    "reduce": [1],
    "maximum": [0],
    "iota": [1],
    "scan": [1],
    "fft": [1, 3],
    "fold": [2, 3],
    "irfft": [0, 2],
    "top k": [1],
    "scatter elements": [1, 2],
    "scatter nd": [0, 1],
}
"""Dims that cannot be cut."""


def argmax(x):
    return ArgReduceOp.on(
        x, kind=StringAttr("max"), dim=integer(1), select_last=BoolAttr.from_bool(False)
    )


def gather_nd(x, indices):
    return GatherNdOp.on(x, indices, batch_dims=integer(0))


def built(name):
    """Return the op on block arguments, and arrays for these; indices are given as (shape,
    bound)."""
    specs, build = CASES[name]
    rng = np.random.default_rng(0)
    types, arrays = [], []
    for spec in specs:
        if isinstance(spec[0], tuple):
            types.append(TensorType(i64, spec[0]))
            arrays.append(rng.integers(0, spec[1], spec[0]))
        else:
            types.append(TensorType(f32, spec))
            arrays.append(rng.standard_normal(spec).astype(np.float32))
    block = Block(arg_types=types)
    op = build(*block.args)
    block.add_op(op)
    return op, arrays


def part(array, box):
    return array[tuple(slice(start, start + size) for start, size in box)]


def evaluate_tile(op, tile, box, arrays):
    """Return the result of the tile's op on the boxes of the operands."""
    read = [
        (value, part(array, needed))
        for value, array, needed in zip(op.operands, arrays, tile.operands, strict=True)
        if needed is not None
    ]
    types = [TensorType(value.type.element_type, array.shape) for value, array in read]
    block = Block(arg_types=types)
    made = tiled(op, tile, box, block.args)
    block.add_op(made)
    assert isinstance(made, TensorOp)
    made.verify()
    found = made.evaluate(*(array for _, array in read))
    if isinstance(made, DecomposableOp):
        values = dict(zip(block.args, (array for _, array in read), strict=True))
        (result,) = made.decompose(Builder(InsertPoint.at_end(block)))
        for op in block.ops:
            results = op.evaluate(*(values[operand] for operand in op.operands))
            values.update(zip(op.results, results, strict=True))
        np.testing.assert_allclose(values[result], found[0], rtol=1e-4, atol=1e-5)
    return found


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_a_tile_is_that_part_of_the_result(name, data):
    op, arrays = built(name)
    shape = shape_of(op.results[0])
    box = []
    for dim, domain in zip(range(len(shape)), iteration_domain(op), strict=False):
        assert domain.extent == shape[dim]
        if dim in WHOLE.get(name, ()):
            box.append((0, domain.extent))
        else:
            units = domain.extent // domain.unit
            start = data.draw(st.integers(0, units - 1))
            size = data.draw(st.integers(1, units - start))
            box.append((start * domain.unit, size * domain.unit))
    tile = op_tile(op, tuple(box))
    if tile is None:
        assert name in ("reshape", "reshape apart", "pad", "pool"), "only these may refuse"
        return
    found = evaluate_tile(op, tile, tuple(box), arrays)
    for actual, expected in zip(found, op.evaluate(*arrays), strict=True):
        np.testing.assert_allclose(actual, part(expected, box), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["matmul", "conv", "reduce", "maximum"])
def test_partial_results_are_joined(name):
    op, arrays = built(name)
    domain = iteration_domain(op)
    (dim, reduced), *_ = [(i, each) for i, each in enumerate(domain) if each.combine]
    whole = [(0, each.extent) for each in domain]
    partial = []
    for cut in ((0, 1), (1, reduced.extent - 1)):
        box = (*whole[:dim], cut, *whole[dim + 1 :])
        tile = op_tile(op, box)
        assert tile is not None
        partial += evaluate_tile(op, tile, box, arrays)
    joined = {"add": np.add, "maximum": np.maximum}[reduced.combine](*partial)
    np.testing.assert_allclose(joined, op.evaluate(*arrays)[0], rtol=1e-5, atol=1e-6)


def test_the_iteration_domain_says_which_parts_there_are():
    grouped, _ = built("grouped conv")
    assert iteration_domain(grouped)[1] == IterationDim(6, unit=3)
    assert op_tile(grouped, ((0, 1), (1, 3), (0, 2), (0, 2))) is None
    # Rows of the window are not one element of the input each.
    product, conv = iteration_domain(built("matmul")[0]), iteration_domain(built("conv")[0])
    assert product[3] == IterationDim(4, combine="add")
    assert conv[4:] == [
        IterationDim(4, 1, "add"),
        IterationDim(3, 3, "add"),
        IterationDim(2, 2, "add"),
    ]


class MeanOp(ReduceOp):
    """A sum of the elements over their number, which its body has as a literal."""

    name = "test.mean"

    def structure(self):
        structure = super().structure()
        (stage,) = structure.stages
        count, type = shape_of(self.input)[1], stage.result_type
        body = Apply("mul", (Argument(0), Literal(1 / count, type)), type)
        return replace(structure, stages=(replace(stage, body=body),))


def test_a_body_that_knows_the_extents_is_not_cut_along_them():
    block = Block(arg_types=[TensorType(f32, (3, 4, 5))])
    op = MeanOp.on(block.args[0], kind=StringAttr("add"), dims=integers([1]))
    assert op_tile(op, ((1, 2), (0, 1), (0, 5))) is not None
    assert op_tile(op, ((0, 3), (0, 1), (0, 5), (0, 2))) is None


@pytest.mark.parametrize("name", ["softmax", "layer norm", "iota", "scan"])
def test_a_dim_that_cannot_be_cut_is_refused(name):
    op, _ = built(name)
    box = [(0, extent) for extent in shape_of(op.results[0])]
    box[1] = (1, box[1][1] - 1)
    assert op_tile(op, tuple(box)) is None


def test_nothing_but_padding_is_refused():
    op, _ = built("pad")
    assert op_tile(op, ((0, 1), (0, 6))) is None


def test_a_reshape_refuses_what_is_no_box():
    op, _ = built("reshape")
    assert op_tile(op, ((2, 2), (0, 5))) is None
    assert op_tile(op, ((3, 3), (0, 5))) is not None


def test_equal_tiles_elsewhere_have_equal_keys():
    op, _ = built("conv")
    inner = [op_tile(op, ((0, 1), (0, 3), (start, 1), (0, 3))) for start in (1, 2)]
    border = op_tile(op, ((0, 1), (0, 3), (0, 1), (0, 3)))
    assert inner[0] and inner[1] and border
    assert inner[0].key == inner[1].key != border.key
