"""Ops of TOSA that move elements, and constants."""

from xdsl.ir import SSAValue

from braid.dialects.braid.base import shape_of
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.indexing import GatherNdOp
from braid.dialects.braid.movement import ConcatOp, PadOp, SliceOp
from braid.passes.tosa.node import TosaNode, converter


@converter("const")
def constant(t: TosaNode) -> SSAValue:
    """Constants stay in the IR."""
    return t.emit(ConstantOp.on(value=t.elements("values")))


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
    return t.emit(ConcatOp.get(list(t.op.operands), t.integer("axis")))


@converter("slice")
def slice_(t: TosaNode) -> SSAValue:
    """`size` elements from `start` on."""
    return t.emit(SliceOp.get(t.value(0), t.known_integers(1), t.known_integers(2)))


@converter("reverse")
def reverse(t: TosaNode) -> SSAValue:
    """The elements of one dim, the last one first."""
    return t.reverse(t.value(0), [t.integer("axis")])


@converter("pad")
def pad(t: TosaNode) -> SSAValue:
    """Pads are pairs, one for each dim; the value is a constant."""
    pads = t.known_integers(1)
    return t.emit(PadOp.get(t.value(0), pads[::2], pads[1::2], t.known_number(2)))


@converter("tile")
def tile(t: TosaNode) -> SSAValue:
    """Every dim gets a new one in front, along which it is repeated."""
    x = t.value(0)
    shape = shape_of(x)
    spread = [extent for n in shape for extent in (1, n)]
    target = list(spread)
    target[::2] = t.known_integers(1)
    return t.reshape(t.broadcast(t.reshape(x, spread), target), t.result_type.get_shape())


@converter("gather")
def gather(t: TosaNode) -> SSAValue:
    """`values[n, indices[n, w], c]` at `[n, w, c]`."""
    indices = t.value(1)
    tuples = t.reshape(indices, [*shape_of(indices), 1])
    return t.emit(GatherNdOp.get(t.value(0), tuples, batch_dims=1))
