"""Ops that are not elementwise, in the layouts that a plan could give them."""

import numpy as np
import pytest
from xdsl.dialects.builtin import (
    IntegerType,
    Signedness,
    TensorType,
    f16,
    f32,
    f64,
    i8,
    i32,
    i64,
)

from braid.dialects.braid.arg_reduction import ArgReduceOp
from braid.dialects.braid.attributes import with_layout
from braid.dialects.braid.constants import ConstantOp, IotaOp
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.dtypes import i1, to_numpy
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.indexing import GatherElementsOp, GatherNdOp, GatherOp
from braid.dialects.braid.layout import Layout
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
from braid.dialects.braid.placement import ReorderOp
from braid.dialects.braid.pooling import PoolOp
from braid.dialects.braid.reduction import ReduceOp
from braid.dialects.braid.scattering import ScatterElementsOp, ScatterNdOp
from braid.dialects.braid.sorting import TopKOp

ui8, ui32 = (IntegerType(width, Signedness.UNSIGNED) for width in (8, 32))

LAYOUTS = ["abcd", "acdb", "aBcd16b", "aBcd8b"]


def tensor(*shape, layout=None, element_type=f32):
    type = TensorType(element_type, shape)
    return type if layout is None else with_layout(type, Layout.parse(layout))


@pytest.mark.parametrize("target", LAYOUTS)
@pytest.mark.parametrize("source", LAYOUTS)
@pytest.mark.parametrize("channels", [3, 32])
def test_reorder(check, source, target, channels) -> None:
    check(
        [tensor(2, channels, 5, 6, layout=source)],
        lambda x: [ReorderOp.to(x, Layout.parse(target))],
    )


@pytest.mark.parametrize(("source", "target"), [("ab", "Ba32b"), ("Ba32b", "ab"), ("ba", "AB4b8a")])
def test_reorder_of_weights(check, source, target) -> None:
    check([tensor(20, 70, layout=source)], lambda x: [ReorderOp.to(x, Layout.parse(target))])


