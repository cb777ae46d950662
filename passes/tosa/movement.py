"""Ops of TOSA that move elements, and constants."""

from xdsl.ir import SSAValue

from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.indexing import GatherNdOp
from braid.dialects.braid.movement import ConcatOp, PadOp
from braid.dialects.braid.sized_ops import slice_of
from braid.passes.tosa.node import TosaNode, converter


@converter("const")
def constant(t: TosaNode) -> SSAValue:
    """Keep constants in the IR."""
    return t.emit(ConstantOp.on(value=t.elements("values")))


@converter("reshape")
def reshape(t: TosaNode) -> SSAValue:
    """Convert a reshape, whose shape is that of the result's type; one of its dims may be open."""
    return t.reshape_as_declared(t.value(0))


@converter("transpose")
def transpose(t: TosaNode) -> SSAValue:
    """Transpose: dim i of the result is dim `perms[i]`."""
    return t.transpose(t.value(0), t.integers("perms"))


@converter("concat")
def concat(t: TosaNode) -> SSAValue:
    """Return the operands one after the other."""
    return t.emit(ConcatOp.get(list(t.op.operands), t.integer("axis")))


@converter("slice")
def slice_(t: TosaNode) -> SSAValue:
    """Return `size` elements from `start` on."""
    starts, sizes = t.known_integers(1), t.known_integers(2)
    extents = zip(starts, sizes, t.extents(t.value(0)), strict=True)
    # -1 is the rest of a dim.
    counts = [n - start if size == -1 else size for start, size, n in extents]
    return t.emit(slice_of(t.value(0), starts, counts))


@converter("reverse")
def reverse(t: TosaNode) -> SSAValue:
    """Return the elements of one dim, the last one first."""
    return t.reverse(t.value(0), [t.integer("axis")])


@converter("pad")
def pad(t: TosaNode) -> SSAValue:
    """Convert a padding, whose pads are pairs, one for each dim, and whose value is a constant."""
    pads = t.known_integers(1)
    return t.emit(PadOp.get(t.value(0), pads[::2], pads[1::2], t.known_number(2)))


@converter("tile")
def tile(t: TosaNode) -> SSAValue:
    """Repeat every dim along a new one before it."""
    x = t.value(0)
    shape, counts = t.extents(x), t.known_integers(1)
    spread = [extent for n in shape for extent in (1, n)]
    target = [extent for pair in zip(counts, shape, strict=True) for extent in pair]
    repeated = t.broadcast(t.reshape(x, spread), target)
    return t.reshape(repeated, [count * n for count, n in zip(counts, shape, strict=True)])


@converter("gather")
def gather(t: TosaNode) -> SSAValue:
    """Return `values[n, indices[n, w], c]` at `[n, w, c]`."""
    indices = t.value(1)
    tuples = t.reshape(indices, [*t.extents(indices), 1])
    return t.emit(GatherNdOp.get(t.value(0), tuples, batch_dims=1))
