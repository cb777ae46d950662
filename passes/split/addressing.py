"""Slices of values and their concatenation, without joining parts that are only cut again."""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.ir import Operation, SSAValue

from braid.analysis.storage.tensor_storage import is_view
from braid.dialects.braid.attributes import layout_of, with_layout
from braid.dialects.braid.base import set_result_types, shape_of
from braid.dialects.braid.boxes import reshaped, sizes
from braid.dialects.braid.movement import ConcatOp, ReshapeOp, SliceOp
from braid.passes.split.split_dims import Part


@dataclass(frozen=True)
class Slicer:
    """Inserts slices of values with `builder`.

    A slice along the dim of a concatenation reads only the pieces that it overlaps, also through a
    reshape or a slice of the whole: if the parts equal those of the ops before, nothing is
    concatenated. With `through_concats` that holds through concatenations along other dims as well.
    """

    builder: Builder
    through_concats: bool

    def slice(self, value: SSAValue, part: Part) -> SSAValue:
        """Return the elements `part` of `value`."""
        shape = shape_of(value)
        if part.size == shape[part.dim]:
            return value
        owner = value.owner
        if isinstance(owner, ConcatOp) and owner.dim.value.data == part.dim:
            return self._slice_of_pieces(owner.inputs, part)
        if isinstance(owner, ConcatOp) and self._is_joined(value, part.dim):
            cut = [self.slice(piece, part) for piece in owner.inputs]
            return joined(self.builder, cut, owner.dim.value.data)
        if (
            isinstance(owner, ReshapeOp)
            and is_view(owner)
            and (found := self._slice_before(owner, part)) is not None
        ):
            return found
        offsets = [part.start if dim == part.dim else 0 for dim in range(len(shape))]
        extents = [part.size if dim == part.dim else extent for dim, extent in enumerate(shape)]
        if isinstance(owner, SliceOp) and set(owner.strides.get_values()) <= {1}:
            inner = owner.offsets.get_values()
            offsets = [a + b for a, b in zip(inner, offsets, strict=True)]
            value = owner.input
            if self._is_joined(value, part.dim):
                value = self.slice(value, Part(part.dim, offsets[part.dim], part.size))
                offsets[part.dim] = 0
        return insert_like(self.builder, SliceOp.get(value, offsets, extents), value)

    def _is_joined(self, value: SSAValue, dim: int) -> bool:
        """Return whether `value`, or all that it is concatenated from, is a concatenation along
        `dim`.
        """
        owner = value.owner
        if not isinstance(owner, ConcatOp):
            return False
        inside = self.through_concats and all(self._is_joined(p, dim) for p in owner.inputs)
        return inside or owner.dim.value.data == dim

    def _slice_before(self, op: ReshapeOp, part: Part) -> SSAValue | None:
        """Return the reshaped slice of a reshape's operand, if that is a concatenation of such
        parts.
        """
        shape, source = shape_of(op.output), shape_of(op.input)
        box = [(0, extent) for extent in shape]
        box[part.dim] = (part.start, part.size)
        needed = reshaped(tuple(box), shape, source) if is_view(op) else None
        if needed is None:
            return None
        cut = [dim for dim, extent in enumerate(sizes(needed)) if extent != source[dim]]
        owner = op.input.owner
        if len(cut) != 1 or not isinstance(owner, ConcatOp) or owner.dim.value.data != cut[0]:
            return None
        start, size = needed[cut[0]]
        value = self.slice(op.input, Part(cut[0], start, size))
        return self.builder.insert(ReshapeOp.get(value, sizes(tuple(box)))).output

    def _slice_of_pieces(self, pieces: Sequence[SSAValue], part: Part) -> SSAValue:
        found: list[SSAValue] = []
        begin = 0
        for piece in pieces:
            end = begin + shape_of(piece)[part.dim]
            first, last = max(begin, part.start), min(end, part.start + part.size)
            if first < last:
                found.append(self.slice(piece, Part(part.dim, first - begin, last - first)))
            begin = end
        return joined(self.builder, found, part.dim)


def joined(builder: Builder, values: Sequence[SSAValue], dim: int) -> SSAValue:
    """Return the concatenation of `values` along `dim`; a single value as it is."""
    if len(values) == 1:
        return values[0]
    return insert_like(builder, ConcatOp.get(values, dim), values[0])


def insert_like(builder: Builder, op: Operation, value: SSAValue) -> SSAValue:
    """Insert an op of one result, and give that the layout of `value`."""
    layout = layout_of(value.type)
    set_result_types(op, [with_layout(result.type, layout) for result in op.results])
    return builder.insert(op).results[0]