def test_pack_convolution_weights(check) -> None:
    check([tensor(40, 6, 3, 3)], lambda x: [ReorderOp.to(x, Layout.parse("Acdb32a"))])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_elementwise_on_blocks(check, layout) -> None:
    """exp(0) is 1, but a tail stays 0."""
    check(
        [tensor(1, 20, 4, 4, layout=layout), tensor(1, 20, 1, 1)],
        lambda x, b: [s := elementwise("add", x, b), elementwise("exp", s)],
        layouts=["aBcd16b"],
    )


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", ["max", "add"])
def test_pool(check, kind, layout) -> None:
    check(
        [tensor(1, 20, 9, 8, layout=layout)],
        lambda x: [
            PoolOp.get(
                x, kind, (3, 3), strides=(2, 2), pad_low=(1, 1), pad_high=(0, 1), dilations=(1, 1)
            )
        ],
        layouts=[layout],
    )


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_conv(check, layout, groups) -> None:
    check(
        [tensor(1, 4, 7, 7, layout=layout), tensor(8, 4 // groups, 3, 3)],
        lambda x, w: [
            ConvOp.get(
                x, w, strides=(2, 1), pad_low=(1, 1), pad_high=(1, 0), dilations=(1, 2),
                groups=groups,
            )
        ],
        layouts=[layout],
    )  # fmt: skip


@pytest.mark.parametrize("element_type", [f32, f64, i32], ids=str)
def test_matmul(check, element_type) -> None:
    check(
        [
            tensor(2, 5, 12, element_type=element_type),
            tensor(1, 12, 9, element_type=element_type),
        ],
        lambda a, b: [MatmulOp.on(a, b)],
    )


def test_matmul_with_packed_operand(check) -> None:
    check(
        [tensor(5, 12), tensor(12, 40, layout="Ba32b"), tensor(1, 40)],
        lambda a, b, c: [m := MatmulOp.on(a, b), elementwise("add", m, c)],
    )


@pytest.mark.parametrize("kind", ["add", "mul", "maximum", "minimum"])
@pytest.mark.parametrize("layout", ["abc", "acb", "aBc16b"])
@pytest.mark.parametrize("dims", [(1,), (2,), (0, 2), (0, 1, 2)])
def test_reduce(check, kind, layout, dims) -> None:
    check([tensor(3, 20, 5, layout=layout)], lambda x: [ReduceOp.get(x, kind, dims)])


@pytest.mark.parametrize("kind", ["maximum", "minimum", "and", "or", "add"])
@pytest.mark.parametrize("element_type", [i1, i32, IntegerType(8, Signedness.UNSIGNED)], ids=str)
def test_reduce_integers(check, kind, element_type) -> None:
    if element_type == i1 and kind == "add":
        pytest.skip("a sum of bools has no meaning")
    check([tensor(3, 20, element_type=element_type)], lambda x: [ReduceOp.get(x, kind, (1,))])


@pytest.mark.parametrize("kind", ["max", "min"])
@pytest.mark.parametrize("last", [False, True])
def test_arg_reduce(check, kind, last) -> None:
    check(
        [tensor(4, 30, element_type=i32)],
        lambda x: [ArgReduceOp.get(x, kind, 1, select_last=last)],
    )


@pytest.mark.parametrize("dim", [0, 1])
def test_results_that_start_from_one_number(check, dim) -> None:
    """The least element and the search for the largest both begin with the largest integer."""
    check(
        [tensor(5, 30, element_type=i64)],
        lambda x: [ReduceOp.get(x, "minimum", [dim]), ArgReduceOp.get(x, "max", dim)],
        every=True,
    )


@pytest.mark.parametrize("dim", [0, 1])
def test_softmax(check, dim) -> None:
    check([tensor(6, 40)], lambda x: [SoftmaxOp.get(x, dim)])


def test_layer_norm(check) -> None:
    check(
        [tensor(6, 40), tensor(1, 40), tensor(1, 40)],
        lambda x, s, b: [LayerNormOp.get(x, s, b, first_dim=1, epsilon=1e-5)],
    )


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("channels", [0, 16])
def test_pad(check, layout, channels) -> None:
    check(
        [tensor(1, 20, 4, 5, layout=layout)],
        lambda x: [PadOp.get(x, (0, channels, 1, 2), (0, 0, 1, 0), 1.5)],
        layouts=[layout],
    )


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("first", [16, 20])
def test_concat(check, layout, first) -> None:
    check(
        [tensor(1, first, 4, 5, layout=layout), tensor(1, 8, 4, 5)],
        lambda x, y: [n := elementwise("neg", y), ConcatOp.get([x, n], 1)],
        layouts=[layout],
    )


@pytest.mark.parametrize("strides", [(1, 1), (2, 3), (-1, -2)])
def test_slice(check, strides) -> None:
    offsets = (1, 2) if strides[0] > 0 else (8, 9)
    check([tensor(10, 12)], lambda x: [SliceOp.get(x, offsets, (4, 3), strides)])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_slice_of_layout(check, layout) -> None:
    check(
        [tensor(1, 36, 4, 4, layout=layout)],
        lambda x: [SliceOp.get(x, (0, 16, 0, 1), (1, 20, 4, 2))],
        layouts=[layout],
    )


@pytest.mark.parametrize("element_type", [f32, f64, i1, i64], ids=str)
def test_transpose(check, element_type) -> None:
    check(
        [tensor(3, 17, 33, element_type=element_type)],
        lambda x: [TransposeOp.get(x, (2, 0, 1))],
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [((2, 3, 4), (6, 2, 2)), ((6,), (1, 6, 1)), ((1, 1), ()), ((), (1,)), ((4, 6), (3, 8)),
     ((2, 1, 3), (2, 3)), ((1, 2), (2, 1))],
)  # fmt: skip
def test_reshape(check, before, after) -> None:
    check([tensor(*before)], lambda x: [n := elementwise("neg", x), ReshapeOp.get(n, after)])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_flatten(check, layout) -> None:
    check([tensor(2, 20, 3, 3, layout=layout)], lambda x: [ReshapeOp.get(x, (2, 180))])


def test_broadcast_and_constants(check) -> None:
    def build(x):
        constant = ConstantOp.of(np.arange(4, dtype=np.float32).reshape(1, 4))
        iota = IotaOp.of(0, tensor(3, 4))
        wide = BroadcastOp.get(x, (3, 4))
        total = elementwise("add", wide, constant)
        return [constant, iota, wide, total, elementwise("mul", total, iota)]

    check([tensor(3, 1)], build)


INDICES = np.array([[0, -1, 2], [4, 1, -5]], np.int64)


def test_gather(check) -> None:
    check(
        [tensor(3, 5, 4), tensor(2, 3, element_type=i64)],
        lambda x, i: [GatherOp.get(x, i, 1)],
        inputs={1: INDICES},
    )


def test_gather_from_layout(check) -> None:
    check(
        [tensor(5, 40, layout="Ba32b"), tensor(2, 3, element_type=i64)],
        lambda x, i: [GatherOp.get(x, i, 0)],
        inputs={1: INDICES},
    )


def test_gather_elements(check) -> None:
    check(
        [tensor(2, 5), tensor(2, 3, element_type=i64)],
        lambda x, i: [GatherElementsOp.get(x, i, 1)],
        inputs={1: INDICES},
    )


def test_gather_nd(check) -> None:
    check(
        [tensor(2, 5, 4), tensor(3, 2, element_type=i64)],
        lambda x, i: [GatherNdOp.get(x, i)],
        inputs={1: np.array([[0, 1], [1, -1], [0, 0]])},
    )


@pytest.mark.parametrize("reduction", ["none", "add", "maximum"])
def test_scatter_elements(check, reduction) -> None:
    check(
        [tensor(2, 5), tensor(2, 3, element_type=i64), tensor(2, 3)],
        lambda x, i, u: [ScatterElementsOp.get(x, i, u, 1, reduction)],
        inputs={1: INDICES},
    )


@pytest.mark.parametrize("reduction", ["none", "mul"])
def test_scatter_nd(check, reduction) -> None:
    check(
        [tensor(4, 5), tensor(3, 1, element_type=i64), tensor(3, 5)],
        lambda x, i, u: [ScatterNdOp.get(x, i, u, reduction)],
        inputs={1: np.array([[3], [0], [-2]])},
    )


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("dim", [0, 1])
def test_top_k(check, largest, dim) -> None:
    x = np.random.default_rng(0).integers(0, 9, (6, 7)).astype(np.float32)
    x[2, 3] = np.nan
    check([tensor(6, 7)], lambda x: [TopKOp.get(x, 4, dim, largest=largest)], inputs={0: x})


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("type", [f16, f64, i8, ui8, i32, ui32, i64])
def test_top_k_of_types(check, largest, type) -> None:
    values = np.random.default_rng(0).integers(0, 250, (2, 50))
    x = (values - (0 if type in (ui8, ui32) else 125)).astype(to_numpy(type))
    check(
        [tensor(2, 50, element_type=type)],
        lambda x: [TopKOp.get(x, 9, 1, largest=largest)],
        inputs={0: x},
    )


@pytest.mark.parametrize("largest", [True, False])
def test_top_k_of_special_numbers(check, largest) -> None:
    numbers = [0.0, -0.0, np.nan, -np.inf, np.inf, -np.nan, -1e-45, 1e-45, -0.0, -2.0]
    x = np.array([numbers], np.float32)
    check([tensor(1, 10)], lambda x: [TopKOp.get(x, 10, 1, largest=largest)], inputs={0: x})
