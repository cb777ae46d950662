"""Matrix multiplication."""

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import TensorType
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.irdl import irdl_op_definition, operand_def, result_def

from braid.dialects.braid.accumulation import AccumulatingOp
from braid.dialects.braid.base import (
    AnyTensor,
    StructuredOp,
    element_type_of,
    extents_of,
    require,
    require_summable,
    shape_of,
    tensor_type,
)
from braid.dialects.braid.elementwise import repeated_map, repeated_shape
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.scalar import Apply
from braid.dialects.braid.size_facts import may_equal
from braid.dialects.braid.structure import (
    Access,
    OperandSource,
    Stage,
    Structure,
    parallel,
    reduction,
)


@irdl_op_definition
class MatmulOp(AccumulatingOp, StructuredOp):
    """Matrix product of the last two dims; leading dims are batches.

    Operands: `[batch…, M, K]` and `[batch…, K, N]` of one rank; batch dims of size 1 are repeated.
    Result: `[batch…, M, N]`. A transposed operand is a `braid.transpose` or a layout. Narrow
    integers, whose signedness may differ, are multiplied and added up in `accumulator`, if that is
    given: `{accumulator = i32}`; so are f16 and bf16 in f32. Fails verification for other ranks,
    extents or element types.

    ```mlir
    %y = braid.matmul %a, %b : (tensor<128x768xf32>, tensor<768x64xf32>) -> tensor<128x64xf32>
    ```
    """

    name = "braid.matmul"

    lhs = operand_def(TensorType)
    rhs = operand_def(TensorType)
    output = result_def(TensorType)

    def infer_result_types(self) -> Sequence[AnyTensor]:
        """Return the type of the result; raise VerifyException as the class says."""
        a, b = extents_of(self.lhs), extents_of(self.rhs)
        require(len(a) >= 2, f"the left operand has rank {len(a)}, expected at least 2")
        require(len(a) == len(b), f"operands have ranks {len(a)} and {len(b)}")
        element_type = self.sum_type(element_type_of(self.lhs), element_type_of(self.rhs))
        require_summable(element_type)
        require(
            may_equal(a[-1], b[-2]),
            f"the left operand has {a[-1]} columns, the right one {b[-2]} rows",
        )
        batch = repeated_shape([a[:-2], b[:-2]])
        return [tensor_type(element_type, (*batch, a[-2], b[-1]))]

    def evaluate(self, *operands: Array) -> tuple[Array, ...]:
        """Return the result of numpy's matmul; 16-bit floats are summed in 32 bits."""
        return (self.narrowed(np.matmul(*map(self.widened, operands)), operands[0]),)

    def structure(self) -> Structure:
        """Return one stage, whose dims are batch…, m, n, then k."""
        a, b = shape_of(self.lhs), shape_of(self.rhs)
        result = self.result_type()
        shape, rank = result.get_shape(), result.get_num_dims()
        d = [AffineExpr.dimension(i) for i in range(rank + 1)]
        m, n, k = d[rank - 2], d[rank - 1], d[rank]
        batch = shape[:-2]
        left = (*repeated_map(a[:-2], batch).results, m, k)
        right = (*repeated_map(b[:-2], batch).results, k, n)
        element_type = result.element_type
        stage = Stage(
            parallel(rank) + reduction(1),
            (*shape, a[-1] if a[-1] != DYNAMIC else b[-2]),
            (
                Access(OperandSource(0), AffineMap(rank + 1, 0, left)),
                Access(OperandSource(1), AffineMap(rank + 1, 0, right)),
            ),
            AffineMap(rank + 1, 0, tuple(d[:rank])),
            shape,
            element_type,
            Apply("mul", (self.addend(0), self.addend(1)), element_type),
            "add",
        )
        return Structure((stage,), (0,))
