"""Nests of a kernel that reduce long rows, each by the threads of its rows together.

A kernel whose nests all go over the same rows is a `RowProgram` as a whole. Otherwise, a nest that
reduces rows, with the fill from which it starts, is a separate step.
"""

from collections.abc import Sequence
from math import prod

from xdsl.dialects import arith, func
from xdsl.dialects.builtin import FunctionType, IndexType, MemRefType
from xdsl.dialects.func import FuncOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, Region, SSAValue

from braid.lowering.gpu.nests.row_program import RowProgram
from braid.lowering.gpu.nests.thread_nests import ThreadNest

_LEAST_COLUMNS = 64
"""Elements of a row that are worth several threads."""


def row_program_of(step: Sequence[Operation]) -> tuple[RowProgram, tuple[SSAValue, ...]] | None:
    """Return the program of a step, and the buffers that its arguments stand for; None for other
    steps.
    """
    if not all(isinstance(op, linalg.GenericOp) for op in step):
        return None
    nests = [op for op in step if isinstance(op, linalg.GenericOp)]
    last = ThreadNest.of(nests[-1])
    if prod(last.extents[dim] for dim in last.reduced) < _LEAST_COLUMNS:
        return None
    written = list(dict.fromkeys(value for nest in nests for value in nest.outputs))
    used = dict.fromkeys(value for nest in nests for op in nest.walk() for value in op.operands)
    inner = {value for nest in nests for op in nest.walk() for value in op.results}
    inner |= {argument for nest in nests for argument in nest.body.block.args}
    outside = [value for value in used if value not in inner]
    read = [v for v in outside if isinstance(v.type, MemRefType) and v not in written]
    others = [v.owner for v in outside if not isinstance(v.type, MemRefType)]
    constants = [op for op in others if isinstance(op, arith.ConstantOp)]
    if len(constants) < len(others):
        return None
    buffers = (*read, *written)
    types = [value.type for value in buffers] + [IndexType()] * 2
    block = Block(arg_types=types)
    values: dict[SSAValue, SSAValue] = dict(zip(buffers, block.args, strict=False))
    for op in (*dict.fromkeys(constants), *nests):
        block.add_op(op.clone(values))
    block.add_op(func.ReturnOp())
    function = FuncOp("step", FunctionType.from_lists(types, []), Region(block))
    program = RowProgram.of(function, len(read))
    return None if program is None else (program, buffers)
