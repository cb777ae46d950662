"""Tensors that are boxes inside the memory of larger ones, decided by `select-storage`.

An operand of a concatenation, for example, may be computed right where the result has it. The
decision is an attribute of the ops that read and write such tensors: their strides, and which
tensor lies in which buffer.
"""

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, IntegerAttr, IntegerType, UnitAttr, i64
from xdsl.ir import Attribute, Operation, SSAValue

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.attribute_names import BOXES, OVERLAP, STRIDES, VIEW_OFFSET
from braid.dialects.braid.attributes import layout_of
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.layout import Layout

STORAGE_DECISIONS = (STRIDES, BOXES, OVERLAP)
"""The attributes that decide how a kernel addresses its tensors."""

Strides = tuple[int, ...]


def strides_of(op: Operation) -> list[Strides | None]:
    """Return the strides of each operand and then each result, None for a tensor on its own."""
    attribute = op.attributes.get(STRIDES)
    if attribute is None:
        return [None] * (len(op.operands) + len(op.results))
    entries = cast("ArrayAttr[Attribute]", attribute)
    return [None if isinstance(entry, UnitAttr) else _integers(entry) for entry in entries]


def set_strides(op: Operation, strides: Sequence[Strides | None]) -> None:
    """Write the strides of all operands and results, or no attribute if all are None."""
    op.attributes.pop(STRIDES, None)
    if any(entry is not None for entry in strides):
        op.attributes[STRIDES] = ArrayAttr(
            [UnitAttr() if s is None else DenseArrayBase.from_list(i64, list(s)) for s in strides]
        )


def boxes_of(op: Operation) -> dict[int, int]:
    """Return the operands that lie in the memory of the result of `op`, with their first byte in
    it.
    """
    attribute = op.attributes.get(BOXES)
    entries = cast("ArrayAttr[Attribute]", attribute) if attribute is not None else ()
    pairs = [_integers(entry) for entry in entries]
    return dict(cast("list[tuple[int, int]]", pairs))


def set_boxes(op: Operation, boxes: dict[int, int]) -> None:
    """Write which operands lie in the memory of the result of `op`."""
    pairs = sorted(boxes.items())
    op.attributes[BOXES] = ArrayAttr([DenseArrayBase.from_list(i64, list(pair)) for pair in pairs])


def view_offset(op: Operation) -> int | None:
    """Return the byte of the operand at which the result of `op` begins; None if that is not a
    view.
    """
    attribute = op.attributes.get(VIEW_OFFSET)
    return attribute.value.data if isinstance(attribute, IntegerAttr) else None


def overlap_of(op: Operation) -> int | None:
    """Return the operand that may alias the beginning of the result of `op`; None if there is
    none."""
    attribute = op.attributes.get(OVERLAP)
    return attribute.value.data if isinstance(attribute, IntegerAttr) else None


def set_overlap(op: Operation, operand: int | None) -> None:
    """Write which operand may lie where the result of `op` begins."""
    op.attributes.pop(OVERLAP, None)
    if operand is not None:
        op.attributes[OVERLAP] = IntegerAttr(operand, i64)


def has_storage(op: Operation) -> bool:
    """Return whether the storage of `op`'s tensors is decided; the decision covers all of them."""
    return any(name in op.attributes for name in (*STORAGE_DECISIONS, VIEW_OFFSET))


def is_only_storage(op: Operation) -> bool:
    """Return whether nothing is left to compute: a slice that is a view, operands that lie in
    place.
    """
    boxes = boxes_of(op)
    is_join = len(boxes) == len(op.operands) and len(boxes) > 1
    return view_offset(op) is not None or is_join


def stored_choice(op: Operation) -> LayoutChoice:
    """Return the layouts in the types of `op`, with the strides of tensors inside larger ones."""
    values = (*op.operands, *op.results)
    layouts = tuple(map(_with_strides, values, strides_of(op)))
    return LayoutChoice(layouts[: len(op.operands)], layouts[len(op.operands) :])


def _with_strides(value: SSAValue, strides: Strides | None) -> Layout:
    layout = layout_of(value.type)
    return layout if strides is None else layout.with_strides(strides)


def dense_strides(value: SSAValue) -> Strides:
    """Return the strides of a tensor on its own, in its layout."""
    return layout_of(value.type).storage_strides(shape_of(value))


def span(shape: Sequence[int], strides: Sequence[int]) -> int:
    """Return the elements from the first to the last one of a box, both included."""
    return 1 + sum((extent - 1) * stride for extent, stride in zip(shape, strides, strict=True))


def _integers(attribute: Attribute) -> Strides:
    return tuple(cast("DenseArrayBase[IntegerType]", attribute).get_values())
