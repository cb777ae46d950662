"""The op that finds the position of an extreme element."""

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import BoolAttr, IntegerAttr, IntegerType, StringAttr, TensorType
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import attr_def, irdl_op_definition, operand_def, result_def

from braid.dialects.braid.base import (
    AnyTensor,
    StructuredOp,
    element_type_of,
    extents_of,
    integer,
    require,
    require_computed,
    require_dim,
    require_one_of,
    shape_of,
    tensor_type,
)
from braid.dialects.braid.dtypes import i1, i64, is_float
from braid.dialects.braid.reduction import neutral_of, reduce_stage
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.scalar import Apply, Argument, Literal, Position, Scalar
from braid.dialects.braid.size_facts import may_be_at_most
from braid.dialects.braid.structure import Access, OperandSource, Stage, StageSource, Structure


@irdl_op_definition
class ArgReduceOp(StructuredOp):
    """Index of the extreme element along `dim`, which stays with size 1, as i64.

    `kind` is `max` or `min`; of equal elements the first counts, or the last with
    `select_last`. A NaN counts as the extreme element.
    Fails verification for another `kind`, or a dim that does not exist or has no elements.

    ```mlir
    %y = braid.arg_reduce %x {kind = "max", dim = 1 : i64, select_last = false}
        : (tensor<2x3xf32>) -> tensor<2x1xi64>
    ```
    """

    name = "braid.arg_reduce"

    input = operand_def(TensorType)
    kind = attr_def(StringAttr)
    dim = attr_def(IntegerAttr[IntegerType])
    select_last = attr_def(BoolAttr)
    output = result_def(TensorType)

    @staticmethod
    def get(
        input: SSAValue | Operation, kind: str, dim: int, *, select_last: bool = False
    ) -> "ArgReduceOp":
        """Build the search for an extreme element from plain values."""
        return ArgReduceOp.on(
            input,
            kind=StringAttr(kind),
            dim=integer(dim),
            select_last=IntegerAttr(int(select_last), i1),
        )

    def infer_result_types(self) -> Sequence[AnyTensor]:
        """Return the shape of the input with extent 1 along the dim, of i64."""
        shape, dim = list(extents_of(self.input)), self.dim.value.data
        require_one_of("kind", self.kind.data, ("max", "min"))
        require_computed(element_type_of(self.input))
        require_dim(dim, len(shape))
        require(may_be_at_most(1, shape[dim]), f"dim {dim} has no elements")
        shape[dim] = 1
        return [tensor_type(i64, shape)]

    def evaluate(self, *operands: Array) -> tuple[Array, ...]:
        """Return numpy's argmax or argmin; the last of equals is the first from the other end."""
        x, dim = operands[0], self.dim.value.data
        search = np.argmax if self.kind.data == "max" else np.argmin
        if not self.select_last.value.data:
            return (search(x, axis=dim, keepdims=True).astype(np.int64),)
        from_end = search(np.flip(x, dim), axis=dim, keepdims=True)
        return ((x.shape[dim] - 1 - from_end).astype(np.int64),)

    def structure(self) -> Structure:
        """Return stages for the extreme value, then for its least (or largest) index."""
        shape, dim = shape_of(self.input), self.dim.value.data
        element_type, last = element_type_of(self.input), bool(self.select_last.value.data)
        kind = "maximum" if self.kind.data == "max" else "minimum"
        extreme = reduce_stage(kind, OperandSource(0), shape, [dim], element_type)
        is_extreme: Scalar = Apply("eq", (Argument(0), Argument(1)), i1)
        if is_float(element_type):
            is_extreme = Apply("or", (is_extreme, Apply("isnan", (Argument(0),), i1)), i1)
        combine = "maximum" if last else "minimum"
        nowhere = Literal(neutral_of(combine, i64), i64)
        body = Apply("select", (is_extreme, Position(len(shape), i64), nowhere), i64)
        search = reduce_stage(combine, OperandSource(0), shape, [dim], i64, body)
        best = Access(StageSource(0), search.result)
        found = Stage(
            search.kinds,
            search.extents,
            (*search.reads, best),
            search.result,
            search.result_shape,
            i64,
            body,
            combine,
        )
        return Structure((extreme, found), (1,))
