"""An op of another dialect while it is converted to braid's: its operands, and what replaces it."""

from collections.abc import Sequence
from typing import Any, Generic, NoReturn, TypeVar, cast

import numpy as np
from xdsl.builder import Builder
from xdsl.ir import Attribute, Operation, SSAValue

from braid.analysis.locations import source_location
from braid.dialects.braid.base import AnyTensor, element_type_of, shape_of
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.dtypes import to_numpy
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.movement import BroadcastOp, ReshapeOp, TransposeOp
from braid.dialects.braid.relayout import Array
from braid.errors import BraidError, UnsupportedError

OpT = TypeVar("OpT", bound=Operation)


class Replacement(Generic[OpT]):
    """An op with the builder of what replaces it; operands are what theirs became."""

    def __init__(self, op: OpT, builder: Builder) -> None:
        self.op = op
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
        """Dim i of the result is dim `permutation[i]`; `value` itself if nothing moves."""
        if list(permutation) == list(range(len(permutation))):
            return value
        return self.emit(TransposeOp.get(value, permutation))

    def broadcast(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """`value` repeated to `shape` of the same rank; itself if it has that."""
        return (
            value if tuple(shape) == shape_of(value) else self.emit(BroadcastOp.get(value, shape))
        )

    def fail(self, message: str) -> NoReturn:
        """The op is not valid."""
        raise BraidError(f"'{self.op.name}': {message}", location=source_location(self.op))

    def unsupported(self, message: str) -> NoReturn:
        """The op is valid, and cannot be converted."""
        raise UnsupportedError(f"'{self.op.name}': {message}", location=source_location(self.op))
