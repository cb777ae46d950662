"""What replaces an op of another dialect: ops of braid, built in its place."""

from collections.abc import Sequence
from typing import Any, Generic, NoReturn, TypeVar, cast

import numpy as np
from xdsl.builder import Builder
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from braid.analysis.diagnostics.locations import source_location
from braid.dialects.braid.base import AnyTensor, TensorOp, element_type_of, require_dim, shape_of
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.dtypes import i1, to_numpy
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.movement import BroadcastOp, PadOp, ReshapeOp, SliceOp, TransposeOp
from braid.dialects.braid.relayout import Array
from braid.support.errors import BraidError, UnsupportedError

OpT = TypeVar("OpT", bound=Operation)

_ARITHMETIC = frozenset(
    {"abs", "add", "div", "maximum", "minimum", "mul", "neg", "pow", "rem", "sign", "sub"}
)
"""Not on bools: as numbers of one bit they have other sums, and another order, than as 0 and 1."""


class Replacement(Generic[OpT]):
    """An op with the builder of what replaces it; operands are what theirs became.

    What cannot be built raises VerifyException, for want of a place: see `Converters`.
    """

    def __init__(self, op: OpT) -> None:
        self.op = op
        self.inserted: list[Operation] = []
        self._builder = Builder(
            InsertPoint.before(op), operation_insertion_handler=[self.inserted.append]
        )

    def value(self, index: int) -> SSAValue:
        """Operand `index`."""
        if index >= len(self.op.operands):
            self.fail(f"expected an operand {index}")
        return self.op.operands[index]

    @property
    def result_type(self) -> AnyTensor:
        """The type of the only result."""
        if len(self.op.results) != 1:
            self.fail(f"expected one result, got {len(self.op.results)}")
        return cast(AnyTensor, self.op.results[0].type)

    @property
    def element_type(self) -> Attribute:
        """The element type of the only result."""
        return self.result_type.element_type

    def extents(self, value: SSAValue) -> tuple[int, ...]:
        """The shape of `value`, which must be known."""
        shape = shape_of(value)
        if DYNAMIC in shape:
            self.unsupported(
                f"a value has type {value.type}, expected a static shape",
                hint="export the model with the sizes of its inputs",
            )
        return shape

    def emit(self, op: Operation) -> SSAValue:
        """Insert an op of one result at the place of this one; the result."""
        return self.insert(op)[0]

    def insert(self, op: Operation) -> Sequence[SSAValue]:
        """Insert an op at the place of this one; its results."""
        op.location = self.op.location
        if isinstance(op, TensorOp):
            op.verify_()
        return self._builder.insert(op).results

    def constant(self, array: Array) -> SSAValue:
        """A constant."""
        return self.emit(ConstantOp.of(array))

    def scalar(self, number: Any, like: SSAValue) -> SSAValue:
        """A number in the element type of `like`, with its rank and extents of 1.

        What is out of the range of a float is infinite.
        """
        dtype = to_numpy(element_type_of(like))
        with np.errstate(over="ignore"):
            return self.constant(np.full([1] * len(shape_of(like)), number, dtype))

    def apply(self, name: str, *operands: SSAValue) -> SSAValue:
        """Elementwise `name`."""
        if name in _ARITHMETIC and any(element_type_of(operand) == i1 for operand in operands):
            self.fail(f"'{name}' of bools, expected numbers")
        return self.emit(elementwise(name, *operands))

    def cast(self, value: SSAValue, element_type: Attribute) -> SSAValue:
        """`value` in another element type; itself if it has that."""
        if element_type_of(value) == element_type:
            return value
        return self.emit(elementwise("cast", value, element_type=element_type))

    def clamp(self, value: SSAValue, low: SSAValue, high: SSAValue) -> SSAValue:
        """`value`, or the nearer of `low` and `high` where it is outside of these."""
        return self.apply("minimum", self.apply("maximum", value, low), high)

    def sigmoid(self, value: SSAValue) -> SSAValue:
        """`1 / (1 + exp(-value))`."""
        exponential = self.apply("exp", self.apply("neg", value))
        return self.apply("reciprocal", self.apply("add", exponential, self.scalar(1, value)))

    def reshape(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """`value` in another shape; itself if it has that."""
        return value if tuple(shape) == shape_of(value) else self.emit(ReshapeOp.get(value, shape))

    def transpose(self, value: SSAValue, permutation: Sequence[int]) -> SSAValue:
        """Dim i of the result is dim `permutation[i]`; `value` itself if nothing moves."""
        if list(permutation) == list(range(len(shape_of(value)))):
            return value
        return self.emit(TransposeOp.get(value, permutation))

    def broadcast(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """`value` repeated to `shape` of the same rank; itself if it has that."""
        return (
            value if tuple(shape) == shape_of(value) else self.emit(BroadcastOp.get(value, shape))
        )

    def reverse(self, value: SSAValue, dims: Sequence[int]) -> SSAValue:
        """`value` with the elements of these dims in reverse."""
        shape = self.extents(value)
        for dim in dims:
            require_dim(dim, len(shape))
        if not dims or 0 in shape:
            return value
        offsets = [n - 1 if dim in dims else 0 for dim, n in enumerate(shape)]
        strides = [-1 if dim in dims else 1 for dim in range(len(shape))]
        return self.emit(SliceOp.get(value, offsets, shape, strides))

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
            shape = self.extents(value)
            sizes = [n - a - b for n, a, b in zip(shape, starts, ends, strict=True)]
            value = self.emit(SliceOp.get(value, starts, sizes))
        return value

    def spread(self, value: SSAValue, steps: Sequence[int], number: Any = 0) -> SSAValue:
        """`value` with its elements `steps` apart in each dim, and `number` between them."""
        for dim, step in enumerate(steps):
            if step < 1:
                self.fail(f"elements of dim {dim} are {step} apart, expected at least 1")
            if step == 1 or shape_of(value)[dim] == 0:
                continue
            shape = list(self.extents(value))
            apart = self.reshape(value, [*shape[: dim + 1], 1, *shape[dim + 1 :]])
            high = [0] * (len(shape) + 1)
            high[dim + 1] = step - 1
            shape[dim] *= step
            joined = self.reshape(self.pad(apart, [0] * len(high), high, number), shape)
            end = [0] * len(shape)
            end[dim] = 1 - step
            value = self.pad(joined, [0] * len(shape), end)
        return value

    def fail(self, message: str) -> NoReturn:
        """The op is not valid."""
        raise BraidError(f"'{self.op.name}': {message}", location=source_location(self.op))

    def unsupported(self, message: str, *, hint: str) -> NoReturn:
        """The op is valid, and cannot be converted; `hint` is the way out."""
        raise UnsupportedError(
            f"'{self.op.name}': {message}", location=source_location(self.op), hint=hint
        )
