"""Ops with sizes as attributes, which become plain ops once all of these are numbers.

They have no structure, since users of structures see numbers only in attributes. The CPU's fallback
has kernels for them.
"""

import math
from abc import abstractmethod
from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import (
    AnyFloat,
    BoolAttr,
    DenseArrayBase,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    TensorType,
    i64,
)
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import attr_def, irdl_op_definition, operand_def, result_def

from braid.dialects.braid.base import (
    AnyTensor,
    TensorOp,
    element_type_of,
    extents_of,
    integer,
    integers,
    require,
    require_computed,
    require_dim,
    tensor_type,
)
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.dtypes import i1, number_attribute
from braid.dialects.braid.movement import PadOp, SliceOp
from braid.dialects.braid.regions import GroupOp
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.size_facts import may_be_at_most
from braid.dialects.braid.sizes import SizesAttr
from braid.dialects.braid.slicing import padded_extents, require_padding_value, require_sliced
from braid.dialects.braid.sorting import TopKOp
from braid.support.errors import BraidError
from braid.support.sizes.expression import Extent


class SizedOp(TensorOp):
    """Base of these ops."""

    @abstractmethod
    def bound(self) -> TensorOp | None:
        """Return the plain op where all sizes are numbers, not inserted; None elsewhere."""

    def evaluate(self, *operands: Array) -> tuple[Array, ...]:
        """Return the result of the plain op. Raises BraidError where a size has no value yet."""
        plain = self.bound()
        if plain is None:
            raise BraidError(
                f"'{self.name}' has sizes without values",
                hint="bind them before the model runs: bind-sizes",
            )
        return plain.evaluate(*operands)


def has_sizes(op: Operation) -> bool:
    """Return whether an op is such, or a group with one."""
    if isinstance(op, GroupOp):
        return any(isinstance(inner, SizedOp) for inner in op.body.block.ops)
    return isinstance(op, SizedOp)


@irdl_op_definition
class SizeValuesOp(SizedOp):
    """The values of sizes, as data that other ops compute with.

    Result: a tensor of i64 with as many elements as there are sizes, row-major.
    Fails verification for another number of elements.

    ```mlir
    %0 = braid.size_values {values = #braid.sizes<["batch", "2 * sequence"]>} : tensor<2xi64>
    ```
    """

    name = "braid.size_values"

    values = attr_def(SizesAttr)
    output = result_def(TensorType)

    assembly_format = "attr-dict `:` type($output)"

    @staticmethod
    def of(values: Sequence[Extent], shape: Sequence[int]) -> "SizeValuesOp":
        """Return the op that gives sizes as a tensor of this shape."""
        return SizeValuesOp.declared(tensor_type(i64, shape), values=SizesAttr.of(values))

    def infer_result_types(self) -> Sequence[AnyTensor]:
        """Return the declared shape, which must have an element for each size."""
        shape, count = self.result_type().get_shape(), len(self.values.texts)
        require(math.prod(shape) == count, f"{count} sizes cannot take shape {list(shape)}")
        return [tensor_type(i64, shape)]

    def bound(self) -> ConstantOp | None:
        """Return the constant where all sizes are numbers."""
        numbers = _numbers(self.values)
        if numbers is None:
            return None
        shape = self.result_type().get_shape()
        return ConstantOp.of(np.array(numbers, np.int64).reshape(shape))


@irdl_op_definition
class SizedSliceOp(SizedOp):
    """A `braid.slice` whose offsets and extents are sizes; strides are numbers.

    Operand: any shape; the lists have one entry per dim. Result: extents `sizes`.
    Fails verification for lists of the wrong length, and for elements that are outside of the
    operand at all sizes.

    ```mlir
    %y = braid.sized_slice %x {offsets = #braid.sizes<["n - 2"]>, sizes = #braid.sizes<["2"]>,
        strides = array<i64: 1>} : (tensor<?xf32, #braid.sizes<["n"]>>) -> tensor<2xf32>
    ```
    """

    name = "braid.sized_slice"

    input = operand_def(TensorType)
    offsets = attr_def(SizesAttr)
    sizes = attr_def(SizesAttr)
    strides = attr_def(DenseArrayBase[IntegerType])
    output = result_def(TensorType)

    def infer_result_types(self) -> Sequence[AnyTensor]:
        """Return the declared sizes; every element must exist in the operand at some sizes."""
        sizes, strides = self.sizes.get_values(), self.strides.get_values()
        require_sliced(extents_of(self.input), self.offsets.get_values(), sizes, strides)
        return [tensor_type(element_type_of(self.input), sizes)]

    def bound(self) -> SliceOp | None:
        """Return the plain slice where all sizes are numbers."""
        offsets, sizes = _numbers(self.offsets), _numbers(self.sizes)
        if offsets is None or sizes is None:
            return None
        return SliceOp.get(self.input, offsets, sizes, self.strides.get_values())


