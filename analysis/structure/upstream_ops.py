"""Ops of upstream dialects on tensors, which upstream's lowering compiles into kernels."""

from collections.abc import Iterator

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import AnyFloat, IndexType, IntegerType, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from braid.analysis.diagnostics.locations import source_location
from braid.analysis.structure.loop_nests import op_name
from braid.support.errors import UnsupportedError

_DIALECTS = ("arith", "linalg", "math", "tensor")

_INSIDE = ("linalg.yield", "linalg.index", "tensor.extract", "tensor.yield", "scf.if", "scf.yield")
"""Ops that may be in the bodies of upstream ops, besides those of `arith` and `math`."""


def is_upstream_compute(op: Operation) -> bool:
    """Return whether `op` is of an upstream dialect and computes tensors, and nothing else.

    `tensor.from_elements` is not among these: it is executed by the host program.
    """
    return (
        not isinstance(op, tensor.FromElementsOp)
        and op_name(op).partition(".")[0] in _DIALECTS
        and bool(op.results)
        and all(isinstance(result.type, TensorType) for result in op.results)
    )


def require_computing(op: Operation) -> None:
    """Raise UnsupportedError unless the regions of `op` only compute scalars from scalars.

    Upstream's lowering would also accept ops that access arbitrary memory or call other code.
    """
    for region in op.regions:
        for inner in region.walk():
            name = op_name(inner)
            dialect = name.partition(".")[0]
            types = (*inner.operand_types, *inner.result_types)
            if name not in _INSIDE and (
                dialect not in ("arith", "math")
                or not all(isinstance(type, IntegerType | IndexType | AnyFloat) for type in types)
            ):
                raise UnsupportedError(
                    f"'{name}' cannot be part of the body of '{op_name(op)}'",
                    location=source_location(inner),
                )


def is_free(op: Operation) -> bool:
    """Return whether `op` costs nothing to recompute at each of its uses."""
    return isinstance(op, arith.ConstantOp) or (isinstance(op, tensor.EmptyOp) and not op.operands)


def upstream_computes(function: FuncOp) -> Iterator[Operation]:
    """Return the ops of a function that upstream's lowering compiles into kernels."""
    return (op for op in function.walk() if is_upstream_compute(op) and not is_free(op))
