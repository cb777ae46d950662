"""Weights of few bits in blocks that share a scale: `MatMulNBits`, `GatherBlockQuantized`."""

from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import i8, i32
from xdsl.ir import SSAValue

from braid.dialects.braid.base import element_type_of, extents_of, fits
from braid.dialects.braid.dtypes import f32, from_numpy, i64, is_float
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.indexing import GatherOp
from braid.dialects.braid.narrow_numbers import decoded
from braid.dialects.braid.size_evaluation import fixed_shape
from braid.frontends.onnx.building.builder import Builder
from braid.frontends.onnx.building.expressions import (
    apply,
    cast,
    concat,
    matmul,
    pad,
    reduce,
    reshape,
    scalar,
    slice_dim,
    swap_last,
    transpose,
)
from braid.frontends.onnx.building.node import Node
from braid.frontends.onnx.building.opsets import MICROSOFT
from braid.frontends.onnx.building.registry import importer
from braid.frontends.onnx.microsoft.attributes import axis
from braid.support.sizes.operators import product_of

_BYTE = from_numpy(np.uint8)
_LEAST_BLOCK = 16


@importer("MatMulNBits", domain=MICROSOFT)
def matmul_of_few_bits(b: Builder, node: Node) -> SSAValue:
    """Import A times the transpose of weights of few bits, plus a bias.

    Weights are `[N, blocks, bytes of a block]`, with scales and zero points for each block. A is
    not quantized, whatever `accuracy_level` allows.
    """
    x, bits = node.input(0), _bits(node)
    rows, inner, size = (node.integer(name) for name in ("N", "K", "block_size"))
    node.has("accuracy_level")
    if node.integer("weight_prepacked", 0):
        node.unsupported("attribute 'weight_prepacked' is not 0")
    if node.optional(4) is not None:
        node.unsupported("input 4 ('g_idx') is given")
    if min(rows, inner) < 1:
        node.fail(f"attributes 'N' and 'K' are {rows} and {inner}, expected at least 1")
    _require_block(node, size)
    shape = extents_of(x)
    if not shape or not fits(shape[-1:], [inner]):
        node.fail(f"input 0 has shape {list(shape)}, expected {inner} columns")
    blocks = -(-inner // size)
    weights = _weights(b, node, rows, blocks, size * bits // 8)
    codes = _unpacked(b, weights, bits, size)
    scales = _per_block(b, node, 2, rows, blocks)
    zeros = _zero_points(b, node, rows, blocks)
    if _has_few_rows(x) and bits < 8 and not is_float(element_type_of(zeros)):
        product = _product_by_blocks(b, x, codes, scales, zeros)
    else:
        real = _real(b, codes, scales, zeros)
        matrix = slice_dim(b, reshape(b, real, [rows, blocks * size]), 1, 0, inner)
        product = matmul(b, x, swap_last(b, cast(b, matrix, element_type_of(x))))
    if (bias := node.optional(5)) is None:
        return product
    if not fits(extents_of(bias), [rows]):
        node.fail(f"input 5 has shape {list(extents_of(bias))}, expected [{rows}]")
    return apply(b, "add", product, bias)


_MOST_ROWS = 8
"""Rows of A for which blocks are multiplied each: their sums are as many as the blocks."""


def _has_few_rows(x: SSAValue) -> bool:
    """Return whether so few rows are multiplied that reading the weights takes the time."""
    count = product_of(extents_of(x)[:-1])
    return isinstance(count, int) and count <= _MOST_ROWS


def _product_by_blocks(
    b: Builder, x: SSAValue, codes: SSAValue, scales: SSAValue, zeros: SSAValue
) -> SSAValue:
    """Return x · weights of bytes, scaled for each block after its sum.

    So the weights stay bytes, a quarter of f32. Codes are `[rows, blocks, size]`, scales and zero
    points `[rows, blocks, 1]` or fewer.
    """
    rows, blocks, size = fixed_shape(codes)
    outer, kind = extents_of(x)[:-1], element_type_of(x)
    count, inner = product_of(outer), fixed_shape(x)[-1]
    wide = cast(b, reshape(b, x, [count, inner]), f32)
    wide = pad(b, wide, [0, 0], [0, blocks * size - inner], 0)
    by_block = transpose(b, reshape(b, wide, [count, blocks, size]), [1, 0, 2])
    centered = apply(b, "sub", cast(b, codes, i32), cast(b, zeros, i32))
    weights = transpose(b, cast(b, centered, i8), [1, 2, 0])
    sums = matmul(b, by_block, b.insert_one(elementwise("cast", weights, element_type=f32)))
    factors = transpose(b, cast(b, scales, f32), [1, 2, 0])
    total = reduce(b, "add", apply(b, "mul", sums, factors), [0])
    return cast(b, reshape(b, total, [*outer, rows]), kind)


def _bits(node: Node) -> int:
    bits = node.integer("bits", 4)
    if bits not in (2, 4, 8):
        node.unsupported(f"attribute 'bits' is {bits}, expected 2, 4 or 8")
    return bits


def _require_block(node: Node, size: int) -> None:
    if size < _LEAST_BLOCK or size & (size - 1):
        node.fail(
            f"attribute 'block_size' is {size}, expected a power of 2 of at least {_LEAST_BLOCK}"
        )


def _weights(b: Builder, node: Node, rows: int, blocks: int, count: int) -> SSAValue:
    """Return input 1 as `[rows, blocks, bytes of a block]`."""
    value = node.input(1)
    if not fits(extents_of(value), [rows, blocks, count]):
        node.fail(
            f"input 1 has shape {list(extents_of(value))}, expected [{rows}, {blocks}, {count}]"
        )
    return value


def _per_block(b: Builder, node: Node, index: int, rows: int, blocks: int) -> SSAValue:
    """Return input `index`, which has one number for each block, as `[rows, blocks, 1]`."""
    value = node.input(index)
    if not (fits(extents_of(value), [rows, blocks]) or fits(extents_of(value), [rows * blocks])):
        node.fail(f"input {index} has shape {list(extents_of(value))}, expected [{rows}, {blocks}]")
    return reshape(b, value, [rows, blocks, 1])


def _zero_points(b: Builder, node: Node, rows: int, blocks: int) -> SSAValue:
    """Return the zero points `[rows, blocks, 1]`, by default the middle.

    They are packed if they are bytes.
    """
    value, bits = node.optional(3), _bits(node)
    if value is None:
        return b.constant(np.full((1, 1, 1), 2 ** (bits - 1), np.uint8))
    if element_type_of(value) != _BYTE:
        return _per_block(b, node, 3, rows, blocks)
    count = -(-blocks * bits // 8)
    if not (fits(extents_of(value), [rows, count]) or fits(extents_of(value), [rows * count])):
        node.fail(f"input 3 has shape {list(extents_of(value))}, expected [{rows}, {count}]")
    codes = _unpacked(b, reshape(b, value, [rows, count]), bits, count * 8 // bits)
    return reshape(b, slice_dim(b, codes, 1, 0, blocks), [rows, blocks, 1])


def _unpacked(b: Builder, value: SSAValue, bits: int, count: int) -> SSAValue:
    """Return the numbers in bytes, the low ones first: the last dim becomes `count`."""
    outer = extents_of(value)[:-1]
    if bits == 8:
        return value
    parts: list[SSAValue] = []
    for start in range(0, 8, bits):
        part = apply(b, "shift_right", value, scalar(b, start, value)) if start else value
        part = apply(b, "and", part, scalar(b, 2**bits - 1, part)) if start + bits < 8 else part
        parts.append(reshape(b, part, [*extents_of(value), 1]))
    return reshape(b, concat(b, parts, len(outer) + 1), [*outer, count])


def _real(b: Builder, codes: SSAValue, scales: SSAValue, zeros: SSAValue | None) -> SSAValue:
    """Return (codes - zeros) · scales, in f32."""
    value = cast(b, codes, f32)
    if zeros is not None:
        value = apply(b, "sub", value, cast(b, zeros, f32))
    return apply(b, "mul", value, cast(b, scales, f32))


@importer("GatherBlockQuantized", domain=MICROSOFT)
def gather_of_few_bits(b: Builder, node: Node) -> SSAValue:
    """Gather from weights of few bits, of which only the gathered elements become real numbers.

    Blocks are along `quantize_axis`. Bytes hold several numbers along the last dim. An index out of
    bounds gathers 0.
    """
    blocks = _blocks(node)
    rows, is_there = _rows(b, node, blocks)
    codes = b.emit(GatherOp.get(node.input(0), rows, blocks.axis))
    zeros = node.optional(3)
    if blocks.per_byte > 1:
        codes = _unpacked(b, codes, 8 // blocks.per_byte, blocks.shape[-1])
        if zeros is not None:
            count = fixed_shape(zeros)[-1] * blocks.per_byte
            zeros = _unpacked(b, zeros, 8 // blocks.per_byte, count)
            zeros = slice_dim(b, zeros, len(blocks.shape) - 1, 0, blocks.scales[-1])
    if zeros is not None:
        zeros = _of_elements(b, decoded(b, zeros), rows, blocks)
    elif element_type_of(codes) == _BYTE:
        zeros = b.constant(np.full([1] * len(extents_of(codes)), 2 ** (_bits(node) - 1), np.uint8))
    scales = _of_elements(b, node.input(2), rows, blocks)
    real = _real(b, decoded(b, codes), scales, zeros)
    behind = [1] * (len(blocks.shape) - 1 - blocks.axis)
    where = reshape(b, is_there, [*[1] * blocks.axis, *extents_of(rows), *behind])
    real = apply(b, "select", where, real, scalar(b, 0, real))
    return cast(b, real, element_type_of(node.input(2)))


@dataclass(frozen=True)
class _Blocks:
    """Blocks of `size` elements along dim `along` of a tensor that is gathered along `axis`.

    `shape` and `scales` are the shapes of the tensor, as it is without packing, and of its scales.
    """

    axis: int
    along: int
    size: int
    per_byte: int
    shape: tuple[int, ...]
    scales: tuple[int, ...]


def _blocks(node: Node) -> _Blocks:
    """Return the blocks of a node. Raises BraidError where scales or zero points do not fit."""
    data, bits = node.input(0), _bits(node)
    is_real, is_packed = is_float(element_type_of(data)), element_type_of(data) == _BYTE
    shape = list(fixed_shape(data))
    gathered = axis(node, "gather_axis", 0, len(shape))
    along = axis(node, "quantize_axis", 1, len(shape))
    size = node.integer("block_size", 128)
    if is_packed and (gathered, along) != (0, len(shape) - 1):
        node.unsupported(
            f"attributes 'gather_axis' and 'quantize_axis' are {gathered} and {along}, but "
            f"of bytes they must be 0 and {len(shape) - 1}"
        )
    if not is_packed and not is_real and bits != 4:
        node.fail(f"attribute 'bits' is {bits}, but the data has 4")
    per_byte = 8 // bits if is_packed else 1
    shape[-1] *= per_byte
    if is_real and not size:
        size = max(1, shape[along])
    else:
        _require_block(node, size)
    expected = [-(-n // size) if dim == along else n for dim, n in enumerate(shape)]
    scales = fixed_shape(node.input(2))
    pairs = zip(scales, expected, strict=False)
    fitting = [n == m or (is_real and n == 1 and d != along) for d, (n, m) in enumerate(pairs)]
    if len(scales) != len(shape) or not all(fitting):
        node.fail(f"input 2 ('scales') has shape {list(scales)}, expected {expected}")
    if (zeros := node.optional(3)) is not None:
        if is_real:
            node.fail("input 3 ('zero_points') is given, but the data is of floats")
        expected[-1] = -(-expected[-1] // per_byte)
        if not fits(extents_of(zeros), expected):
            node.fail(
                f"input 3 ('zero_points') has shape {list(extents_of(zeros))}, expected {expected}"
            )
    return _Blocks(gathered, along, size, per_byte, tuple(shape), tuple(scales))


def _rows(b: Builder, node: Node, blocks: _Blocks) -> tuple[SSAValue, SSAValue]:
    """Return the indices, 0 for those outside, and which are inside.

    Negative indices count from the end.
    """
    given = cast(b, node.input(1), i64)
    zero, extent = scalar(b, 0, given), scalar(b, fixed_shape(node.input(0))[blocks.axis], given)
    is_negative = apply(b, "lt", given, zero)
    rows = apply(b, "select", is_negative, apply(b, "add", given, extent), given)
    is_there = apply(b, "and", apply(b, "ge", rows, zero), apply(b, "lt", rows, extent))
    return apply(b, "select", is_there, rows, zero), is_there


def _of_elements(b: Builder, value: SSAValue, rows: SSAValue, blocks: _Blocks) -> SSAValue:
    """Return a number for each gathered element; `value` has one for each block."""
    axis, along, count = blocks.axis, blocks.along, len(extents_of(rows))
    if axis == along:
        return b.emit(
            GatherOp.get(value, apply(b, "div", rows, scalar(b, blocks.size, rows)), axis)
        )
    shape = fixed_shape(value)
    if shape[axis] == 1:
        value = reshape(b, value, [*shape[:axis], *[1] * count, *shape[axis + 1 :]])
    else:
        value = b.emit(GatherOp.get(value, rows, axis))
    if shape[along] == 1:
        return value
    place = along + count - 1 if along > axis else along
    of_block = b.constant(np.arange(blocks.shape[along]) // blocks.size)
    return b.emit(GatherOp.get(value, of_block, place))
