"""Ops that move elements: reshape, transpose, slice, pad, concatenate, split, repeat."""

from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from braid.dialects.braid.base import extents_of
from braid.dialects.braid.size_evaluation import SIZES, as_array, fixed
from braid.dialects.braid.size_facts import may_equal, total
from braid.frontends.onnx.building.builder import Builder
from braid.frontends.onnx.building.decisions import Element, decided, elements_of, may_decide
from braid.frontends.onnx.building.expressions import (
    apply,
    broadcast,
    cast,
    concat,
    drop_dims,
    normalized,
    reduce,
    reshape,
    scalar,
    size_scalar,
    slice_dim,
    transpose,
    with_extents,
)
from braid.frontends.onnx.building.node import Node
from braid.frontends.onnx.building.registry import importer
from braid.frontends.onnx.ops.slicing import clipped
from braid.support.sizes.assumptions import Answer
from braid.support.sizes.expression import Extent
from braid.support.sizes.operators import ceildiv, is_equal, product_of, select


@importer("Reshape", since=5)
def reshape_node(b: Builder, node: Node) -> SSAValue:
    """Import `Reshape` to a shape known at import; 0 keeps an extent, -1 is the remaining
    extent."""
    x = node.input(0)
    shape, wanted = extents_of(x), _wanted_shape(b, node)
    if not node.integer("allowzero", 0):
        for i, extent in enumerate(wanted):
            if extent == 0:
                if i >= len(shape):
                    node.fail(f"shape {wanted} keeps dim {i}, but the input has rank {len(shape)}")
                wanted[i] = shape[i]
    if any(isinstance(extent, int) and extent < -1 for extent in wanted):
        node.fail(f"shape {wanted} has a negative extent")
    if wanted.count(-1) > 1:
        node.fail(f"shape {wanted} has more than one -1")
    if -1 in wanted:
        rest = product_of(extent for extent in wanted if extent != -1)
        elements = product_of(shape)
        if rest == 0 or SIZES.divides(rest, elements) is Answer.NO:
            node.fail(f"{elements} elements cannot take shape {wanted}")
        wanted[wanted.index(-1)] = elements // rest
    return reshape(b, x, wanted)


def _wanted_shape(b: Builder, node: Node) -> list[Extent]:
    """Return the shape that a node asks for.

    If data decide extents, 0 and -1 among them are replaced as in known shapes.
    """
    if node.has("shape"):
        return list(node.integers("shape"))
    value = node.input(1)
    if b.sizes_of(value) is not None or not may_decide(b, value):
        return list(node.known_sizes(1) or ())
    elements = elements_of(b, value)
    if not any(isinstance(element, Element) for element in elements):
        return list(node.known_sizes(1) or ())
    shape = extents_of(node.input(0))
    wanted = cast(b, reshape(b, value, [len(elements)]), i64)
    if not node.integer("allowzero", 0):
        own = b.sizes(as_array([*shape, *[0] * len(elements)][: len(elements)], [len(elements)]))
        wanted = apply(b, "select", apply(b, "eq", wanted, scalar(b, 0, wanted)), own, wanted)
    is_rest = apply(b, "eq", wanted, scalar(b, -1, wanted))
    others = apply(b, "select", is_rest, scalar(b, 1, wanted), wanted)
    product = reduce(b, "mul", others, [0])
    rest = apply(b, "div", size_scalar(b, product_of(shape), product), product)
    within = apply(b, "select", is_rest, rest, wanted)
    sizes = decided(b, within, node.proto.input[1]).reshape(-1).tolist()
    # A known extent stays known.
    return [
        size if isinstance(element, Element) or element in (0, -1) else element
        for size, element in zip(sizes, elements, strict=True)
    ]


@importer("Flatten")
def flatten(b: Builder, node: Node) -> SSAValue:
    """Import a matrix: the dims before `axis`, and those from it on."""
    x = node.input(0)
    shape = extents_of(x)
    axis, rank = node.integer("axis", 1), len(shape)
    axis = rank if axis == rank else normalized(axis, rank)  # the matrix may have one column
    return reshape(b, x, [product_of(shape[:axis]), product_of(shape[axis:])])


@importer("Squeeze")
def squeeze(b: Builder, node: Node) -> SSAValue:
    """Import the input without the dims of `axes`, or without all dims of size 1."""
    x, axes = node.input(0), node.integers_of("axes", 1)
    shape = extents_of(x)
    if axes is None:
        ones = [dim for dim, extent in enumerate(shape) if may_equal(extent, 1)]
        axes = [dim for dim in ones if fixed(shape[dim], f"dim {dim}") == 1]
    dims = [normalized(axis, len(shape)) for axis in axes]
    for dim in dims:
        if not may_equal(shape[dim], 1):
            node.fail(f"dim {dim} of shape {list(shape)} is not 1")
    return drop_dims(b, x, dims)


@importer("Unsqueeze")
def unsqueeze(b: Builder, node: Node) -> SSAValue:
    """Import new dims of size 1, at `axes` of the result."""
    x, axes = node.input(0), node.integers_of("axes", 1) or ()
    rank = len(extents_of(x)) + len(axes)
    dims = {normalized(axis, rank) for axis in axes}
    if len(dims) != len(axes) or not dims <= set(range(rank)):
        node.fail(f"axes are {list(axes)}, expected different ones from {-rank} to {rank - 1}")
    rest = iter(extents_of(x))
    return reshape(b, x, [1 if dim in dims else next(rest) for dim in range(rank)])


