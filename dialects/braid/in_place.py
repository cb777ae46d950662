"""Which results of kernels may share memory with which operands, as attributes of functions."""

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, IntegerType, i64
from xdsl.dialects.func import CallOp
from xdsl.traits import SymbolTable

from braid.dialects.braid.attribute_names import IN_PLACE


def in_place_attribute(pairs: Sequence[tuple[int, int]]) -> ArrayAttr[DenseArrayBase[IntegerType]]:
    """The pairs as an attribute."""
    return ArrayAttr([DenseArrayBase.from_list(i64, list(pair)) for pair in pairs])


def in_place_pairs(call: CallOp) -> list[tuple[int, int]]:
    """What the kernel of `call` declares; nothing for a kernel that is not in the module."""
    callee = SymbolTable.lookup_symbol(call, call.callee)
    attribute = None if callee is None else callee.attributes.get(IN_PLACE)
    if attribute is None:
        return []
    pairs = cast(ArrayAttr[DenseArrayBase[IntegerType]], attribute)
    return [cast(tuple[int, int], pair.get_values()) for pair in pairs]
