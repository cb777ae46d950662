"""Handlers of functions, of control flow, and of braid's ops with regions."""

from collections.abc import Sequence
from typing import cast

import numpy as np
from xdsl.dialects import func, scf
from xdsl.ir import Operation

from braid.analysis.interpreter.machine import Handler, Machine, Value
from braid.dialects.braid.failure import FailOp
from braid.dialects.braid.launch import AwaitOp, LaunchOp
from braid.dialects.braid.regions import FusedOp
from braid.support.errors import BraidError

_ENDED = np.bool_(True)
"""The value of every token."""


def _call(machine: Machine, op: Operation, operands: Sequence[Value]) -> Sequence[Value]:
    return machine.call(cast(func.CallOp, op).callee.string_value(), operands)


def _if(machine: Machine, op: Operation, operands: Sequence[Value]) -> Sequence[Value]:
    branch = op.regions[0 if operands[0] else 1]
    return machine.run_block(branch.block, ()) if branch.blocks else ()


def _switch(machine: Machine, op: Operation, operands: Sequence[Value]) -> Sequence[Value]:
    switch = cast(scf.IndexSwitchOp, op)
    cases = dict(zip(switch.cases.get_values(), switch.case_regions, strict=True))
    return machine.run_block(cases.get(int(operands[0]), switch.default_region).block, ())


def _for(machine: Machine, op: Operation, operands: Sequence[Value]) -> Sequence[Value]:
    """Run a loop, whose bounds are signed."""
    lower, upper, step, *carried = operands
    if step <= 0:
        raise BraidError(f"the step of the loop is {step}, expected a positive number")
    values: Sequence[Value] = carried
    kind = lower.dtype.type
    for index in range(int(lower), int(upper), int(step)):
        values = machine.run_block(op.regions[0].block, (kind(index), *values))
    return values


def _while(machine: Machine, op: Operation, operands: Sequence[Value]) -> Sequence[Value]:
    before, after = op.regions
    values: Sequence[Value] = operands
    while True:
        condition, *values = machine.run_block(before.block, values)
        if not condition:
            return values
        values = machine.run_block(after.block, values)


def _fused(machine: Machine, op: Operation, operands: Sequence[Value]) -> Sequence[Value]:
    return machine.run_kernel(op.regions[0].block, operands)


def _launch(machine: Machine, op: Operation, operands: Sequence[Value]) -> Sequence[Value]:
    """Run at once; a token has no value of its own."""
    launch = cast(LaunchOp, op)
    inputs = operands[len(launch.dependencies) :]
    return (*machine.call(launch.callee.string_value(), inputs), _ENDED)


def _await(machine: Machine, op: Operation, operands: Sequence[Value]) -> Sequence[Value]:
    return operands[len(cast(AwaitOp, op).tokens) :]


def _fail(machine: Machine, op: Operation, operands: Sequence[Value]) -> Sequence[Value]:
    raise BraidError(cast(FailOp, op).message.data)


HANDLERS: dict[type[Operation], Handler] = {
    func.CallOp: _call,
    scf.IfOp: _if,
    scf.IndexSwitchOp: _switch,
    scf.ForOp: _for,
    scf.WhileOp: _while,
    FusedOp: _fused,
    LaunchOp: _launch,
    AwaitOp: _await,
    FailOp: _fail,
}
"""Handlers by op class."""
