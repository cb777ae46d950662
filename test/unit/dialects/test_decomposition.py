"""Replacing an op by its parts: names and locations stay, open dims are refused."""

import pytest
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, StringAttr, TensorType, f32
from xdsl.dialects.test import TestOp as Use
from xdsl.ir import Block

from braid.dialects.braid.base import DecomposableOp
from braid.dialects.braid.decomposition import decompose_op
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.names import names_of, set_names
from braid.dialects.braid.resampling import Resampling
from braid.dialects.braid.resize import ResizeOp
from braid.dialects.braid.scan import ScanOp
from braid.dialects.braid.transposed_convolution import ConvTransposeOp
from braid.support.errors import UnsupportedError


def block_with(*shapes: tuple[int, ...]) -> Block:
    return Block(arg_types=[TensorType(f32, shape) for shape in shapes])


def test_the_last_op_inherits_names_and_all_inherit_the_location() -> None:
    block = block_with((2, 5))
    scan = ScanOp.get(block.args[0], "add", 1)
    scan.location = FileLineColLoc(StringAttr("m.onnx"), IntAttr(3), IntAttr(7))
    set_names(scan, ["cumsum"])
    user = Use(operands=[scan.output])
    block.add_ops([scan, user])
    new = decompose_op(scan)
    assert list(block.ops) == [*new, user]
    assert user.operands[0].owner is new[-1]
    assert names_of(new[-1]) == ("cumsum",)
    assert {op.location for op in new} == {scan.location}


def test_what_changes_nothing_leaves_no_op() -> None:
    block = block_with((2, 1))
    scan = ScanOp.get(block.args[0], "add", 1)
    user = Use(operands=[scan.output])
    block.add_ops([scan, user])
    assert decompose_op(scan) == []
    assert user.operands[0] is block.args[0]


def open_scan() -> DecomposableOp:
    return ScanOp.get(block_with((2, DYNAMIC)).args[0], "add", 1)


def open_resize() -> DecomposableOp:
    x = block_with((2, DYNAMIC)).args[0]
    return ResizeOp.get(x, (2, DYNAMIC), (1.0, 2.0), Resampling())


def open_conv_transpose() -> DecomposableOp:
    x, w = block_with((1, 2, DYNAMIC), (2, 3, 2)).args
    return ConvTransposeOp.get(x, w, strides=[2], dilations=[1], pad_low=[0], pad_high=[0])


@pytest.mark.parametrize("build", [open_scan, open_resize, open_conv_transpose])
def test_open_dims_are_refused(build) -> None:
    op = build()
    block = Block()
    block.add_op(op)
    with pytest.raises(UnsupportedError, match="open"):
        decompose_op(op)
    assert list(block.ops) == [op]
