"""Orders in which bytes of weights are multiplied in pairs, whose sums fit 16 bits. No IR.

x86 multiplies unsigned bytes with signed ones and adds up two products at a time in 16 bits
(`pmaddubsw`), where sums beyond 32767 saturate. Weights whose larger values are rare can be ordered
along the reduction so that no two products of a pair do, whatever they are multiplied with: 255 ·
(w₀ + w₁) fits if the positive values of a pair add up to at most 128, and so do the negative ones.
Orders are within blocks of 16 bytes, as the machine shuffles them, and each chunk of columns has
its own.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Matrix = npt.NDArray[Any]
"""Of booleans."""

SHUFFLED = 16
"""Bytes that are shuffled at once; the last block may have fewer."""

STEP = 4
"""Bytes that are multiplied with those of a column at once: two pairs."""

_ZERO = 0x80
"""The index for which `pshufb` takes no byte."""

_MOST = 128
"""The most that the values of one sign in a pair may add up to."""


def columns_of_chunk(positions: int) -> int:
    """Return the columns that are reordered: whole blocks of one to three vectors.

    There are fewer where an order has to do for several positions of a window.
    """
    return 96 if positions == 1 else 48


def order_bytes(columns: int, positions: int, depth: int) -> int:
    """Return the bytes of the orders of all chunks, each in whole blocks."""
    chunks = -(-columns // columns_of_chunk(positions))
    return chunks * shuffle_bytes(depth)


def shuffle_bytes(depth: int) -> int:
    """Return the bytes of the order of a chunk."""
    return -(-depth // SHUFFLED) * SHUFFLED


def pair_orders(weight: Array) -> Array | None:
    """Return for every place the byte to take, per chunk of columns; None where no order fits.

    `weight` is int8[columns, positions, depth], with an even depth; bytes of a pair have the places
    2i and 2i + 1. The result is int64[chunks, depth]; bytes beyond the last whole block have no
    order.
    """
    columns, positions, depth = weight.shape
    if depth < SHUFFLED:
        return None
    size = columns_of_chunk(positions)
    orders = np.empty((-(-columns // size), depth), np.int64)
    whole = depth - depth % SHUFFLED
    for chunk, order in enumerate(orders):
        rows = weight[chunk * size : (chunk + 1) * size].reshape(-1, depth)
        for begin, end in ((0, whole), (whole, depth)):
            if begin == end:
                continue
            pairs = _pairs(_conflicts(rows[:, begin:end]))
            if pairs is None:
                return None
            order[begin:end] = (begin + SHUFFLED * np.arange(len(pairs))[:, None] + pairs).ravel()
    return orders


def shuffles(orders: Array) -> Array:
    """Return the orders as operands of `pshufb`: uint8[chunks, shuffle_bytes(depth)].

    The last block consists of the last 16 bytes: its own come first, and then zeros.
    """
    chunks, depth = orders.shape
    begins = [min(begin, depth - SHUFFLED) for begin in range(0, depth, SHUFFLED)]
    masks = np.full((chunks, shuffle_bytes(depth)), _ZERO, np.uint8)
    masks[:, :depth] = orders - np.repeat(begins, SHUFFLED)[:depth]
    return masks


def _conflicts(rows: Array) -> Matrix:
    """Return whether two bytes of a block do not fit a pair: bool[blocks, size, size]."""
    depth = rows.shape[1]
    size = min(depth, SHUFFLED)
    conflicts = np.zeros((depth, size), np.bool_)
    for sign in (1, -1):
        values = sign * rows.astype(np.int16)
        # One of two whose sum is too large is above half of it.
        row, place = np.nonzero(values > _MOST // 2)
        blocks = values.reshape(len(rows), -1, size)[row, place // size]
        np.logical_or.at(conflicts, place, blocks + values[row, place, None] > _MOST)
    conflicts = conflicts.reshape(-1, size, size)
    conflicts[:, np.arange(size), np.arange(size)] = True
    return conflicts | conflicts.transpose(0, 2, 1)


def _pairs(conflicts: Matrix) -> Array | None:
    """Return perfect matchings without `conflicts`: int64[blocks, size], partners side by side."""
    orders, is_right = _likely_pairs(~conflicts)
    for block in range(len(orders)):
        if not is_right[block]:
            exact = _matching([_bits(row) for row in ~conflicts[block]])
            if exact is None:
                return None
            orders[block] = exact
    return orders


def _likely_pairs(free: Matrix) -> tuple[Array, Array]:
    """Return pairs of all blocks at once, and whether they are right, as most are.

    Bytes with the fewest partners get one first.
    """
    count, size = len(free), len(free[0])
    orders = np.empty((count, size), np.int64)
    blocks: Array = np.arange(count)
    is_open: Array = np.ones((count, size), np.bool_)
    is_right: Array = np.ones(count, np.bool_)
    for place in range(0, size, 2):
        partners: Array = np.sum(free, axis=2)
        for side in (place, place + 1):
            may: Array = is_open if side == place else free[blocks, orders[:, place]]
            ranks: Array = np.where(may, partners, size + 1)
            orders[:, side] = np.argmin(ranks, axis=1)
            is_right &= np.min(ranks, axis=1) <= size
        for taken in (orders[:, place], orders[:, place + 1]):
            is_open[blocks, taken] = False
            free[blocks, taken] = False
            free[blocks, :, taken] = False
    return orders, is_right


def _bits(row: Array) -> int:
    """Return a number whose bits are the entries."""
    return sum(1 << place for place, entry in enumerate(row.tolist()) if entry)


def _matching(partners: list[int]) -> list[int] | None:
    """Return a perfect matching, found by depth-first search.

    Bit j of `partners[i]` says whether j may be the partner of i.
    """
    failed: set[int] = set()

    def search(left: int) -> list[int] | None:
        if not left:
            return []
        if left in failed:
            return None
        first = (left & -left).bit_length() - 1
        others = partners[first] & left
        while others:
            second = (others & -others).bit_length() - 1
            others &= others - 1
            found = search(left & ~(1 << first | 1 << second))
            if found is not None:
                return [first, second, *found]
        failed.add(left)
        return None

    return search((1 << len(partners)) - 1)
