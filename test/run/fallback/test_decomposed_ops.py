"""Ops that are lowered as the ops they consist of."""

import pytest
from xdsl.dialects.builtin import TensorType, f32, i32

from braid.dialects.braid.attributes import with_layout
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.resampling import Resampling
from braid.dialects.braid.resize import ResizeOp
from braid.dialects.braid.scan import ScanOp
from braid.dialects.braid.transposed_convolution import ConvTransposeOp


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("layout", ["abcd", "acdb"])
def test_resize(check, mode, layout) -> None:
    type = with_layout(TensorType(f32, (1, 3, 4, 6)), Layout.parse(layout))
    how = Resampling(mode=mode, coordinates="half_pixel")
    check(
        [type],
        lambda x: [ResizeOp.get(x, (1, 3, 8, 9), (1.0, 1.0, 2.0, 1.5), how)],
        layouts=[layout],
    )


@pytest.mark.parametrize("element_type", [f32, i32], ids=str)
@pytest.mark.parametrize(("exclusive", "reverse"), [(False, False), (True, False), (True, True)])
def test_scan(check, element_type, exclusive, reverse) -> None:
    check(
        [TensorType(element_type, (3, 7))],
        lambda x: [ScanOp.get(x, "add", 1, exclusive=exclusive, reverse=reverse)],
    )


@pytest.mark.parametrize("reverse", [False, True])
def test_a_scan_of_one_element_that_leaves_it_out(check, reverse) -> None:
    check(
        [TensorType(f32, (3, 1))],
        lambda x: [ScanOp.get(x, "mul", 1, exclusive=True, reverse=reverse)],
    )


@pytest.mark.parametrize(("window", "stride"), [(2, 2), (3, 2)])
def test_conv_transpose(check, window, stride) -> None:
    check(
        [TensorType(f32, (1, 4, 5, 5)), TensorType(f32, (4, 6, window, window))],
        lambda x, w: [
            ConvTransposeOp.get(
                x, w, strides=(stride, stride), pad_low=(1, 0), pad_high=(0, 1), dilations=(1, 1)
            )
        ],
    )
