"""Which ops are computed by upstream's lowering alone: those of its dialects that make tensors."""

from collections.abc import Iterator

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from braid.analysis.structure.loop_nests import op_name

_DIALECTS = ("arith", "linalg", "math", "tensor")


def is_upstream_compute(op: Operation) -> bool:
    """Whether `op` is not braid's, makes tensors alone, and is none that the program runs."""
    return (
        not isinstance(op, tensor.FromElementsOp)
        and op_name(op).partition(".")[0] in _DIALECTS
        and bool(op.results)
        and all(isinstance(result.type, TensorType) for result in op.results)
    )


def is_free(op: Operation) -> bool:
    """Whether `op` costs nothing to make again wherever it is read."""
    return isinstance(op, arith.ConstantOp) or (isinstance(op, tensor.EmptyOp) and not op.operands)


def upstream_computes(function: FuncOp) -> Iterator[Operation]:
    """The ops of a function that become kernels by upstream's lowering."""
    return (op for op in function.walk() if is_upstream_compute(op) and not is_free(op))