@irdl_op_definition
class SizedPadOp(SizedOp):
    """A `braid.pad` of which the numbers of elements before and after each dim are sizes.

    Operand: any shape; the lists have one entry per dim. Result: extents `low + input + high`.
    Fails verification for lists of the wrong length, entries that are negative at all sizes, or a
    value of another type than the elements.

    ```mlir
    %y = braid.sized_pad %x {low = #braid.sizes<["0"]>, high = #braid.sizes<["16 - n"]>,
        value = 0.0 : f32} : (tensor<?xf32, #braid.sizes<["n"]>>) -> tensor<16xf32>
    ```
    """

    name = "braid.sized_pad"

    input = operand_def(TensorType)
    low = attr_def(SizesAttr)
    high = attr_def(SizesAttr)
    value = attr_def(FloatAttr[AnyFloat] | IntegerAttr[IntegerType])
    output = result_def(TensorType)

    def infer_result_types(self) -> Sequence[AnyTensor]:
        """See the class."""
        low, high = self.low.get_values(), self.high.get_values()
        extents = padded_extents(extents_of(self.input), low, high)
        require_padding_value(self.value, self.input)
        return [tensor_type(element_type_of(self.input), extents)]

    def bound(self) -> PadOp | None:
        """Return the plain padding where all sizes are numbers."""
        low, high = _numbers(self.low), _numbers(self.high)
        if low is None or high is None:
            return None
        return PadOp.get(self.input, low, high, self.value.value.data)


@irdl_op_definition
class SizedTopKOp(SizedOp):
    """A `braid.top_k` that selects as many elements as a size says.

    Operand: any shape. Results: values and i64 indices, both with extent `k` at `dim`.
    Fails verification for a dim that does not exist, a list that is not of one size, and one that
    is negative or more than the extent at all sizes.

    ```mlir
    %v, %i = braid.sized_top_k %x {k = #braid.sizes<["n"]>, dim = 0 : i64, largest = true}
      : (tensor<16xf32>) -> (tensor<?xf32, #braid.sizes<["n"]>>, tensor<?xi64, #braid.sizes<["n"]>>)
    ```
    """

    name = "braid.sized_top_k"

    input = operand_def(TensorType)
    k = attr_def(SizesAttr)
    dim = attr_def(IntegerAttr[IntegerType])
    largest = attr_def(BoolAttr)
    values = result_def(TensorType)
    indices = result_def(TensorType)

    @property
    def count(self) -> Extent:
        """Return how many elements are selected."""
        return self.k.get_values()[0]

    def infer_result_types(self) -> Sequence[AnyTensor]:
        """See the class."""
        shape, dim = list(extents_of(self.input)), self.dim.value.data
        require_computed(element_type_of(self.input))
        require_dim(dim, len(shape))
        require(len(self.k.texts) == 1, f"k is {len(self.k.texts)} sizes, expected one")
        k = self.count
        possible = may_be_at_most(0, k) and may_be_at_most(k, shape[dim])
        require(possible, f"k is {k}, expected 0 to {shape[dim]}, the extent of dim {dim}")
        shape[dim] = k
        return [tensor_type(element_type_of(self.input), shape), tensor_type(i64, shape)]

    def bound(self) -> TopKOp | None:
        """Return the plain selection where the size is a number."""
        k, largest = self.count, bool(self.largest.value.data)
        if not isinstance(k, int):
            return None
        return TopKOp.get(self.input, k, self.dim.value.data, largest=largest)


SIZED_OPS: tuple[type[SizedOp], ...] = (SizeValuesOp, SizedSliceOp, SizedPadOp, SizedTopKOp)
"""All ops with sizes as attributes."""


def slice_of(
    input: SSAValue | Operation,
    offsets: Sequence[Extent],
    sizes: Sequence[Extent],
    strides: Sequence[int] | None = None,
) -> SliceOp | SizedSliceOp:
    """Return the slice at numbers or sizes: a plain one where all are numbers."""
    strides = [1] * len(offsets) if strides is None else strides
    starts, counts = _all_numbers(offsets), _all_numbers(sizes)
    if starts is not None and counts is not None:
        return SliceOp.get(input, starts, counts, strides)
    return SizedSliceOp.on(
        input,
        offsets=SizesAttr.of(offsets),
        sizes=SizesAttr.of(sizes),
        strides=integers(strides),
    )


def pad_of(
    input: SSAValue | Operation, low: Sequence[Extent], high: Sequence[Extent], value: float
) -> PadOp | SizedPadOp:
    """Return the padding by numbers or sizes: a plain one where all are numbers."""
    before, after = _all_numbers(low), _all_numbers(high)
    if before is not None and after is not None:
        return PadOp.get(input, before, after, value)
    number = number_attribute(value, element_type_of(SSAValue.get(input)))
    return SizedPadOp.on(input, low=SizesAttr.of(low), high=SizesAttr.of(high), value=number)


def top_k_of(
    input: SSAValue | Operation, k: Extent, dim: int, *, largest: bool = True
) -> TopKOp | SizedTopKOp:
    """Return the selection of a number or size of elements: a plain one for a number."""
    if isinstance(k, int):
        return TopKOp.get(input, k, dim, largest=largest)
    largest_attr = IntegerAttr(int(largest), i1)
    return SizedTopKOp.on(input, k=SizesAttr.of([k]), dim=integer(dim), largest=largest_attr)


def _numbers(sizes: SizesAttr) -> list[int] | None:
    return _all_numbers(sizes.get_values())


def _all_numbers(extents: Sequence[Extent]) -> list[int] | None:
    """Return the extents if all of them are numbers."""
    numbers = [extent for extent in extents if isinstance(extent, int)]
    return numbers if len(numbers) == len(extents) else None
