"""Reading what a layout stores, independently of how braid writes it."""

from collections.abc import Sequence
from math import prod

import numpy as np

from braid.dialects.braid.layout import Layout
from braid.dialects.braid.relayout import Array, to_storage


def from_storage(stored: Array, layout: Layout, shape: Sequence[int]) -> Array:
    """Return the logical array of `shape` that `stored` holds in `layout`."""
    numbers = to_storage(np.arange(1, prod(shape) + 1).reshape(shape), layout)
    found = numbers != 0  # the tails of padded blocks hold nothing
    array = np.empty(prod(shape), stored.dtype)
    array[numbers[found] - 1] = stored.reshape(numbers.shape)[found]
    return array.reshape(shape)
