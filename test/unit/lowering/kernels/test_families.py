"""Which groups families take, and in which layouts."""

import pytest
from xdsl.dialects.builtin import DYNAMIC_INDEX, Float64Type, IntegerType, TensorType, f32
from xdsl.ir import Block

from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.dtypes import i1
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.movement import TransposeOp
from braid.dialects.braid.normalization import SoftmaxOp
from braid.dialects.braid.pooling import PoolOp
from braid.dialects.braid.reduction import ReduceOp
from braid.dialects.braid.regions import FusedOp, YieldOp
from braid.lowering.cpu.kernels.conv_depthwise import ConvDepthwiseFamily
from braid.lowering.cpu.kernels.conv_direct import ConvDirectFamily
from braid.lowering.cpu.kernels.conv_grouped import ConvGroupedFamily
from braid.lowering.cpu.kernels.elementwise import ElementwiseFamily
from braid.lowering.cpu.kernels.gemm import GemmFamily
from braid.lowering.cpu.kernels.movement import MovementFamily
from braid.lowering.cpu.kernels.normalization import NormalizationFamily
from braid.lowering.cpu.kernels.pooling import PoolFamily
from test.machines import AVX512

FAMILIES = {
    family.name: family
    for family in (
        GemmFamily(AVX512),
        ConvDirectFamily(AVX512),
        ConvDepthwiseFamily(AVX512),
        ConvGroupedFamily(AVX512),
        PoolFamily(AVX512),
        NormalizationFamily(AVX512),
        MovementFamily(AVX512),
        ElementwiseFamily(AVX512),
    )
}


def group(types, build, results=1):
    block = Block(arg_types=types)
    ops = build(*block.args)
    block.add_ops(ops)
    values = [op.results[0] for op in ops[-results:]]
    block.add_op(YieldOp(*values))
    outside = Block(arg_types=types)
    fused = FusedOp(outside.args, [value.type for value in values], block)
    outside.add_op(fused)
    return fused


def takers(fused):
    found = {name: family.match(fused) for name, family in FAMILIES.items()}
    assert all(candidate is None or candidate.layouts for candidate in found.values())
    return {name for name, candidate in found.items() if candidate is not None}


def layouts_of(name, fused):
    candidate = FAMILIES[name].match(fused)
    assert candidate is not None
    return candidate.layouts


def tensor(*shape, type=f32):
    return TensorType(type, shape)


def conv(groups=1, pad=0):
    return lambda x, w: [
        ConvOp.get(
            x, w, strides=(1, 1), dilations=(1, 1), pad_low=(pad, pad), pad_high=(pad, pad),
            groups=groups,
        )
    ]  # fmt: skip


def pool(pad):
    return lambda x: [
        PoolOp.get(
            x, "max", (2, 2), strides=(1, 1), dilations=(1, 1), pad_low=(pad, pad),
            pad_high=(0, 0),
        )
    ]  # fmt: skip


def whole_image(x):
    return [ReduceOp.get(x, "add", (2, 3))]


IMAGE = tensor(1, 8, 6, 6)


