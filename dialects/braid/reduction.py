"""Reduction along dims."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import (
    DenseArrayBase,
    Float32Type,
    IntegerType,
    StringAttr,
    TensorType,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.irdl import attr_def, irdl_op_definition, operand_def, result_def

from braid.dialects.braid.accumulation import AccumulatingOp
from braid.dialects.braid.base import (
    AnyTensor,
    StructuredOp,
    element_type_of,
    extents_of,
    integers,
    require,
    require_computed,
    require_dim,
    require_one_of,
    require_summable,
    shape_of,
    tensor_type,
)
from braid.dialects.braid.dtypes import bytes_of, i1, is_float, is_unsigned
from braid.dialects.braid.numpy_functions import by_order, from_order
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.scalar import Argument, Scalar
from braid.dialects.braid.structure import (
    Access,
    OperandSource,
    Source,
    Stage,
    Structure,
    neutral_element,
    parallel,
    reduction,
)

UFUNCS: dict[str, np.ufunc] = {
    "add": np.add,
    "mul": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
}
"""The kinds of reductions and their numpy functions."""


def neutral_of(kind: str, element_type: Attribute) -> float | int | bool:
    """Return the neutral element of reduction `kind` on values of this type."""
    bits = 1 if element_type == i1 else 8 * bytes_of(element_type)
    return neutral_element(kind, is_float(element_type), bits, is_unsigned(element_type))


def require_reducible(kind: str, element_type: Attribute) -> None:
    """Raise VerifyException unless `kind` is a reduction of values of this type."""
    require_one_of("kind", kind, UFUNCS)
    require_computed(element_type)
    bitwise = kind in ("and", "or")
    require(
        not (bitwise and is_float(element_type)),
        "kind '{}' on element type {}, expected an integer type",
        kind,
        element_type,
    )
    if kind == "add":
        require_summable(element_type)


def require_sum(kind: str, accumulator: IntegerType | Float32Type | None) -> None:
    """Raise VerifyException for an accumulator of an op that is no sum of integers."""
    require(
        not isinstance(accumulator, Float32Type),
        "accumulator f32, expected an integer type: sums of floats are cast before",
    )
    require(
        accumulator is None or kind == "add",
        f"kind '{kind}' with an accumulator, expected 'add': other kinds need no wider type",
    )


def reduce_stage(
    kind: str,
    source: Source,
    shape: Sequence[int],
    dims: Sequence[int],
    element_type: Attribute,
    body: Scalar | None = None,
) -> Stage:
    """Return the stage that reduces `dims` of `source`, of this shape, to 1 each.

    Dims: those of the result (reduced ones have one iteration), then the reduced dims in the order
    of `dims`. `body` is on the element read, the element itself by default.
    """
    rank = len(shape)
    reduced = {dim: rank + position for position, dim in enumerate(dims)}
    index = [AffineExpr.dimension(reduced.get(dim, dim)) for dim in range(rank)]
    kept = tuple(1 if dim in reduced else extent for dim, extent in enumerate(shape))
    count = rank + len(dims)
    result = tuple(AffineExpr.dimension(dim) for dim in range(rank))
    return Stage(
        parallel(rank) + reduction(len(dims)),
        (*kept, *(shape[dim] for dim in dims)),
        (Access(source, AffineMap(count, 0, tuple(index))),),
        AffineMap(count, 0, result),
        kept,
        element_type,
        Argument(0) if body is None else body,
        kind,
    )


@irdl_op_definition
class ReduceOp(AccumulatingOp, StructuredOp):
    """Combines all elements along `dims`, which stay with size 1.

    `kind` is `add`, `mul`, `maximum`, `minimum` (NaN if any is NaN), `and` or `or` (integers,
    bitwise). A dim of extent 0 gives the neutral element. Narrow integers are added up in
    `accumulator`, where it is given.
    Fails verification for a dim that does not exist or is named twice, or another `kind`.

    ```mlir
    %y = braid.reduce %x {kind = "add", dims = array<i64: 1>}
        : (tensor<2x3xf32>) -> tensor<2x1xf32>
    ```
    """

    name = "braid.reduce"

    input = operand_def(TensorType)
    kind = attr_def(StringAttr)
    dims = attr_def(DenseArrayBase[IntegerType])
    output = result_def(TensorType)

    @staticmethod
    def get(
        input: SSAValue | Operation,
        kind: str,
        dims: Sequence[int],
        accumulator: IntegerType | None = None,
    ) -> "ReduceOp":
        """Build a reduction from plain values."""
        return ReduceOp.on(
            input, kind=StringAttr(kind), dims=integers(dims), accumulator=accumulator
        )

    def infer_result_types(self) -> Sequence[AnyTensor]:
        """See the class."""
        shape, dims = list(extents_of(self.input)), self.dims.get_values()
        element_type = element_type_of(self.input)
        require_reducible(self.kind.data, element_type)
        require(len(set(dims)) == len(dims), f"dims are {dims}, expected each at most once")
        for dim in dims:
            require_dim(dim, len(shape))
            shape[dim] = 1
        require_sum(self.kind.data, self.accumulator)
        return [tensor_type(self.sum_type(element_type), shape)]

    def evaluate(self, *operands: Array) -> tuple[Array, ...]:
        """Return numpy's reduction; floats are summed in f64.

        In f32 numpy would add non-contiguous elements one by one.
        """
        x, kind = operands[0], self.kind.data
        initial: Any = neutral_of(kind, self.result_type().element_type)
        wide = self.widened(x)
        is_rounded = kind == "add" and wide.dtype == np.float32
        if kind in ("maximum", "minimum"):
            initial = by_order(kind, np.array(initial, wide.dtype))
        result = UFUNCS[kind].reduce(
            by_order(kind, wide),
            axis=self.dims.get_values(),
            dtype=np.float64 if is_rounded else None,
            keepdims=True,
            initial=initial,
        )
        return (self.narrowed(from_order(result, wide.dtype), x),)

    def structure(self) -> Structure:
        """Return one stage; see `reduce_stage`."""
        stage = reduce_stage(
            self.kind.data,
            OperandSource(0),
            shape_of(self.input),
            self.dims.get_values(),
            self.result_type().element_type,
            self.addend(0),
        )
        return Structure((stage,), (0,))
