"""Of which kinds a group is whose predictions are off alike.

What predictions of kernels leave out depends on who makes the kernel, and on where its time goes:
a product that uses each weight once waits for memory, one that uses it a hundred times does not,
and small kernels spend their time around their loops.
"""

import math
from collections.abc import Iterable

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation

from braid.analysis.execution.compute_ops import runtime_functions
from braid.analysis.structure.operation_counts import MATRIX_OPS, flops
from braid.dialects.braid.constants import ConstantOp, ParameterOp
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.opaque import OpaqueOp
from braid.dialects.braid.regions import GroupOp, YieldOp
from braid.dialects.braid.transposed_convolution import ConvTransposeOp
from braid.targets.costs.op_amounts import amounts_of, computed_type, moved_bytes

NO_FAMILY = "roofline"
"""Stands for the family of what none makes."""

_LEAST_REUSE, _MOST_REUSE = -1, 9
"""Binary logarithms of operations per byte of weights: beyond them arithmetic takes the time."""
_SIZES = 4.0
"""By which factor the sizes of a kind may differ."""


def kinds_of(op: Operation, family: str, *, is_far: bool | None = None) -> tuple[str, ...]:
    """The kinds of `op`, a group or what is none, from coarse to fine.

    Who makes its kernel and in which type; which op takes most of it, and how often that uses each
    byte of its weights; whether the model's weights stay in caches from run to run or come from
    memory (`is_far`, None for unknown); and how large it is. What only moves elements is often done
    by storing its operands where they are wanted, except those that come into a function from
    outside.
    """
    main = main_op(op)
    coarse = f"{family or NO_FAMILY} {computed_type(op)}"
    if not flops(op):
        coarse += " moved from outside" if _is_from_outside(op) else " moved"
    middle = f"{coarse} {kind_name(main)}"
    weights = _weight_bytes(main)
    if weights:
        reuse = math.floor(math.log2(max(flops(main), 1) / weights))
        middle += f" reuse {min(max(reuse, _LEAST_REUSE), _MOST_REUSE)}"
    place = middle
    if is_far is not None and flops(op):
        place += " far" if is_far else " near"
    amounts = amounts_of(op)
    size = max(amounts.by_resource["flops"], amounts.moved, 1.0)
    kinds = (coarse, middle, place, f"{place} size {math.floor(math.log(size, _SIZES))}")
    return tuple(dict.fromkeys(kinds))


def model_weight_bytes(op: Operation) -> int:
    """Bytes of the weights that the functions of the module around `op` read, each counted once."""
    module = op.get_toplevel_object()
    if not isinstance(module, ModuleOp):
        return 0
    found = {
        inner.key.data: moved_bytes(inner.output)
        for function in runtime_functions(module)
        for inner in function.walk()
        if isinstance(inner, ParameterOp)
    }
    return sum(found.values())


def kind_name(op: Operation) -> str:
    """The kind of an op: its name, or that of an opaque one."""
    return op.kind.data if isinstance(op, OpaqueOp) else op.name


def main_op(op: Operation) -> Operation:
    """The member of a group that computes most, the first of equals; of other ops, themselves."""
    members = list(_members(op))
    return max(members, key=flops) if members else op


def _members(op: Operation) -> Iterable[Operation]:
    if isinstance(op, GroupOp):
        for inner in op.body.block.ops:
            if not isinstance(inner, YieldOp | ConstantOp):
                yield from _members(inner)
    else:
        yield op


def _is_from_outside(op: Operation) -> bool:
    owners = [value.owner for value in op.operands]
    return any(isinstance(o, Block) and isinstance(o.parent_op(), FuncOp) for o in owners)


def _weight_bytes(op: Operation) -> int:
    """Bytes of the second factor of a product, which each row of the first one needs anew."""
    if not isinstance(op, MATRIX_OPS):
        return 0
    assert isinstance(op, ConvOp | ConvTransposeOp | MatmulOp)
    return moved_bytes(op.operands[1])
