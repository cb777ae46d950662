"""Scatters of StableHLO: updates, each a window of a tensor, are written at computed places."""

from functools import cached_property
from typing import NoReturn

import numpy as np
from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Block, SSAValue

from braid.dialects.braid.base import element_type_of, extents_of, shape_of, tensor_type
from braid.dialects.braid.constants import IotaOp
from braid.dialects.braid.dtypes import i1, i64, to_numpy
from braid.dialects.braid.indexing import GatherNdOp
from braid.dialects.braid.movement import ConcatOp
from braid.dialects.braid.reduction import ReduceOp, neutral_of
from braid.dialects.braid.scattering import ScatterNdOp
from braid.dialects.braid.size_evaluation import as_array
from braid.passes.stablehlo.folding import combine
from braid.passes.stablehlo.node import StablehloNode, converter
from braid.passes.stablehlo.reduction import KINDS
from braid.passes.stablehlo.regions import region_of, returned_by
from braid.support.sizes.expression import Extent


@converter("scatter")
def scatter(t: StablehloNode) -> list[SSAValue]:
    """Combine updates with present elements: by one op, by replacing them, or by any region if each
    position is written once. Updates that are out of bounds are dropped.
    """
    count = len(t.op.results)
    places = _Places(t)
    block = region_of(t, 2 * count)
    values = [t.value(index) for index in range(count)]
    updates = [t.value(count + 1 + index) for index in range(count)]
    kinds = [update_kind(t, block, index) for index in range(count)]
    if None in kinds:
        if not t.flag("unique_indices"):
            refuse_update(t, "combine by one of these, or promise that indices are unique")
        there = [places.read(value) for value in values]
        here = [places.moved(update) for update in updates]
        combined = combine(t, block, there, here)
        return [
            places.written(value, update, "none")
            for value, update in zip(values, combined, strict=True)
        ]
    return [
        _scattered(places, value, update, kind or "")
        for value, update, kind in zip(values, updates, kinds, strict=True)
    ]


def refuse_update(t: StablehloNode, hint: str) -> NoReturn:
    """Raise UnsupportedError for a region whose `update_kind` is None."""
    t.unsupported(
        "its region is not one of add, and, maximum, minimum, multiply, or, subtract, nor one of "
        "its arguments",
        hint=hint,
    )


def update_kind(t: StablehloNode, block: Block, index: int) -> str | None:
    """Return how result `index` is combined: `none` is the update, `old` is the present element."""
    value = returned_by(block)[index]
    old, new = block.args[index], block.args[len(t.op.results) + index]
    if value in (old, new):
        return "none" if value == new else "old"
    op = value.owner
    if isinstance(op, Block) or op.parent is not block or {*op.operands} != {old, new}:
        return None
    name = op.name.partition(".")[2]
    if name == "subtract":
        return name if list(op.operands) == [old, new] and not t.is_bool(value) else None
    kind = KINDS.get(name)
    if t.is_bool(value):
        return _OF_BOOLS.get(name)
    return kind if kind in ("add", "mul", "maximum", "minimum") else None


_OF_BOOLS = {
    "add": "maximum",
    "and": "minimum",
    "maximum": "maximum",
    "minimum": "minimum",
    "multiply": "minimum",
    "or": "maximum",
}
"""The equivalents of ops on bools for numbers that are 0 or 1."""


def _scattered(places: "_Places", value: SSAValue, update: SSAValue, kind: str) -> SSAValue:
    """Return `value` with its windows combined by a kind of `update_kind`."""
    if kind == "old":
        return value
    moved = places.moved(update)
    if kind == "subtract":
        return places.written(value, places.t.apply("neg", moved), "add")
    return places.written(value, moved, kind)


