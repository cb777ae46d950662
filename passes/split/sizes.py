"""How many bytes the largest part of a split op needs, without making the parts."""

import math
from collections.abc import Mapping, Sequence

from xdsl.ir import Operation, SSAValue

from braid.analysis.storage.memory_graph import value_bytes
from braid.dialects.braid.attributes import layout_of
from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.dtypes import bytes_of
from braid.passes.split.split_rules import SplitDim

Extents = dict[int, int]
"""The extent of each dim of a value that is cut; other dims are whole."""


def op_bytes(op: Operation) -> int:
    """Bytes of all operands, each once, and results. Raises UnsupportedError for open dims."""
    return sum(value_bytes(value) for value in (*dict.fromkeys(op.operands), *op.results))


def part_bytes(op: Operation, dims: Sequence[SplitDim], counts: Mapping[int, int]) -> float:
    """Bytes of the largest of the parts when each dim is split into `counts[dim]` parts.

    The largest parts along every dim are taken together; where a reduced dim is split, adding
    two partial results counts as well. Infinite where a dim cannot be split into so many parts.
    """
    cut: dict[int, Extents] = {}
    made: Extents = {}
    for dim in dims:
        if (count := counts.get(dim.dim, 1)) == 1:
            continue
        if count > dim.extent // dim.unit:
            return math.inf
        largest = dim.largest(count)
        if largest is None:
            return math.inf
        made[dim.dim] = largest.made
        for (index, number), size in largest.operands.items():
            extents = cut.setdefault(index, {})
            extents[number] = max(extents.get(number, 0), size)
    needed = _bytes(op, cut, made)
    accumulates = any(dim.combine and counts.get(dim.dim, 1) > 1 for dim in dims)
    return max(needed, 3 * _value_bytes(op.results[0], made)) if accumulates else needed


def _bytes(op: Operation, cut: Mapping[int, Extents], made: Extents) -> int:
    """An operand that is read twice counts once if both reads need the same part."""
    distinct = {
        (operand, tuple(sorted(cut.get(index, {}).items())))
        for index, operand in enumerate(op.operands)
    }
    whole = [value_bytes(operand) for operand, extents in distinct if not extents]
    needed = [(operand, dict(extents)) for operand, extents in distinct if extents]
    needed += [(result, made) for result in op.results]
    return sum(whole) + sum(_value_bytes(value, extents) for value, extents in needed)


def _value_bytes(value: SSAValue, extents: Extents) -> int:
    shape = [extents.get(dim, extent) for dim, extent in enumerate(shape_of(value))]
    storage = layout_of(value.type).storage_shape(shape)
    return math.prod(storage) * bytes_of(element_type_of(value))
