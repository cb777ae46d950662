"""One op of TOSA while it is converted: its operands and fields, and what takes its place."""

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NoReturn, cast

import numpy as np
from xdsl.builder import Builder
from xdsl.dialects.builtin import (
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IntegerAttr,
    StringAttr,
)
from xdsl.ir import Attribute, Operation, OpResult, SSAValue

from braid.analysis.locations import source_location
from braid.dialects.braid.base import AnyTensor, element_type_of, shape_of
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.dtypes import numpy_from_dense, to_numpy
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.movement import BroadcastOp, ReshapeOp, TransposeOp
from braid.dialects.braid.relayout import Array
from braid.dialects.tosa import TosaOp
from braid.errors import BraidError, UnsupportedError

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


class TosaNode:
    """An op with the builder of what replaces it; operands are what theirs became."""

    def __init__(self, op: TosaOp, builder: Builder) -> None:
        self.op = op
        self.name = op.name.removeprefix("tosa.")
        self._builder = builder

    def value(self, index: int) -> SSAValue:
        """Operand `index`."""
        if index >= len(self.op.operands):
            self.fail(f"expected an operand {index}")
        return self.op.operands[index]

    @property
    def result_type(self) -> AnyTensor:
        """The type of the only result."""
        return cast(AnyTensor, self.op.results[0].type)

    @property
    def element_type(self) -> Attribute:
        """The element type of the only result."""
        return self.result_type.element_type

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

    def emit(self, op: Operation) -> SSAValue:
        """Insert an op at the place of this one; its result."""
        op.location = self.op.location
        return self._builder.insert(op).results[0]

    def constant(self, array: Array) -> SSAValue:
        """A constant."""
        return self.emit(ConstantOp.of(array))

    def scalar(self, number: Any, like: SSAValue) -> SSAValue:
        """A number in the element type of `like`, with its rank and extents of 1."""
        dtype = to_numpy(element_type_of(like))
        return self.constant(np.full([1] * len(shape_of(like)), number, dtype))

    def apply(self, name: str, *operands: SSAValue) -> SSAValue:
        """Elementwise `name`."""
        return self.emit(elementwise(name, *operands))

    def cast(self, value: SSAValue, element_type: Attribute) -> SSAValue:
        """`value` in another element type; itself if it has that."""
        if element_type_of(value) == element_type:
            return value
        return self.emit(elementwise("cast", value, element_type=element_type))

    def reshape(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """`value` in another shape; itself if it has that."""
        return value if tuple(shape) == shape_of(value) else self.emit(ReshapeOp.get(value, shape))

    def transpose(self, value: SSAValue, permutation: Sequence[int]) -> SSAValue:
        """Dim i of the result is dim `permutation[i]`."""
        return self.emit(TransposeOp.get(value, permutation))

    def broadcast(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """`value` repeated to `shape` of the same rank; itself if it has that."""
        return (
            value if tuple(shape) == shape_of(value) else self.emit(BroadcastOp.get(value, shape))
        )

    def fail(self, message: str) -> NoReturn:
        """The op is not valid TOSA."""
        raise BraidError(f"'{self.op.name}': {message}", location=source_location(self.op))

    def unsupported(self, message: str) -> NoReturn:
        """The op is valid, and cannot be converted."""
        raise UnsupportedError(f"'{self.op.name}': {message}", location=source_location(self.op))
