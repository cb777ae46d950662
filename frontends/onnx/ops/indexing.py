"""Ops that read or write at positions: gather, scatter, one-hot, top-k, triangles."""

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import i8
from xdsl.ir import SSAValue

from braid.dialects.braid.base import element_type_of, extents_of, tensor_type
from braid.dialects.braid.constants import IotaOp
from braid.dialects.braid.dtypes import from_numpy, i1, i64, to_numpy
from braid.dialects.braid.indexing import GatherElementsOp, GatherNdOp, GatherOp
from braid.dialects.braid.scattering import ScatterElementsOp, ScatterNdOp
from braid.dialects.braid.size_evaluation import fixed
from braid.dialects.braid.size_limits import MOST_NUMBERS
from braid.dialects.braid.sized_ops import slice_of, top_k_of
from braid.frontends.onnx.building.builder import Builder
from braid.frontends.onnx.building.expressions import (
    apply,
    cast,
    normalized,
    reshape,
    scalar,
    size_scalar,
)
from braid.frontends.onnx.building.node import Node
from braid.frontends.onnx.building.registry import importer
from braid.support.sizes.expression import Extent

_REDUCTIONS = {"none": "none", "add": "add", "mul": "mul", "max": "maximum", "min": "minimum"}


@importer("Gather")
def gather(b: Builder, node: Node) -> SSAValue:
    """Import `Gather`; a single known index is a slice."""
    data, indices = node.input(0), node.input(1)
    shape = extents_of(data)
    dim = normalized(node.integer("axis", 0), len(shape))
    known = b.known(indices)
    if known is None or known.size != 1:
        return b.emit(GatherOp.get(data, indices, dim))
    sizes = list(shape)
    offsets: list[Extent] = [0] * len(shape)
    offsets[dim], sizes[dim] = _place(int(known.item()), shape[dim]), 1
    result = [*shape[:dim], *known.shape, *shape[dim + 1 :]]
    return reshape(b, b.emit(slice_of(data, offsets, sizes)), result)


def _place(index: int, extent: Extent) -> Extent:
    """Return the position of an index, which counts from the end if it is negative."""
    if isinstance(extent, int):
        return normalized(index, extent)
    return index + extent if index < 0 else index


@importer("GatherElements")
def gather_elements(b: Builder, node: Node) -> SSAValue:
    """Import `GatherElements`: one element per index."""
    data = node.input(0)
    dim = normalized(node.integer("axis", 0), len(extents_of(data)))
    return b.emit(GatherElementsOp.get(data, node.input(1), dim))


def _require_known_tuples(node: Node) -> None:
    """Raise UnsupportedError where the rank of the result depends on an open size."""
    if shape := extents_of(node.input(1)):
        fixed(shape[-1], "the length of index tuples")


@importer("GatherND")
def gather_nd(b: Builder, node: Node) -> SSAValue:
    """Import `GatherND`: one slice per index tuple."""
    _require_known_tuples(node)
    return b.emit(GatherNdOp.get(node.input(0), node.input(1), node.integer("batch_dims", 0)))


@importer("Scatter", "ScatterElements")
def scatter_elements(b: Builder, node: Node) -> SSAValue:
    """Import `ScatterElements`: one element per index."""
    data = node.input(0)
    dim = normalized(node.integer("axis", 0), len(extents_of(data)))
    reduction = _REDUCTIONS[node.text("reduction", "none")]
    return b.emit(ScatterElementsOp.get(data, node.input(1), node.input(2), dim, reduction))


@importer("ScatterND")
def scatter_nd(b: Builder, node: Node) -> SSAValue:
    """Import `ScatterND`: one slice per index tuple."""
    _require_known_tuples(node)
    reduction = _REDUCTIONS[node.text("reduction", "none")]
    return b.emit(ScatterNdOp.get(node.input(0), node.input(1), node.input(2), reduction))


@importer("TensorScatter")
def tensor_scatter(b: Builder, node: Node) -> SSAValue:
    """Import a cache with the updates of each batch entry, written along `axis` from its index."""
    cache, updates, starts = node.input(0), node.input(1), node.optional(2)
    shape = extents_of(updates)
    dim = normalized(node.integer("axis", -2), len(shape))
    positions = b.emit(IotaOp.of(dim, tensor_type(i64, shape)))
    if starts is not None:
        column = reshape(b, cast(b, starts, i64), [shape[0], *[1] * (len(shape) - 1)])
        positions = apply(b, "add", positions, column)
    if node.text("mode", "linear") == "circular":
        positions = apply(b, "rem", positions, size_scalar(b, extents_of(cache)[dim], positions))
    return b.emit(ScatterElementsOp.get(cache, positions, updates, dim))


