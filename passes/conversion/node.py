"""One op of another dialect while it is converted: its attributes and operands."""

from collections.abc import Collection, Sequence
from typing import Any, TypeVar, cast

import numpy as np
from xdsl.dialects.builtin import (
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IntegerAttr,
    StringAttr,
)
from xdsl.ir import SSAValue

from braid.dialects.braid.base import shape_of
from braid.dialects.braid.dtypes import numpy_from_dense
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.movement import BroadcastOp
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.size_evaluation import is_sized
from braid.dialects.foreign import ForeignOp, TextAttr
from braid.passes.conversion.replacement import Replacement

ForeignOpT = TypeVar("ForeignOpT", bound=ForeignOp)


class ForeignNode(Replacement[ForeignOpT]):
    """An op of another dialect, with its attributes."""

    @property
    def shape_operands(self) -> Collection[int]:
        """Return which operands are no tensors but lists of extents."""
        return ()

    def integers(self, name: str, default: Sequence[int] | None = None) -> list[int]:
        """Return a field that is a list of integers; `default` where it is missing."""
        field = self.op.field(name)
        if isinstance(field, DenseArrayBase | DenseIntOrFPElementsAttr):
            return [int(number) for number in cast(Any, field).get_values()]
        if field is not None or default is None:
            self.fail(f"expected a list '{name}'")
        return list(default)

    def integer(self, name: str) -> int:
        """Return a field that is an integer."""
        field = self.op.field(name)
        if not isinstance(field, IntegerAttr):
            self.fail(f"expected a number '{name}'")
        return cast(IntegerAttr[Any], field).value.data

    def number(self, name: str) -> Any:
        """Return a field that is a number, of any type."""
        field = self.op.field(name)
        if not isinstance(field, IntegerAttr | FloatAttr):
            self.fail(f"expected a number '{name}'")
        return cast(Any, field).value.data

    def flag(self, name: str) -> bool:
        """Return a field that is a bool, false where it is missing."""
        field = self.op.field(name)
        return isinstance(field, IntegerAttr) and bool(cast(Any, field).value.data)

    def text(self, name: str, default: str = "") -> str:
        """Return a field that is text, or an attribute of the dialect; `default` where it is
        missing.
        """
        field = self.op.field(name)
        text = field.text if isinstance(field, TextAttr) else field
        return text.data if isinstance(text, StringAttr) else default

    def elements(self, name: str) -> DenseIntOrFPElementsAttr[Any]:
        """Return a field that is a tensor."""
        field = self.op.field(name)
        if not isinstance(field, DenseIntOrFPElementsAttr):
            self.unsupported(
                f"its '{name}' is not written in the module as 'dense<…>'",
                hint="make large tensors arguments of the function",
            )
        return cast(DenseIntOrFPElementsAttr[Any], field)

    def dense(self, name: str) -> Array:
        """Return the elements of a field that is a tensor."""
        return numpy_from_dense(self.elements(name))

    def known(self, value: SSAValue) -> Array | None:
        """Return the elements of a value computed from constants alone, None for any other
        value."""
        owner = value.owner
        if isinstance(owner, BroadcastOp):
            elements = self.known(owner.input)
            if elements is None or DYNAMIC in shape_of(value):
                return None
            return np.broadcast_to(elements, shape_of(value))
        elements = self.known_values(value)
        return None if elements is None or is_sized(elements) else elements

    def known_operand(self, index: int) -> Array:
        """Return the elements of operand `index`, which must be a constant."""
        elements = self.known(self.value(index))
        if elements is None:
            self.unsupported(
                f"operand {index} is not a constant", hint="compute it before the model runs"
            )
        return elements

    def known_number(self, index: int) -> Any:
        """Return the only element of operand `index`, which must be a constant."""
        elements = self.known_operand(index)
        if elements.size != 1:
            self.fail(f"operand {index} has {elements.size} elements, expected one")
        return elements.reshape(-1)[0].item()
