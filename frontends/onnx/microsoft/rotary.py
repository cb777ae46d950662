"""`RotaryEmbedding`, and the rotation that `GroupQueryAttention` does too. Su et al., 2021."""

from xdsl.ir import SSAValue

from braid.dialects.braid.base import element_type_of, extents_of, fits, tensor_type
from braid.dialects.braid.constants import IotaOp
from braid.dialects.braid.dtypes import i64
from braid.frontends.onnx.building.builder import Builder
from braid.frontends.onnx.building.expressions import (
    apply,
    broadcast,
    cast,
    concat,
    reshape,
    slice_dim,
    widened,
    with_extents,
)
from braid.frontends.onnx.building.node import Node
from braid.frontends.onnx.building.opsets import MICROSOFT
from braid.frontends.onnx.building.registry import importer
from braid.frontends.onnx.microsoft.attention import join_heads, split_heads, width
from braid.frontends.onnx.microsoft.attributes import flag
from braid.support.sizes.expression import Extent


@importer("RotaryEmbedding", domain=MICROSOFT)
def rotary_embedding(b: Builder, node: Node) -> SSAValue:
    """Import pairs of columns of each head, rotated by angles that grow with the position."""
    if node.number("scale", 1.0) != 1:
        node.unsupported("attribute 'scale' is not 1")
    if node.integer("is_packed_batching", 0):
        node.unsupported("attribute 'is_packed_batching' is not 0")
    x, columns = node.input(0), require_caches(node, 2, 3)
    rank = len(extents_of(x))
    if rank not in (3, 4):
        node.fail(f"input 0 has shape {list(extents_of(x))}, expected 3 or 4 dims")
    heads, dim = node.integer("num_heads", 0), node.integer("rotary_embedding_dim", 0)
    if dim and not heads:
        node.fail("attribute 'rotary_embedding_dim' needs 'num_heads'")
    if dim and dim != 2 * columns:
        node.fail(f"attribute 'rotary_embedding_dim' is {dim}, but input 2 is for {2 * columns}")
    # Without the dim, all of a head is turned, and so the caches tell its size.
    total = width(node, "input 0", x)
    count = heads if dim else total // max(1, 2 * columns)
    value = x if rank == 4 else split_heads(b, node, x, max(1, count))
    size = width(node, "a head", value)
    if size < 2 * columns or (not dim and size != 2 * columns):
        node.fail(f"a head has {size} columns, but input 2 is for {2 * columns}")
    batch, _, length, _ = extents_of(value)
    places = _positions(b, node, batch, length)
    turned = rotated(b, node, value, places, 2, flag(node, "interleaved"))
    return turned if rank == 4 else join_heads(b, turned)


def require_caches(node: Node, cos: int, sin: int) -> int:
    """Return the columns of inputs `cos` and `sin`. Raises BraidError where shapes differ."""
    shapes = [extents_of(node.input(index)) for index in (cos, sin)]
    if len(shapes[0]) != 2 or not fits(*shapes):
        node.fail(
            f"inputs {cos} and {sin} have shapes {list(shapes[0])} and {list(shapes[1])}, expected "
            "[positions, columns / 2] of both"
        )
    return width(node, f"input {cos}", node.input(cos))


def _positions(b: Builder, node: Node, batch: Extent, length: Extent) -> SSAValue:
    """Return the positions, `[batch, length]`; input 1 may have only the first one for all."""
    ids = node.input(1)
    if len(extents_of(ids)) == 2:
        if not fits(extents_of(ids), [batch, length]):
            node.fail(
                f"input 1 has shape {list(extents_of(ids))}, expected [1] or [{batch}, {length}]"
            )
        return with_extents(b, ids, [batch, length])
    node.require_scalar(1)
    steps = b.emit(IotaOp.of(1, tensor_type(i64, [1, length])))
    first = cast(b, reshape(b, ids, [1, 1]), i64)
    return broadcast(b, apply(b, "add", steps, first), [batch, length])


def rotated(
    b: Builder, node: Node, x: SSAValue, places: SSAValue, cos: int, interleaved: bool
) -> SSAValue:
    """Rotate `[batch, heads, length, size]` by the angles of positions `[batch, length]`.

    Inputs `cos` and `cos + 1` have the cosines and sines of each position. If there are more
    columns, the last ones do not change.
    """
    batch, heads, length, size = extents_of(x)
    half = width(node, f"input {cos}", node.input(cos))
    tables = [
        reshape(b, node.call("Gather", node.input(i), places, axis=0), [batch, 1, length, half])
        for i in (cos, cos + 1)
    ]
    cosine, sine = (widened(b, table) for table in tables)
    head, kind = widened(b, slice_dim(b, x, 3, 0, 2 * half)), element_type_of(x)
    if interleaved:
        pairs = reshape(b, head, [batch, heads, length, half, 2])
        real, imaginary = (
            reshape(b, slice_dim(b, pairs, 4, part, 1), [batch, heads, length, half])
            for part in (0, 1)
        )
    else:
        real, imaginary = (slice_dim(b, head, 3, start, half) for start in (0, half))
    parts = [
        apply(b, "sub", apply(b, "mul", real, cosine), apply(b, "mul", imaginary, sine)),
        apply(b, "add", apply(b, "mul", real, sine), apply(b, "mul", imaginary, cosine)),
    ]
    if interleaved:
        columns = [reshape(b, part, [batch, heads, length, half, 1]) for part in parts]
        turned = reshape(b, concat(b, columns, 4), [batch, heads, length, 2 * half])
    else:
        turned = concat(b, parts, 3)
    turned = cast(b, turned, kind)
    assert isinstance(size, int)
    if size == 2 * half:
        return turned
    return concat(b, [turned, slice_dim(b, x, 3, 2 * half, size - 2 * half)], 3)