class _Places:
    """Where the updates of a scatter go: index tuples into some dims of the operand.

    The other dims, which windows cover completely, are moved after these. A tuple is where a window
    starts and which of its elements it is; starts come first in the tensors of tuples, `[scatter
    dims…, window dims…, tuple]`.
    """

    def __init__(self, t: StablehloNode) -> None:
        self.t = t
        count = len(t.op.results)
        self._shape = t.extents(t.value(0))
        self._starts, self._updated = t.value(count), t.extents(t.value(count + 1))
        self._window_dims = _dims(t, "update_window_dims")
        self._indexed = _dims(t, "scatter_dims_to_operand_dims")
        self._batching = _dims(t, "input_batching_dims")
        left_out = {*_dims(t, "inserted_window_dims"), *self._batching}
        windowed = [dim for dim in range(len(self._shape)) if dim not in left_out]
        self._sizes: list[Extent] = [1] * len(self._shape)
        for dim, update_dim in zip(windowed, self._window_dims, strict=True):
            self._sizes[dim] = self._updated[update_dim]
        self._windowed = windowed
        self._whole = [
            dim
            for dim in windowed
            if dim not in self._indexed and self._sizes[dim] == self._shape[dim]
        ]
        self._tupled = [dim for dim in range(len(self._shape)) if dim not in self._whole]
        self._parts = [dim for dim in self._tupled if self._sizes[dim] != 1]

    def written(self, value: SSAValue, update: SSAValue, kind: str) -> SSAValue:
        """Return `value` with the update of `moved` combined by a kind of `braid.scatter_nd`."""
        if 0 in (*shape_of(update), *shape_of(value)):
            return value
        t, tuples, data = self.t, self._tuples, self._moved(value)
        element_type, count = element_type_of(value), extents_of(data)[0]
        if element_type == i1 and kind != "none":
            data, update = t.cast(data, _BYTE), t.cast(update, _BYTE)
        is_inside = self._is_inside
        if is_inside is not None and kind == "none":
            # A row that is removed again takes the updates that are out of bounds.
            data = t.pad(data, [0] * len(shape_of(data)), [1, *[0] * len(shape_of(data)[1:])])
            tuples = t.apply("select", is_inside, tuples, t.size_scalar(count, tuples))
        elif is_inside is not None:
            places = t.reshape(is_inside, [*extents_of(is_inside)[:-1], *[1] * len(self._whole)])
            # -0 + 0 would be 0.
            number = -0.0 if kind == "add" else neutral_of(kind, element_type_of(update))
            neutral = t.scalar(number, update)
            update = t.apply("select", places, update, neutral)
        written = t.emit(ScatterNdOp.get(data, tuples, update, kind))
        written = t.cast(t.part(written, 0, 0, count), element_type)
        order = [*self._tupled, *self._whole]
        shaped = t.reshape(written, [self._shape[dim] for dim in order])
        return t.transpose(shaped, [order.index(dim) for dim in range(len(order))])

    def read(self, value: SSAValue) -> SSAValue:
        """Return the present elements of `value` at the positions of the update of `moved`."""
        return self.t.emit(GatherNdOp.get(self._moved(value), self._tuples))

    def moved(self, update: SSAValue) -> SSAValue:
        """Return an update with its scatter dims first, then the window dims of tuples, then the
        remaining ones.
        """
        update_dim = dict(zip(self._windowed, self._window_dims, strict=True))
        ones = [
            update_dim[dim] for dim in self._tupled if dim in update_dim and self._sizes[dim] == 1
        ]
        kept = [*self._scattered, *(update_dim[dim] for dim in (*self._parts, *self._whole))]
        moved = self.t.transpose(update, [*kept, *ones])
        return self.t.reshape(moved, extents_of(moved)[: len(kept)])

    def _moved(self, value: SSAValue) -> SSAValue:
        """Return an operand with the dims of tuples, at least one, before the others."""
        moved = self.t.transpose(value, [*self._tupled, *self._whole])
        return moved if self._tupled else self.t.reshape(moved, [1, *extents_of(moved)])

    @property
    def _scattered(self) -> list[int]:
        """The dims of an update which say the number of its window."""
        return [dim for dim in range(len(self._updated)) if dim not in self._window_dims]

    @cached_property
    def _tuples(self) -> SSAValue:
        t, starts = self.t, self._ordered_starts()
        outer = extents_of(starts)[:-1]
        parts = [self._component(starts, dim) for dim in self._tupled] or [
            t.broadcast(t.scalar(0, starts), [*outer, 1])
        ]
        tuples = parts[0] if len(parts) == 1 else t.emit(ConcatOp.get(parts, len(outer)))
        sizes = [t.fixed(self._sizes[dim]) for dim in self._parts]
        if not sizes:
            return tuples
        offsets = np.zeros(
            [*[1] * len(outer), *sizes, len(parts)], to_numpy(element_type_of(tuples))
        )
        for place, counted in zip(self._parts, np.indices(sizes), strict=True):
            offsets[..., self._tupled.index(place)] = counted
        windows = t.reshape(tuples, [*outer, *[1] * len(sizes), len(parts)])
        return t.apply("add", windows, t.constant(offsets))

    def _ordered_starts(self) -> SSAValue:
        """Return the starts as `[scatter dims…, tuple]`, in a type that has all places."""
        starts = self._starts
        vector, shape = self.t.index_vector_dim("scatter_dimension_numbers"), extents_of(starts)
        if vector == len(shape):
            starts = self.t.reshape(starts, [*shape, 1])
        others = [dim for dim in range(len(shape_of(starts))) if dim != vector]
        ordered = self.t.transpose(starts, [*others, vector])
        return ordered if element_type_of(ordered) == _INDEX else self.t.cast(ordered, i64)

    def _component(self, starts: SSAValue, dim: int) -> SSAValue:
        """Return where windows start in a dim."""
        t, rank = self.t, len(shape_of(starts))
        if dim in self._indexed:
            return t.part(starts, rank - 1, self._indexed.index(dim), 1)
        shape = [*extents_of(starts)[:-1], 1]
        if dim not in self._batching:
            return t.broadcast(t.scalar(0, starts), shape)
        along = _dims(t, "scatter_indices_batching_dims")[self._batching.index(dim)]
        place = along - (along > t.index_vector_dim("scatter_dimension_numbers"))
        return t.emit(IotaOp.of(place, tensor_type(element_type_of(starts), shape)))

    @cached_property
    def _is_inside(self) -> SSAValue | None:
        """Whether each tuple is inside of the operand, None where all are."""
        t, tuples = self.t, self._tuples
        rank = len(shape_of(tuples))
        extents = [self._shape[dim] - 1 for dim in self._tupled] or [0]
        last = t.sizes(
            as_array(extents, [*[1] * (rank - 1), len(extents)]), element_type_of(tuples)
        )
        are_inside = t.apply(
            "and", t.apply("ge", tuples, t.scalar(0, tuples)), t.apply("le", tuples, last)
        )
        known = t.known(are_inside)
        if known is not None and known.all():
            return None
        return t.emit(ReduceOp.get(are_inside, "and", [rank - 1]))


def _dims(t: StablehloNode, part: str) -> list[int]:
    return t.dims("scatter_dimension_numbers", part)


_BYTE = IntegerType(8)
_INDEX = IntegerType(32)
