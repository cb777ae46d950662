"""Lookups: the position of each element among known keys."""

import numpy as np
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from braid.dialects.braid.base import element_type_of, extents_of
from braid.dialects.braid.dtypes import is_float, to_numpy
from braid.dialects.braid.indexing import GatherOp
from braid.dialects.braid.relayout import Array
from braid.frontends.onnx.building.builder import Builder
from braid.frontends.onnx.building.expressions import apply, cast, reduce, reshape, scalar

_FEW_KEYS = 16
"""Are compared one by one."""
_MOST_SLOTS = 1 << 24


def places_of(b: Builder, x: SSAValue, keys: Array, *, finds_nan: bool = False) -> SSAValue:
    """Return where each element stands first in `keys`, their number where it does not.

    A NaN stands where a key is NaN if it `finds_nan`, else nowhere. The result has the shape of
    `x`, and elements of i64.
    """
    keys = keys.astype(to_numpy(element_type_of(x)))
    if not is_float(element_type_of(x)) and len(keys) > _FEW_KEYS:
        low, high = int(keys.min()), int(keys.max())
        if high - low < min(_MOST_SLOTS, 16 * len(keys) + 4096):
            return _by_table(b, x, keys, low, high - low + 1)
    return _by_comparison(b, x, keys, finds_nan)


def _by_table(b: Builder, x: SSAValue, keys: Array, low: int, slots: int) -> SSAValue:
    """Look up integers in a table of all numbers from the first key to the last one."""
    table = np.full(slots + 1, len(keys))
    np.minimum.at(table, keys.astype(np.int64) - low, np.arange(len(keys)))
    is_inside = apply(
        b,
        "and",
        apply(b, "ge", x, scalar(b, low, x)),
        apply(b, "le", x, scalar(b, low + slots - 1, x)),
    )
    wide = cast(b, x, i64)
    slot = apply(b, "sub", wide, scalar(b, low, wide))
    slot = apply(b, "select", is_inside, slot, scalar(b, slots, wide))
    return b.emit(GatherOp.get(b.constant(table), slot, 0))


def _by_comparison(b: Builder, x: SSAValue, keys: Array, finds_nan: bool) -> SSAValue:
    """Compare with every key."""
    shape = extents_of(x)
    wide = reshape(b, x, [*shape, 1])
    line = [1] * len(shape) + [len(keys)]
    equal = apply(b, "eq", wide, b.constant(keys.reshape(line)))
    if finds_nan and is_float(element_type_of(x)) and np.isnan(keys).any():
        nan_keys = b.constant(np.isnan(keys).reshape(line))
        equal = apply(b, "or", equal, apply(b, "and", apply(b, "isnan", wide), nan_keys))
    places = b.constant(np.arange(len(keys)).reshape(line))
    nowhere = b.constant(np.full([1] * len(line), len(keys)))
    found = apply(b, "select", equal, places, nowhere)
    return reshape(b, reduce(b, "minimum", found, [len(shape)]), shape)