@importer("OneHot")
def one_hot(b: Builder, node: Node) -> SSAValue:
    """Import the second of `values` where the new dim's index is the one given, else the first."""
    indices, depth, values = node.input(0), node.known_size(1), node.input(2)
    if depth is None:
        node.fail("input 1 (depth) is missing")
    count, shape = depth, list(extents_of(indices))
    dim = normalized(node.integer("axis", -1), len(shape) + 1)
    wanted = cast(b, indices, i64)
    negative = apply(b, "lt", wanted, scalar(b, 0, wanted))
    from_end = apply(b, "add", wanted, size_scalar(b, count, wanted))
    wanted = reshape(b, apply(b, "select", negative, from_end, wanted), _with(shape, dim, 1))
    line = _with([1] * len(shape), dim, count)
    positions = b.emit(IotaOp.of(dim, tensor_type(i64, line)))
    off, on = (
        reshape(b, b.emit(slice_of(values, [i], [1])), [1] * (len(shape) + 1)) for i in (0, 1)
    )
    return apply(b, "select", apply(b, "eq", positions, wanted), on, off)


@importer("TopK")
def top_k(b: Builder, node: Node) -> Sequence[SSAValue]:
    """Import TopK; the count is an attribute before opset 10 and an input since.

    Bools, as PyTorch's sort has them, are sorted as bytes: one bit would be a sign.
    """
    x, given = node.input(0), node.known_size(1) if node.opset >= 10 else None
    count = node.integer("k") if given is None else given
    dim = normalized(node.integer("axis", -1), len(extents_of(x)))
    is_bool = element_type_of(x) == i1
    numbers = cast(b, x, i8) if is_bool else x
    values, indices = b.emit_all(
        top_k_of(numbers, count, dim, largest=bool(node.integer("largest", 1)))
    )
    return (cast(b, values, i1) if is_bool else values, indices)


@importer("Trilu")
def triangle(b: Builder, node: Node) -> SSAValue:
    """Import the upper or lower triangle from diagonal k on, 0 elsewhere."""
    x, given, known = node.input(0), node.optional(1), node.value_if_known(1)
    rows, columns = extents_of(x)[-2:]
    is_upper = bool(node.integer("upper", 1))
    node.require_scalar(1)
    offset = 0 if known is None else int(known.item())
    is_known = given is None or known is not None
    shape = [n for n in (rows, columns) if isinstance(n, int)]
    if is_known and len(shape) == 2 and shape[0] * shape[1] <= MOST_NUMBERS:
        rows, columns = shape
        grid = np.arange(columns)[None, :] - np.arange(rows)[:, None]
        kept = b.constant(grid >= offset if is_upper else grid <= offset)
    else:
        grid = _diagonals(b, rows, columns)
        diagonal = scalar(b, offset, grid)
        if given is not None and not is_known:
            diagonal = reshape(b, cast(b, given, i64), [1, 1])
        kept = apply(b, "ge" if is_upper else "le", grid, diagonal)
    return apply(b, "select", kept, x, scalar(b, 0, x))


def _diagonals(b: Builder, rows: Extent, columns: Extent) -> SSAValue:
    """Return the diagonal of each element, computed at run time for large matrices."""
    kind = tensor_type(i64, [rows, columns])
    row, column = (b.emit(IotaOp.of(dim, kind)) for dim in range(2))
    return apply(b, "sub", column, row)


@importer("EyeLike")
def eye_like(b: Builder, node: Node) -> SSAValue:
    """Import 1 on diagonal k, 0 elsewhere, in the shape of the input."""
    x = node.input(0)
    rows, columns = extents_of(x)
    dtype = node.dtype("dtype") if node.has("dtype") else to_numpy(element_type_of(x))
    offset = node.integer("k", 0)
    if isinstance(rows, int) and isinstance(columns, int) and rows * columns <= MOST_NUMBERS:
        return b.constant(np.eye(rows, columns, offset).astype(dtype))
    grid = _diagonals(b, rows, columns)
    return cast(b, apply(b, "eq", grid, scalar(b, offset, grid)), from_numpy(dtype))


@importer("ReverseSequence")
def reverse_sequence(b: Builder, node: Node) -> SSAValue:
    """Reverse the first elements of every batch entry, as many as its length."""
    x, lengths = node.input(0), node.input(1)
    time, batch = node.integer("time_axis", 0), node.integer("batch_axis", 1)
    shape = extents_of(x)
    positions = b.emit(IotaOp.of(time, tensor_type(i64, shape)))
    column: list[Extent] = [1] * len(shape)
    column[batch] = shape[batch]
    length = reshape(b, lengths, column)
    mirrored = apply(b, "sub", apply(b, "sub", length, scalar(b, 1, length)), positions)
    inside = apply(b, "lt", positions, length)
    return b.emit(GatherElementsOp.get(x, apply(b, "select", inside, mirrored, positions), time))


def _with(shape: Sequence[Extent], dim: int, extent: Extent) -> list[Extent]:
    return [*shape[:dim], extent, *shape[dim:]]
