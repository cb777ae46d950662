"""Transposes and reshapes of streams: the order in which they send the elements of a stream."""

from functools import lru_cache

import numpy as np
from xdsl.dialects.func import ReturnOp
from xdsl.ir import Operation, SSAValue

from braid.dialects.braid.base import TensorOp, shape_of
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.movement import ReshapeOp, TransposeOp
from braid.lowering.fpga.convert.shapes import pixels_of
from braid.lowering.fpga.convert.values import Array, Integers

MOVES = (ReshapeOp, TransposeOp)


def root_of(value: SSAValue) -> SSAValue:
    """Return the value before all transposes and reshapes that lead to `value`."""
    while isinstance(value.owner, MOVES):
        value = value.owner.operands[0]
    return value


def order_of(value: SSAValue) -> Integers:
    """Return the order of the stream of `value`: for each place, the number of its element in the
    stream of its root.

    Raises UnsupportedError where one of both has no stream.
    """
    return in_rows(value)[_stream_order(shape_of(value))]


def in_rows(value: SSAValue) -> Integers:
    """Return the order of a row-major tensor, which may have any rank, as `order_of` does."""
    root = root_of(value)
    pixels_of(root)
    at: Array = np.argsort(_stream_order(shape_of(root))).reshape(shape_of(root))
    path: list[TensorOp] = []
    while value != root:
        op = value.owner
        assert isinstance(op, MOVES)
        path.append(op)
        value = op.operands[0]
    for op in reversed(path):
        (at,) = op.evaluate(at)
    return at.ravel().astype(np.int64)


@lru_cache(64)
def _stream_order(shape: tuple[int, ...]) -> Integers:
    """Return the row-major numbers of a tensor in the order of its pixels, and their channels."""
    numbers = np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape)
    return np.moveaxis(numbers, 1, -1).ravel()


def keeps_beats(value: SSAValue) -> bool:
    """Return whether the streams of `value` and of its root are equal, beat by beat."""
    order = order_of(value)
    same = pixels_of(value)[1] == pixels_of(root_of(value))[1]
    return same and np.array_equal(order, np.arange(order.size))


def source_of(value: SSAValue, reader: Operation) -> SSAValue:
    """Return the value that `reader` reads in place of `value`: its root, if nothing has to move.

    That are products with all numbers of an image, whose weights are moved, and views at the end
    of a function. Raises UnsupportedError as `order_of`.
    """
    root = root_of(value)
    if root == value or _is_view(value, reader) or _is_vector(value, reader):
        return root
    return root if keeps_beats(value) and pixels_of(value) == pixels_of(root) else value


def _is_view(value: SSAValue, reader: Operation) -> bool:
    while isinstance(value.owner, ReshapeOp):
        value = value.owner.operands[0]
    return isinstance(reader, ReturnOp) and value == root_of(value)


def _is_vector(value: SSAValue, reader: Operation) -> bool:
    shape = shape_of(value)
    is_row = len(shape) == 2 and shape[0] == 1
    return is_row and isinstance(reader, MatmulOp) and reader.operands[0] == value
