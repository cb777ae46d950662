"""One op of StableHLO while it is converted: its fields."""

import re
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, cast

from xdsl.dialects.builtin import (
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IntegerAttr,
)
from xdsl.ir import OpResult, SSAValue

from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.dtypes import numpy_from_dense
from braid.dialects.braid.movement import BroadcastOp, PadOp, SliceOp
from braid.dialects.braid.relayout import Array
from braid.dialects.stablehlo import StablehloAttr, StablehloOp
from braid.passes.replacement import Replacement

Converter = Callable[["StablehloNode"], SSAValue | Sequence[SSAValue]]

_GROUPS = ("elementwise", "indexing", "movement", "products", "reduction", "windows")
"""The modules with converters."""

_converters: dict[str, Converter] = {}


def converter(*names: str) -> Callable[[Converter], Converter]:
    """The function converts the ops of these names."""

    def register(function: Converter) -> Converter:
        _converters.update(dict.fromkeys(names, function))
        return function

    return register


def converter_of(name: str) -> Converter | None:
    """What converts the op of this name, given without `stablehlo.`."""
    for group in _GROUPS:
        import_module(f"braid.passes.stablehlo.{group}")
    return _converters.get(name)


class StablehloNode(Replacement[StablehloOp]):
    """An op of StableHLO, with what it says about itself."""

    def integers(self, name: str, default: Sequence[int] | None = None) -> list[int]:
        """A field that is a list of integers; `default` where it is missing."""
        field = self.op.field(name)
        if isinstance(field, DenseArrayBase | DenseIntOrFPElementsAttr):
            return [int(number) for number in cast(Any, field).get_values()]
        if field is not None or default is None:
            self.fail(f"expected a list '{name}'")
        return list(default)

    def integer(self, name: str, default: int | None = None) -> int:
        """A field that is a number; `default` where it is missing."""
        field = self.op.field(name)
        if isinstance(field, IntegerAttr):
            return cast(IntegerAttr[Any], field).value.data
        if field is not None or default is None:
            self.fail(f"expected a number '{name}'")
        return default

    def number(self, name: str) -> float:
        """A field that is a float."""
        field = self.op.field(name)
        if not isinstance(field, FloatAttr):
            self.fail(f"expected a number '{name}'")
        return cast(FloatAttr[Any], field).value.data

    def flags(self, name: str, count: int) -> list[bool]:
        """A field that is a list of bools, `count` times false where it is missing."""
        return [bool(number) for number in self.integers(name, [0] * count)]

    def text(self, name: str) -> str:
        """What stands in the brackets of a field of the dialect, nothing where it is missing."""
        field = self.op.field(name)
        return field.text.data if isinstance(field, StablehloAttr) else ""

    def dims(self, name: str, part: str) -> list[int]:
        """The list `part` in a field of the dialect, empty where it is missing."""
        match = re.search(rf"\b{part} = \[([0-9, ]*)\]", self.text(name))
        return [int(number) for number in match[1].split(",")] if match and match[1] else []

    def known(self, value: SSAValue) -> Array | None:
        """The elements of a constant, None for any other value."""
        owner = value.owner if isinstance(value, OpResult) else None
        if isinstance(owner, BroadcastOp):
            return self.known(owner.operands[0])
        return numpy_from_dense(owner.value) if isinstance(owner, ConstantOp) else None

    def known_scalar(self, index: int) -> Any:
        """The only element of operand `index`, which must be a constant."""
        elements = self.known(self.value(index))
        if elements is None or elements.size != 1:
            self.unsupported(f"operand {index} is not a constant number")
        return elements.reshape(-1)[0].item()

    def repeat(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """A value of rank 0 in every place of `shape`, any other as it is."""
        if len(shape_of(value)) == len(shape):
            return value
        return self.broadcast(self.reshape(value, [1] * len(shape)), shape)

    def pad(
        self, value: SSAValue, low: Sequence[int], high: Sequence[int], number: Any = 0
    ) -> SSAValue:
        """`value` with so many elements around it; with less where the count is negative."""
        if any(count > 0 for count in (*low, *high)):
            more = [[max(count, 0) for count in side] for side in (low, high)]
            value = self.emit(PadOp.get(value, more[0], more[1], number))
        if any(count < 0 for count in (*low, *high)):
            starts = [max(-count, 0) for count in low]
            ends = [max(-count, 0) for count in high]
            sizes = [n - a - b for n, a, b in zip(shape_of(value), starts, ends, strict=True)]
            value = self.emit(SliceOp.get(value, starts, sizes))
        return value

    def spread(self, value: SSAValue, steps: Sequence[int], number: Any = 0) -> SSAValue:
        """`value` with its elements `steps` apart in each dim, and `number` between them."""
        for dim, step in enumerate(steps):
            shape = list(shape_of(value))
            if step == 1 or shape[dim] == 0:
                continue
            apart = self.reshape(value, [*shape[: dim + 1], 1, *shape[dim + 1 :]])
            high = [0] * (len(shape) + 1)
            high[dim + 1] = step - 1
            shape[dim] *= step
            joined = self.reshape(self.pad(apart, [0] * len(high), high, number), shape)
            end = [0] * len(shape)
            end[dim] = 1 - step
            value = self.pad(joined, [0] * len(shape), end)
        return value

    def reverse(self, value: SSAValue, dims: Sequence[int]) -> SSAValue:
        """`value` with the elements of these dims in reverse."""
        shape = shape_of(value)
        if not dims or 0 in shape:
            return value
        offsets = [n - 1 if dim in dims else 0 for dim, n in enumerate(shape)]
        strides = [-1 if dim in dims else 1 for dim in range(len(shape))]
        return self.emit(SliceOp.get(value, offsets, shape, strides))

    def is_bool(self, value: SSAValue) -> bool:
        """Whether the elements are bools, on which arithmetic is logic."""
        return str(element_type_of(value)) == "i1"
