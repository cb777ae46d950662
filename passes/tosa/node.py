"""One op of TOSA while it is converted: its fields."""

from collections.abc import Callable
from importlib import import_module
from typing import Any, cast

import numpy as np
from xdsl.builder import Builder
from xdsl.dialects.builtin import (
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IntegerAttr,
    StringAttr,
)
from xdsl.ir import OpResult, SSAValue

from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.dtypes import numpy_from_dense
from braid.dialects.braid.relayout import Array
from braid.dialects.tosa import TosaOp
from braid.passes.replacement import Replacement

Converter = Callable[["TosaNode"], SSAValue]

_GROUPS = ("elementwise", "integers", "movement", "reduction", "resize", "windows")
"""The modules with converters."""

_converters: dict[str, Converter] = {}


def converter(*names: str) -> Callable[[Converter], Converter]:
    """The function converts the ops of these names."""

    def register(function: Converter) -> Converter:
        _converters.update(dict.fromkeys(names, function))
        return function

    return register


def converter_of(name: str) -> Converter | None:
    """What converts the op of this name, given without `tosa.`."""
    for group in _GROUPS:
        import_module(f"braid.passes.tosa.{group}")
    return _converters.get(name)


class TosaNode(Replacement[TosaOp]):
    """An op of TOSA, with what it says about itself."""

    def __init__(self, op: TosaOp, builder: Builder) -> None:
        super().__init__(op, builder)
        self.name = op.name.removeprefix("tosa.")

    def known(self, index: int) -> Array:
        """The elements of operand `index`, which must be a constant."""
        value = self.value(index)
        owner = value.owner if isinstance(value, OpResult) else None
        if isinstance(owner, ConstantOp):
            return numpy_from_dense(owner.value)
        if isinstance(owner, TosaOp):
            elements = owner.field("values")
            if isinstance(elements, DenseIntOrFPElementsAttr):
                return np.array(elements.get_values())
        self.unsupported(f"operand {index} is not a constant")

    def known_integers(self, index: int) -> list[int]:
        """The elements of operand `index`, a constant, as numbers."""
        return [int(number) for number in self.known(index).reshape(-1)]

    def zero_point(self, index: int) -> int:
        """The zero point in operand `index`, 0 where the op has no such operand."""
        if index >= len(self.op.operands):
            return 0
        numbers = set(self.known(index).reshape(-1).tolist())
        if len(numbers) > 1:
            self.unsupported("zero points differ by channel")
        return int(numbers.pop())

    def integers(self, name: str) -> list[int]:
        """A field that is a list of integers."""
        field = self.op.field(name)
        if not isinstance(field, DenseArrayBase):
            self.fail(f"expected a list '{name}'")
        return [int(number) for number in cast(Any, field).get_values()]

    def number(self, name: str) -> Any:
        """A field that is a number or a bool."""
        field = self.op.field(name)
        if not isinstance(field, IntegerAttr | FloatAttr):
            self.fail(f"expected a number '{name}'")
        return cast(Any, field).value.data

    def flag(self, name: str) -> bool:
        """A field that is a bool, false where it is missing."""
        field = self.op.field(name)
        return isinstance(field, IntegerAttr) and bool(cast(Any, field).value.data)

    def word(self, name: str, default: str) -> str:
        """A field that is one of a few words."""
        field = self.op.field(name)
        word = getattr(field, "word", field)
        return word.data if isinstance(word, StringAttr) else default

    def require_nan_propagation(self) -> None:
        """Reject the mode that ignores NaNs."""
        if self.word("nan_mode", "PROPAGATE") != "PROPAGATE":
            self.unsupported("NaNs are ignored by its 'nan_mode', and braid propagates them")