@importer("Transpose")
def transpose_node(b: Builder, node: Node) -> SSAValue:
    """Import a transpose, which reverses the dims by default."""
    x = node.input(0)
    return transpose(b, x, node.integers("perm", range(len(extents_of(x)))[::-1]))


@importer("Expand")
def expand(b: Builder, node: Node) -> SSAValue:
    """Import a repetition by numpy's rules, in both directions."""
    x, wanted = node.input(0), node.known_sizes(1) or ()
    rank = max(len(extents_of(x)), len(wanted))
    shapes = [[1] * (rank - len(shape)) + list(shape) for shape in (extents_of(x), wanted)]
    return broadcast(b, x, [_expanded(node, *pair) for pair in zip(*shapes, strict=True)])


def _expanded(node: Node, own: Extent, wanted: Extent) -> Extent:
    """Return the extent to which `own` is expanded: such that other ones cannot be repeated."""
    if 1 not in (own, wanted) and not may_equal(own, wanted):
        node.fail(f"an extent of {own} cannot be expanded to {wanted}")
    return wanted if own == 1 else select(is_equal(wanted, 1), own, wanted)


@importer("Tile", since=6)
def tile(b: Builder, node: Node) -> SSAValue:
    """Import every dim repeated as a whole, by a broadcast of a new dim before it."""
    x, repeats = node.input(0), node.known_sizes(1) or ()
    shape = extents_of(x)
    pairs = list(zip(repeats, shape, strict=True))
    split = [extent for _, extent in pairs for extent in (1, extent)]
    wide = [extent for pair in pairs for extent in pair]
    repeated = broadcast(b, reshape(b, x, split), wide)
    return reshape(b, repeated, [count * extent for count, extent in pairs])


@importer("Concat")
def concatenate(b: Builder, node: Node) -> SSAValue:
    """Import a concatenation along one dim."""
    values = [node.input(i) for i in range(len(node.inputs))]
    axis = node.integer("axis", 1 if node.opset < 4 else None)
    return concat(b, values, normalized(axis, len(extents_of(values[0]))))


@importer("Split")
def split_node(b: Builder, node: Node) -> list[SSAValue]:
    """Import `Split`, whose sizes are an attribute before opset 13, an input since.

    Parts are equal without them.
    """
    x = node.input(0)
    dim = normalized(node.integer("axis", 0), len(extents_of(x)))
    extent, parts = extents_of(x)[dim], len(node.proto.output)
    sizes = node.sizes_of("split", 1)
    if sizes is None:
        if node.opset >= 18 and not node.has("num_outputs"):
            node.fail("neither sizes nor num_outputs are given")
        if node.opset < 18 and SIZES.divides(parts, extent) is Answer.NO:
            node.fail(f"{extent} elements make no {parts} equal parts")
        if node.integer("num_outputs", parts) != parts:
            node.fail(f"num_outputs is {node.integer('num_outputs')}, but it has {parts} outputs")
        size = ceildiv(extent, parts)
        is_even = SIZES.divides(parts, extent) is Answer.YES
        rests = [extent - size * i for i in range(parts)]
        sizes = [size if is_even else clipped(rest, 0, size) for rest in rests]
    if len(sizes) != parts or not may_equal(total(sizes), extent):
        node.fail(f"sizes {list(sizes)} of {parts} outputs do not add up to {extent}")
    if SIZES.equal(total(sizes), extent) is not Answer.YES:
        x = with_extents(b, x, [*extents_of(x)[:dim], total(sizes), *extents_of(x)[dim + 1 :]])
    return [slice_dim(b, x, dim, total(sizes[:i]), size) for i, size in enumerate(sizes)]


@importer("DepthToSpace")
def depth_to_space(b: Builder, node: Node) -> SSAValue:
    """Import blocks of channels as blocks of pixels.

    Channels vary slowest (`DCR`) or fastest.
    """
    x, size = node.input(0), node.integer("blocksize")
    n, c, h, w = extents_of(x)
    inner = c // size**2
    if node.text("mode", "DCR") == "DCR":
        split, order = [n, size, size, inner, h, w], [0, 3, 4, 1, 5, 2]
    else:
        split, order = [n, inner, size, size, h, w], [0, 1, 4, 2, 5, 3]
    moved = transpose(b, reshape(b, x, split), order)
    return reshape(b, moved, [n, inner, h * size, w * size])


@importer("SpaceToDepth")
def space_to_depth(b: Builder, node: Node) -> SSAValue:
    """Import blocks of pixels as blocks of channels, the inverse of `depth_to_space`."""
    x, size = node.input(0), node.integer("blocksize")
    n, c, h, w = extents_of(x)
    split = reshape(b, x, [n, c, h // size, size, w // size, size])
    is_slowest = node.text("mode", "DCR") == "DCR"
    moved = transpose(b, split, [0, 3, 5, 1, 2, 4] if is_slowest else [0, 1, 3, 5, 2, 4])
    return reshape(b, moved, [n, c * size**2, h // size, w // size])
