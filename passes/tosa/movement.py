"""Ops of TOSA that move elements, and constants."""

from typing import cast

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import Attribute, SSAValue

from braid.dialects.braid.base import shape_of
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.indexing import GatherNdOp
from braid.dialects.braid.movement import ConcatOp, PadOp, SliceOp
from braid.passes.tosa.node import TosaNode, converter


@converter("const")
def constant(t: TosaNode) -> SSAValue:
    """Constants stay in the IR."""
    values = t.op.field("values") or t.op.field("value")
    if not isinstance(values, DenseIntOrFPElementsAttr):
        t.unsupported("its values are not written in the module")
    return t.emit(ConstantOp.on(value=cast(Attribute, values)))


@converter("reshape")
def reshape(t: TosaNode) -> SSAValue:
    """The shape is that of the result's type."""
    return t.reshape(t.value(0), t.result_type.get_shape())


@converter("transpose")
def transpose(t: TosaNode) -> SSAValue:
    """Dim i of the result is dim `perms[i]`."""
    return t.transpose(t.value(0), t.integers("perms"))


@converter("concat")
def concat(t: TosaNode) -> SSAValue:
    """The operands one after the other."""
    return t.emit(ConcatOp.get(list(t.op.operands), t.number("axis")))


@converter("slice")
def slice_(t: TosaNode) -> SSAValue:
    """`size` elements from `start` on."""
    starts = t.known_integers(1)
    return t.emit(SliceOp.get(t.value(0), starts, t.result_type.get_shape()))


@converter("reverse")
def reverse(t: TosaNode) -> SSAValue:
    """The elements of one dim, the last one first."""
    x, axis = t.value(0), t.number("axis")
    shape = shape_of(x)
    offsets, strides = [0] * len(shape), [1] * len(shape)
    offsets[axis], strides[axis] = shape[axis] - 1, -1
    return t.emit(SliceOp.get(x, offsets, shape, strides))


@converter("pad")
def pad(t: TosaNode) -> SSAValue:
    """Pads are pairs, one for each dim; the value is a constant."""
    pads = t.known_integers(1)
    value = t.known(2).reshape(-1)[0].item()
    return t.emit(PadOp.get(t.value(0), pads[::2], pads[1::2], value))


@converter("tile")
def tile(t: TosaNode) -> SSAValue:
    """Every dim gets a new one in front, along which it is repeated."""
    x = t.value(0)
    shape = shape_of(x)
    spread = [extent for n in shape for extent in (1, n)]
    target = list(spread)
    target[::2] = [total // n for total, n in zip(t.result_type.get_shape(), shape, strict=True)]
    return t.reshape(t.broadcast(t.reshape(x, spread), target), t.result_type.get_shape())


@converter("gather")
def gather(t: TosaNode) -> SSAValue:
    """`values[n, indices[n, w], c]` at `[n, w, c]`."""
    indices = t.value(1)
    tuples = t.reshape(indices, [*shape_of(indices), 1])
    return t.emit(GatherNdOp.get(t.value(0), tuples, batch_dims=1))
