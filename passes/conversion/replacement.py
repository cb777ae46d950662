"""Replace an op of another dialect by ops of braid, built in its place."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Generic, NoReturn, TypeVar, cast

import numpy as np
from xdsl.builder import Builder
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from braid.analysis.diagnostics.locations import source_location
from braid.dialects.braid.base import (
    AnyTensor,
    TensorOp,
    element_type_of,
    extents_of,
    require_dim,
    shape_of,
)
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.dtypes import i1, i64, is_float, to_numpy
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.movement import (
    BroadcastOp,
    PadOp,
    ReshapeOp,
    TransposeOp,
    reshape_dim_by_dim,
)
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.size_evaluation import SIZES, as_array, is_sized
from braid.dialects.braid.sized_ops import SizeValuesOp, pad_of, slice_of
from braid.dialects.braid.sizes import assumptions_of
from braid.passes.conversion.known_values import known_values, sizes_computed
from braid.support.errors import BraidError, UnsupportedError
from braid.support.option_names import option_text
from braid.support.sizes.assumptions import Answer, Assumptions
from braid.support.sizes.expression import Extent, Size
from braid.support.sizes.operators import product_of

OpT = TypeVar("OpT", bound=Operation)

_ARITHMETIC = frozenset(
    {"abs", "add", "div", "maximum", "minimum", "mul", "neg", "pow", "rem", "sign", "sub"}
)
"""Functions that are not applied to bools, since sums and the order of one-bit numbers differ from
those of 0 and 1."""


class Replacement(Generic[OpT]):
    """An op with the builder of what replaces it; operands are what theirs became.

    A failure raises VerifyException without a location: see `Converters`.
    """

    def __init__(self, op: OpT) -> None:
        self.op = op
        self.inserted: list[Operation] = []
        self._builder = Builder(
            InsertPoint.before(op), operation_insertion_handler=[self.inserted.append]
        )

    def value(self, index: int) -> SSAValue:
        """Return operand `index`."""
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

    def extents(self, value: SSAValue) -> tuple[Extent, ...]:
        """Return the shape of `value`, with the sizes of open dims.

        Raises UnsupportedError if the size of an open dim is unknown.
        """
        shape = extents_of(value)
        if DYNAMIC in shape:
            self.unsupported(
                f"a value has type {value.type}, and nothing says how large its open dims are",
                hint="compute its shape from the shapes of inputs, or export the model with sizes",
            )
        return shape

    def numbers(self, value: SSAValue) -> tuple[int, ...]:
        """Return the shape of `value`; raise UnsupportedError where a dim is open."""
        return tuple(self.fixed(extent) for extent in self.extents(value))

    def fixed(self, extent: Extent) -> int:
        """Return an extent that is a number; raise UnsupportedError for a size."""
        if isinstance(extent, int):
            return extent
        self.unsupported(
            f"an extent has the open size '{extent}', which this op must know",
            hint=f"fix it: {option_text('dims')} or {option_text('shapes')}",
        )

    def declared_extents(self, index: int, known: Sequence[Extent | None]) -> tuple[Extent, ...]:
        """Return the shape of result `index`, whose open dims have the sizes `known`.

        Raises UnsupportedError if a dim is open and its size is None.
        """
        shape = cast(AnyTensor, self.op.results[index].type).get_shape()
        extents: list[Extent] = []
        for dim, (extent, size) in enumerate(zip(shape, known, strict=True)):
            if extent == DYNAMIC and size is None:
                self.unsupported(
                    f"nothing says how large dim {dim} of its result is",
                    hint="use the op of a computed shape, which StableHLO calls 'dynamic_…'",
                )
            extents.append(size if extent == DYNAMIC and size is not None else extent)
        return tuple(extents)

    @cached_property
    def assumptions(self) -> Assumptions:
        """Return the assumptions about symbols of the function around the op."""
        parent = self.op.parent_op()
        while parent is not None and not isinstance(parent, FuncOp):
            parent = parent.parent_op()
        return SIZES if parent is None else assumptions_of(parent)

    def known_values(self, value: SSAValue) -> Array | None:
        """Return the elements of a constant, or numbers and sizes: see `known_values`."""
        return known_values(value, self.assumptions)

    def size_values(self, index: int) -> tuple[Extent, ...]:
        """Return operand `index`, whose elements must be constants or sizes, as extents."""
        array = self.known_values(self.value(index))
        if array is None:
            self.unsupported(
                f"operand {index} is computed from data, expected numbers and sizes of inputs",
                hint="compute it before the model runs",
            )
        if element_type_of(self.value(index)) == i1 or is_float(element_type_of(self.value(index))):
            self.fail(f"operand {index} has type {self.value(index).type}, expected integers")
        return tuple(e if isinstance(e, Size) else int(e) for e in array.reshape(-1).tolist())

    def emit(self, op: Operation) -> SSAValue:
        """Insert an op of one result at the place of this one, or its value where that is sizes."""
        array = sizes_computed(op, self.assumptions) if isinstance(op, TensorOp) else None
        if array is None:
            return self.insert(op)[0]
        element_type = element_type_of(op.results[0])
        op.erase()
        return self.sizes(array, element_type)

    def sizes(self, array: Array, element_type: Attribute) -> SSAValue:
        """Return numbers and sizes as integers of a type; see `dialects.braid.size_evaluation`."""
        if not is_sized(array):
            return self.constant(array.astype(to_numpy(element_type)))
        (values,) = self.insert(SizeValuesOp.of(array.reshape(-1).tolist(), array.shape))
        if element_type == i64:
            return values
        return self.insert(elementwise("cast", values, element_type=element_type))[0]

    def insert(self, op: Operation) -> Sequence[SSAValue]:
        """Insert an op at the place of this one, and return its results."""
        op.location = self.op.location
        if isinstance(op, TensorOp):
            op.verify_()
        return self._builder.insert(op).results

    @contextmanager
    def inside(self, block: Block) -> Generator[None]:
        """Insert at the end of `block`, a region of the op's replacement."""
        place = self._builder.insertion_point
        self._builder.insertion_point = InsertPoint.at_end(block)
        try:
            yield
        finally:
            self._builder.insertion_point = place

    def constant(self, array: Array) -> SSAValue:
        """Return a constant."""
        return self.emit(ConstantOp.of(array))

    def scalar(self, number: Any, like: SSAValue) -> SSAValue:
        """Return a number in the element type of `like`, with its rank and extents of 1.

        A value out of the range of a float becomes infinite.
        """
        dtype = to_numpy(element_type_of(like))
        with np.errstate(over="ignore"):
            return self.constant(np.full([1] * len(shape_of(like)), number, dtype))

    def size_scalar(self, size: Extent, like: SSAValue) -> SSAValue:
        """Return a size in the element type of `like`, with its rank and extents of 1."""
        return self.sizes(as_array([size], [1] * len(shape_of(like))), element_type_of(like))

    def apply(self, name: str, *operands: SSAValue) -> SSAValue:
        """Apply the elementwise function `name`."""
        if name in _ARITHMETIC and any(element_type_of(operand) == i1 for operand in operands):
            self.fail(f"'{name}' of bools, expected numbers")
        return self.emit(elementwise(name, *operands))

    def cast(self, value: SSAValue, element_type: Attribute) -> SSAValue:
        """Return `value` in another element type; itself if it has that."""
        if element_type_of(value) == element_type:
            return value
        return self.emit(elementwise("cast", value, element_type=element_type))

    def clamp(self, value: SSAValue, low: SSAValue, high: SSAValue) -> SSAValue:
        """Return `value`, clamped to `low` and `high`."""
        return self.apply("minimum", self.apply("maximum", value, low), high)

    def sigmoid(self, value: SSAValue) -> SSAValue:
        """Return `1 / (1 + exp(-value))`."""
        exponential = self.apply("exp", self.apply("neg", value))
        return self.apply("reciprocal", self.apply("add", exponential, self.scalar(1, value)))

    def reshape(self, value: SSAValue, shape: Sequence[Extent]) -> SSAValue:
        """Return `value` in another shape; itself if it has that."""
        if tuple(shape) == extents_of(value):
            return value
        return self.emit(ReshapeOp.get(value, shape))

    def reshape_as_declared(self, value: SSAValue) -> SSAValue:
        """Return `value` in the shape of the only result, one dim of which may be open."""
        shape = self.result_type.get_shape()
        rest = product_of(extent for extent in shape if extent != DYNAMIC)
        elements = product_of(self.extents(value))
        is_derived = shape.count(DYNAMIC) == 1 and rest != 0
        size = self._quotient(elements, rest) if is_derived else None
        return self.reshape(value, self.declared_extents(0, [size] * len(shape)))

    def _quotient(self, elements: Extent, count: Extent) -> Extent:
        if SIZES.divides(count, elements) is Answer.NO:
            self.fail(f"{elements} elements cannot have an extent of {count}")
        return elements // count

    def with_extents(self, value: SSAValue, shape: Sequence[Extent]) -> SSAValue:
        """Return `value` with the extents of `shape`; each run checks that they hold."""
        return reshape_dim_by_dim(value, shape, self.emit)

    def transpose(self, value: SSAValue, permutation: Sequence[int]) -> SSAValue:
        """Return `value` transposed: dim i of the result is dim `permutation[i]`; itself if nothing
        moves.
        """
        if list(permutation) == list(range(len(shape_of(value)))):
            return value
        return self.emit(TransposeOp.get(value, permutation))

    def broadcast(self, value: SSAValue, shape: Sequence[Extent]) -> SSAValue:
        """Return `value` repeated to `shape` of the same rank; itself if it has that."""
        if tuple(shape) == extents_of(value):
            return value
        return self.emit(BroadcastOp.get(value, shape))

    def reverse(self, value: SSAValue, dims: Sequence[int]) -> SSAValue:
        """Return `value` with the elements of these dims in reverse."""
        shape = self.extents(value)
        for dim in dims:
            require_dim(dim, len(shape))
        if not dims or 0 in shape:
            return value
        offsets = [n - 1 if dim in dims else 0 for dim, n in enumerate(shape)]
        strides = [-1 if dim in dims else 1 for dim in range(len(shape))]
        return self.emit(slice_of(value, offsets, shape, strides))

    def pad(
        self, value: SSAValue, low: Sequence[int], high: Sequence[int], number: Any = 0
    ) -> SSAValue:
        """Return `value` with these counts of elements around it; negative counts remove
        elements.
        """
        if any(count > 0 for count in (*low, *high)):
            more = [[max(count, 0) for count in side] for side in (low, high)]
            value = self.emit(PadOp.get(value, more[0], more[1], number))
        if any(count < 0 for count in (*low, *high)):
            starts = [max(-count, 0) for count in low]
            ends = [max(-count, 0) for count in high]
            shape = self.extents(value)
            sizes = [n - a - b for n, a, b in zip(shape, starts, ends, strict=True)]
            value = self.emit(slice_of(value, starts, sizes))
        return value

    def padded(
        self, value: SSAValue, low: Sequence[Extent], high: Sequence[Extent], number: Any = 0
    ) -> tuple[SSAValue, list[int], list[int]]:
        """Return `value` and how much an op around it has to pad, which can do so by numbers.

        It cannot where a count is negative or a size: these are done before. Fails for a size that
        may be negative.
        """
        counts = [count for count in (*low, *high) if isinstance(count, int)]
        if len(counts) < len(low) + len(high):
            for count in (*low, *high):
                if self.assumptions.at_most(0, count) is not Answer.YES:
                    self.unsupported(
                        f"it pads by '{count}', which may be negative",
                        hint="slice its operand instead, or constrain the sizes of inputs",
                    )
            return self.emit(pad_of(value, low, high, number)), [0] * len(low), [0] * len(high)
        before, after = counts[: len(low)], counts[len(low) :]
        if min(counts, default=0) < 0:
            return self.pad(value, before, after, number), [0] * len(low), [0] * len(high)
        return value, before, after

    def spread(self, value: SSAValue, steps: Sequence[int], number: Any = 0) -> SSAValue:
        """Return `value` with its elements `steps` apart in each dim, and `number` between them."""
        for dim, step in enumerate(steps):
            if step < 1:
                self.fail(f"elements of dim {dim} are {step} apart, expected at least 1")
            if step == 1 or shape_of(value)[dim] == 0:
                continue
            shape = list(self.extents(value))
            apart = self.reshape(value, [*shape[: dim + 1], 1, *shape[dim + 1 :]])
            high = [0] * (len(shape) + 1)
            high[dim + 1] = step - 1
            shape[dim] = shape[dim] * step
            joined = self.reshape(self.pad(apart, [0] * len(high), high, number), shape)
            end = [0] * len(shape)
            end[dim] = 1 - step
            value = self.pad(joined, [0] * len(shape), end)
        return value

    def fail(self, message: str) -> NoReturn:
        """Raise the error that the op is not valid."""
        raise BraidError(f"'{self.op.name}': {message}", location=source_location(self.op))

    def unsupported(self, message: str, *, hint: str) -> NoReturn:
        """Raise the error that the op is valid but cannot be converted; `hint` is the way out."""
        raise UnsupportedError(
            f"'{self.op.name}': {message}", location=source_location(self.op), hint=hint
        )
