"""Handing the results of ops inside control flow out of it, so that they can be looked at.

Values of a branch become further results of its `scf.if`; values of a loop are carried, and leave
it after the last iteration. Where an op did not run, the result holds NaN, or a number that stands
for it.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import scf
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from braid.dialects.braid.base import TensorOp, element_type_of, extents_of
from braid.dialects.braid.constants import ConstantOp, ParameterOp
from braid.dialects.braid.dtypes import to_numpy
from braid.dialects.braid.movement import BroadcastOp
from braid.dialects.braid.names import names_of
from braid.dialects.braid.sizes import DYNAMIC

Array = NDArray[Any]
Named = list[tuple[str, SSAValue]]


def has_run(value: Array) -> bool:
    """Return whether some op computed the value of a nested result; booleans count as computed."""
    return (
        value.dtype == np.bool_ or value.tobytes() != _not_run(value.shape, value.dtype).tobytes()
    )


def one_tensor(op: Operation) -> bool:
    """Return whether the op computes one tensor, and nothing else."""
    return (
        len(op.results) == 1
        and isinstance(op.results[0].type, TensorType)
        and not isinstance(op, ConstantOp | ParameterOp)
    )


def hand_out_results(op: Operation) -> tuple[Operation, Named]:
    """Make the named results inside `op` further results of an op that takes its place.

    Returns that op, and the new results with their names; the op itself and nothing where it is
    no control flow or has no such results.
    """
    match op:
        case scf.IfOp():
            return _from_if(op)
        case scf.ForOp():
            return _from_for(op)
        case scf.WhileOp():
            return _from_while(op)
        case _:
            return op, []


def _inside(block: Block) -> Named:
    """Return the named results of the ops of a block, and of what is nested in these."""
    found: Named = []
    for op in list(block.ops):
        _, nested = hand_out_results(op)
        found += nested
        name = next(iter(names_of(op)), None)
        if name is not None and isinstance(op, TensorOp) and one_tensor(op):
            found.append((name, op.results[0]))
    return found


def _from_if(op: scf.IfOp) -> tuple[Operation, Named]:
    regions = (op.true_region, op.false_region)
    inside = [_inside(region.block) if region.blocks else [] for region in regions]
    if not any(inside) or not all(region.blocks for region in regions):
        return op, []
    for region, own, other, first in zip(regions, inside, inside[::-1], (True, False), strict=True):
        block = region.block
        end = block.last_op
        assert end is not None
        mine = [value for _, value in own]
        missing = [_fill(value, end) for _, value in other]
        end.operands = [*end.operands, *(mine + missing if first else missing + mine)]
    values = [*inside[0], *inside[1]]
    types = [*op.result_types, *(value.type for _, value in values)]
    then, otherwise = (op.detach_region(region) for region in list(op.regions))
    return _replace(op, scf.IfOp(op.cond, types, then, otherwise), values)


def _from_for(op: scf.ForOp) -> tuple[Operation, Named]:
    block = op.body.block
    values = _inside(block)
    if not values:
        return op, []
    initial = [_fill(value, op) for _, value in values]
    _carry([block], values)
    region = op.detach_region(op.body)
    new = scf.ForOp(op.lb, op.ub, op.step, [*op.iter_args, *initial], region)
    return _replace(op, new, values)


def _from_while(op: scf.WhileOp) -> tuple[Operation, Named]:
    before, after = op.before_region.block, op.after_region.block
    values = _inside(after)
    if not values:
        return op, []
    initial = [_fill(value, op) for _, value in values]
    _carry([before, after], values)
    condition = before.last_op
    assert condition is not None
    condition.operands = [*condition.operands, *before.args[len(before.args) - len(values) :]]
    regions = [op.detach_region(region) for region in list(op.regions)]
    types = [*op.result_types, *(value.type for _, value in values)]
    new = scf.WhileOp([*op.arguments, *initial], types, *regions)
    return _replace(op, new, values)


def _carry(blocks: Sequence[Block], values: Named) -> None:
    """Give the blocks arguments for the values, and let the last one yield them."""
    for block in blocks:
        for _, value in values:
            block.insert_arg(value.type, len(block.args))
    end = blocks[-1].last_op
    assert end is not None
    end.operands = [*end.operands, *(value for _, value in values)]


def _replace(old: Operation, new: Operation, values: Named) -> tuple[Operation, Named]:
    new.attributes.update(old.attributes)
    new.location = old.location
    Rewriter.replace_op(old, new, new.results[: len(old.results)])
    added = new.results[len(new.results) - len(values) :]
    return new, [(name, result) for (name, _), result in zip(values, added, strict=True)]


def _fill(like: SSAValue, before: Operation) -> SSAValue:
    """Insert a constant before an op that says that nothing was computed, and return it."""
    shape, dtype = extents_of(like), to_numpy(element_type_of(like))
    numbers = tuple(e if isinstance(e, int) and e != DYNAMIC else 1 for e in shape)
    constant = ConstantOp.of(_not_run(numbers, dtype))
    ops: list[Operation] = [constant]
    if numbers != shape:
        ops.append(BroadcastOp.get(constant.output, shape))
    Rewriter.insert_op(ops, InsertPoint.before(before))
    return ops[-1].results[0]


def _not_run(shape: tuple[int, ...], dtype: "np.dtype[Any]") -> Array:
    if dtype == np.bool_:
        return np.zeros(shape, dtype)
    if np.issubdtype(dtype, np.integer):
        return np.full(shape, np.iinfo(dtype).min + 7, dtype)
    return np.full(shape, np.nan, dtype)
