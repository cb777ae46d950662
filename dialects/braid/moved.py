"""The structure of ops whose result only moves elements of their operand."""

from xdsl.ir.affine import AffineMap

from braid.dialects.braid.base import TensorOp
from braid.dialects.braid.scalar import Argument
from braid.dialects.braid.structure import (
    Access,
    OperandSource,
    Padding,
    Stage,
    Structure,
    parallel,
)


def moved(op: TensorOp, map: AffineMap, padding: Padding | None = None) -> Structure:
    """The structure of an op whose result at i is its operand at `map`(i)."""
    result = op.result_type()
    rank, shape = result.get_num_dims(), result.get_shape()
    read = Access(OperandSource(0), map, padding)
    stage = Stage(
        parallel(rank),
        shape,
        (read,),
        AffineMap.identity(rank),
        shape,
        result.element_type,
        Argument(0),
    )
    return Structure((stage,), (0,))
