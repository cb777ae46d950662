"""Find the inputs of a program that determine the iterations of its loops, and values for them.

Loops whose bounds are not constants, and conditions of `scf.while`, are followed back to arguments
of the function through integers and truth values: lengths, numbers of steps, conditions to begin
with. Dependences on floats, such as a threshold that ends an iteration, are not followed.
"""

import math
from collections.abc import Iterator, Sequence

from xdsl.dialects import func, scf, tensor
from xdsl.dialects.builtin import IndexType, IntegerType, TensorType, i1
from xdsl.ir import Attribute, BlockArgument, Operation, OpResult, SSAValue

from braid.analysis.profile.execution_counts import constant_trips, expected_trips
from braid.dialects.braid.base import element_type_of

Lengths = dict[int, int]
"""Values of all elements of a function's arguments, by the argument's number."""


def lengths_of_inputs(function: func.FuncOp) -> Lengths:
    """Return the values of arguments with which loops run about as many iterations as expected.

    The expected number comes from a profile, or is `DEFAULT_TRIP_COUNT`. If one argument bounds
    several loops, the longest counts; a truth value is 1. Raises BraidError as `ExecutionCounts`.
    """
    found: Lengths = {}
    for op in function.walk():
        if not isinstance(op, scf.ForOp | scf.WhileOp):
            continue
        trips = math.ceil(expected_trips(op))
        for argument in _arguments_of(_limits(op), function):
            length = min(trips, 1) if _is_truth(argument) else trips
            found[argument.index] = max(found.get(argument.index, 0), length)
    return found


def _limits(op: scf.ForOp | scf.WhileOp) -> Sequence[SSAValue]:
    """Return the value that decides when a loop ends."""
    if isinstance(op, scf.WhileOp):
        return _handed_on(op, 0)[:1]
    return () if constant_trips(op) is not None else (op.ub,)


def _arguments_of(values: Sequence[SSAValue], function: func.FuncOp) -> Iterator[BlockArgument]:
    """Yield the arguments of `function` that integers and truth values follow from."""
    waiting, seen = list(values), set[SSAValue]()
    while waiting:
        value = waiting.pop()
        if value in seen or not _is_counted(value):
            continue
        seen.add(value)
        if isinstance(value, BlockArgument) and value.block is function.body.block:
            yield value
        else:
            waiting += _sources(value)


def _is_counted(value: SSAValue) -> bool:
    return isinstance(_element_type(value), IntegerType | IndexType)


def _is_truth(value: SSAValue) -> bool:
    return _element_type(value) == i1


def _element_type(value: SSAValue) -> Attribute:
    return element_type_of(value) if isinstance(value.type, TensorType) else value.type


def _sources(value: SSAValue) -> Sequence[SSAValue]:
    """Return the values that a value is computed from, if these ops are in the program."""
    if isinstance(value, OpResult):
        return _sources_of_result(value.op, value.index)
    if isinstance(value, BlockArgument):
        parent = value.block.parent_op()
        if isinstance(parent, scf.ForOp):
            if value.index == 0:
                return (parent.lb, parent.ub)
            return _carried(parent, value.index - 1)
        if isinstance(parent, scf.WhileOp):
            if value.block is parent.before_region.block:
                return _carried(parent, value.index)
            return _handed_on(parent, value.index + 1)[:1]
    return ()


def _sources_of_result(op: Operation, index: int) -> Sequence[SSAValue]:
    if isinstance(op, scf.ForOp):
        return _carried(op, index)
    if isinstance(op, scf.WhileOp):
        return _handed_on(op, index + 1)[:1]
    if isinstance(op, scf.IfOp | scf.IndexSwitchOp):
        return [_end(region.block.last_op, index) for region in op.regions if region.blocks]
    return () if isinstance(op, tensor.DimOp) else op.operands


def _carried(op: scf.ForOp | scf.WhileOp, index: int) -> Sequence[SSAValue]:
    """Return the initial and the next value of one of a loop's carried values."""
    if isinstance(op, scf.ForOp):
        return (op.iter_args[index], _end(op.body.block.last_op, index))
    return (op.arguments[index], _end(op.after_region.block.last_op, index))


def _handed_on(op: scf.WhileOp, index: int) -> Sequence[SSAValue]:
    """Return the operands of the condition from `index` on: whether to go on, and the values."""
    last = op.before_region.block.last_op
    assert last is not None
    return last.operands[index:]


def _end(terminator: Operation | None, index: int) -> SSAValue:
    assert terminator is not None
    return terminator.operands[index]
