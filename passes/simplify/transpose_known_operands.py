"""`transpose-known-operands`: known matrices stand on the right of products, the way they are read.

Kernels have known operands on the right, and store them as they like. A matrix times a vector is
the vector times the transposed matrix, and transposed slabs of a known table are slabs of the
transposed table, which is made at compile time.
"""

from dataclasses import dataclass
from typing import TypeVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from braid.analysis.diagnostics.remarks import emit_remark
from braid.analysis.execution.compute_ops import runtime_functions
from braid.analysis.structure.parameter_expressions import ParameterExpressions
from braid.dialects.braid.base import TensorOp, shape_of
from braid.dialects.braid.clusters import run_together
from braid.dialects.braid.indexing import GatherNdOp, GatherOp, slab_rank
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.movement import ReshapeOp, TransposeOp
from braid.dialects.braid.names import derive_names, union_names

_OpT = TypeVar("_OpT", bound=TensorOp)


@dataclass(frozen=True)
class TransposeKnownOperandsPass(ModulePass):
    """Moves transposes, and products by one vector, to operands that are known at compile time.

    In: any module. Out: a known matrix, or one gathered from a known table, is the right operand
    where it was multiplied by one column; a transpose of slabs of a known table is one of the
    table.

    ```mlir
    %w = braid.gather_nd %table, %i … -> tensor<8x768x512xf32>
    %y = braid.matmul %w, %x : (tensor<8x768x512xf32>, tensor<8x512x1xf32>) -> …
    // becomes
    %t = braid.transpose %table {permutation = array<i64: 0, 2, 1>} …
    %w = braid.gather_nd %t, %i … -> tensor<8x512x768xf32>
    %r = braid.reshape %x : (tensor<8x512x1xf32>) -> tensor<8x1x512xf32>
    %z = braid.matmul %r, %w …
    %y = braid.reshape %z : (tensor<8x1x768xf32>) -> tensor<8x768x1xf32>
    ```
    """

    name = "transpose-known-operands"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite products first: they may leave transposes of slabs."""
        known = ParameterExpressions()
        for func in runtime_functions(op):
            products = [each for each in func.walk() if isinstance(each, MatmulOp)]
            turned = sum(_turn_product(each, known) for each in products)
            transposes = [each for each in func.walk() if isinstance(each, TransposeOp)]
            moved = sum(_move_to_table(each, known) for each in transposes)
            if turned or moved:
                message = f"{turned} products have their matrix on the right, {moved} tables turned"
                emit_remark(func, self.name, message, products=turned, tables=moved)


def _turn_product(product: MatmulOp, known: ParameterExpressions) -> bool:
    """Replace matrix times column by row times transposed matrix, for a known matrix."""
    matrix, column = product.operands
    *batch, rows, columns = shape_of(product.output)
    shapes = (*shape_of(matrix), *shape_of(column))
    if columns != 1 or rows == 1 or DYNAMIC in shapes or not _is_from_known(product, known):
        return False
    if known.is_known(column) or product.accumulator is not None:
        return False
    *outer, depth, _ = shape_of(column)
    row = _named(ReshapeOp.get(column, (*outer, 1, depth)), product, "row")
    turned = _named(TransposeOp.get(matrix, _swapped(matrix)), product, "matrix")
    result = MatmulOp.on(row, turned, **product.attributes)
    result.location = product.location
    Rewriter.insert_op(result, InsertPoint.before(product))
    back = _named(ReshapeOp.get(result.output, (*batch, rows, 1)), product, "column")
    product.output.replace_all_uses_with(back.output)
    Rewriter.erase_op(product)
    return True


def _move_to_table(transpose: TransposeOp, known: ParameterExpressions) -> bool:
    """Gather slabs from a transposed table, where only dims of slabs are exchanged."""
    gather = transpose.input.owner
    if not isinstance(gather, GatherOp | GatherNdOp) or not known.is_known(gather.data):
        return False
    if not transpose.input.has_one_use() or not run_together(gather, transpose):
        return False
    permutation, rank = transpose.permutation.get_values(), len(shape_of(gather.data))
    slab = slab_rank(transpose.input)
    if slab is None or DYNAMIC in shape_of(gather.data) or known.is_known(gather.indices):
        return False
    first, place = rank - slab, len(permutation) - slab
    if list(permutation[:place]) != list(range(place)):
        return False
    order = (*range(first), *(dim - place + first for dim in permutation[place:]))
    table = _named(TransposeOp.get(gather.data, order), gather, "table")
    turned = type(gather).on(table, gather.indices, **gather.attributes)
    turned.location = gather.location
    union_names(turned, transpose)
    Rewriter.insert_op(turned, InsertPoint.before(transpose))
    transpose.output.replace_all_uses_with(turned.results[0])
    Rewriter.erase_op(transpose)
    Rewriter.erase_op(gather)
    return True


def _is_from_known(product: MatmulOp, known: ParameterExpressions) -> bool:
    """Return whether the matrix of `product` is known, or gathered from a known table for it alone.

    A value that another device gathers would have to be transposed in each run.
    """
    matrix = product.lhs
    if known.is_known(matrix):
        return True
    gather = matrix.owner
    if not isinstance(gather, GatherOp | GatherNdOp) or not run_together(gather, product):
        return False
    return slab_rank(matrix) == 2 and known.is_known(gather.data) and matrix.has_one_use()


def _swapped(value: SSAValue) -> tuple[int, ...]:
    """Return the permutation that exchanges the last two dims."""
    rank = len(shape_of(value))
    return (*range(rank - 2), rank - 1, rank - 2)


def _named(op: _OpT, source: Operation, what: str) -> _OpT:
    """Insert `op`, a part of `source`, before it."""
    derive_names(op, source, what)
    op.location = source.location
    Rewriter.insert_op(op, InsertPoint.before(source))
    return op