@pytest.mark.parametrize(
    ("types", "build", "expected"),
    [
        ([tensor(2, 3), tensor(3, 4)], lambda a, b: [MatmulOp.on(a, b)], {"gemm"}),
        ([tensor(3, 3)], lambda a: [MatmulOp.on(a, a)], set()),
        (
            [tensor(2, 3, type=Float64Type()), tensor(3, 4, type=Float64Type())],
            lambda a, b: [MatmulOp.on(a, b)],
            {"gemm"},
        ),
        ([IMAGE, tensor(4, 8, 3, 3)], conv(), {"conv-direct"}),
        ([IMAGE, tensor(4, 8, 3, 3)], conv(pad=1), set()),
        ([IMAGE, tensor(8, 1, 3, 3)], conv(groups=8), {"conv-depthwise"}),
        ([IMAGE, tensor(8, 4, 3, 3)], conv(groups=2), {"conv-direct", "conv-grouped"}),
        ([IMAGE], pool(0), {"pool"}),
        ([IMAGE], pool(1), set()),
        ([tensor(1, 64, 14, 14)], whole_image, {"pool"}),
        ([tensor(1, 63, 14, 14)], whole_image, set()),  # few sums, which wait for each other
        ([tensor(2, 3)], lambda x: [SoftmaxOp.get(x, 1)], {"normalization"}),
        ([tensor(2, 3)], lambda x: [SoftmaxOp.get(x, 0)], {"normalization"}),
        ([tensor(2, 3)], lambda x: [TransposeOp.get(x, (1, 0))], {"movement"}),
        ([tensor(2, 3, type=i1)], lambda x: [TransposeOp.get(x, (1, 0))], set()),
        ([tensor(2, 3)], lambda x: [elementwise("exp", x)], {"elementwise"}),
        ([tensor(2, 3)], lambda x: [elementwise("acosh", x)], {"elementwise"}),
        ([tensor(2, 3, type=Float64Type())], lambda x: [elementwise("acosh", x)], {"elementwise"}),
        ([tensor(2, 3)], lambda x: [elementwise("rem", x, x)], set()),
        ([tensor(2, 3)], lambda x: [elementwise("isnan", x)], set()),
        ([tensor(2, 3, type=i1)], lambda x: [elementwise("not", x)], set()),
        ([tensor(2, 3, type=IntegerType(32))], lambda x: [elementwise("neg", x)], {"elementwise"}),
        ([tensor(DYNAMIC_INDEX, 3)], lambda x: [elementwise("neg", x)], set()),
        ([tensor(0, 3)], lambda x: [elementwise("neg", x)], set()),
    ],
)
def test_who_takes_a_group(types, build, expected) -> None:
    assert takers(group(types, build)) == expected


def test_result_of_another_shape_is_refused() -> None:
    def build(a, b, c):
        op = MatmulOp.on(a, b)
        return [op, elementwise("add", op.output, c)]

    types = [tensor(1, 2, 3), tensor(1, 3, 4), tensor(5, 2, 4)]
    assert takers(group(types, build)) == set()


def test_weights_are_packed_and_vectors_stay_row_major() -> None:
    def build(x, w, bias):
        op = conv()(x, w)[0]
        return [op, elementwise("add", op.output, bias)]

    fused = group([IMAGE, tensor(32, 8, 3, 3), tensor(1, 32, 1, 1)], build)
    choice = layouts_of("conv-direct", fused)[0]
    assert [layout.tag for layout in choice.operands] == ["acdb", "Acdb32a", "abcd"]
    assert [layout.tag for layout in choice.results] == ["acdb"]


def test_convolutions_offer_three_layouts_on_either_side() -> None:
    types = [tensor(1, 16, 6, 6), tensor(32, 16, 3, 3)]
    pairs = {
        (choice.operands[0].tag, choice.results[0].tag)
        for choice in layouts_of("conv-direct", group(types, conv()))
    }
    layouts = {"abcd", "acdb", "aBcd16b"}
    assert pairs == {(x, y) for x in layouts for y in layouts - {"abcd"}} | {("abcd", "abcd")}


def test_strided_convolutions_do_not_write_lines_of_pixels() -> None:
    def strided(x, w):
        return [
            ConvOp.get(
                x, w, strides=(2, 2), dilations=(1, 1), pad_low=(0, 0), pad_high=(0, 0), groups=1
            )
        ]

    choices = layouts_of("conv-direct", group([IMAGE, tensor(4, 8, 3, 3)], strided))
    assert {choice.results[0].tag for choice in choices} == {"acdb"}


def test_batched_products_pack_the_columns() -> None:
    types = [tensor(2, 3, 16, 8), tensor(2, 3, 8, 64)]
    tags = [
        choice.operands[1].tag
        for choice in layouts_of("gemm", group(types, lambda a, b: [MatmulOp.on(a, b)]))
    ]
    assert sorted(tags) == ["abDc16d", "abDc32d", "abDc48d", "abDc64d", "abcd"]
    assert tags[-1] == "abcd"
