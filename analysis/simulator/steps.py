"""What an op does on the units of a chip: the amounts behind instructions and fast estimates."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from braid.analysis.memory_graph import value_bytes
from braid.analysis.parameter_expressions import is_leaf
from braid.analysis.roofline import flops
from braid.analysis.tensor_storage import is_view
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.movement import ConcatOp, SliceOp
from braid.dialects.braid.opaque import OpaqueOp
from braid.dialects.braid.regions import GroupOp
from braid.dialects.braid.transposed_convolution import ConvTransposeOp
from braid.targets.target import Backend, Unit

MATRIX_OPS = (ConvOp, ConvTransposeOp, MatmulOp)


@dataclass(frozen=True)
class Step:
    """`amount` of its resource (bytes or scalar operations) on unit number `unit`.

    `waits` tells whether it needs what other ops make; loading weights does not.
    """

    unit: int
    amount: int
    waits: bool = True


@dataclass(frozen=True)
class Work:
    """What an op moves (bytes) and computes (scalar operations)."""

    weight_bytes: int
    input_bytes: int
    output_bytes: int
    compute: Mapping[str, float]


def is_addressing(op: Operation) -> bool:
    """Whether `op` takes no instruction: its readers address its operands instead.

    A transfer has strides, so slices and concatenations are where data is loaded from or stored
    to.
    """
    return is_leaf(op) or is_view(op) or isinstance(op, SliceOp | ConcatOp)


def steps_of(op: Operation, backend: Backend) -> tuple[Step, ...]:
    """The steps of `op` on `backend`, one after the other; none for addressing.

    Raises UnsupportedError for open dims.
    """
    if is_addressing(op):
        return ()
    if isinstance(op, OpaqueOp) and op.declared_cost is not None:
        return _declared(op.declared_cost, backend)
    work = work_of(op)
    steps: list[Step] = []
    outer = True
    for number, unit in enumerate(backend.units):
        if unit.only_with and not work.compute.get(unit.only_with):
            continue
        if unit.resource == "load":
            steps += _loads(number, work, outer)
            outer = False
        elif unit.resource == "store":
            steps.append(Step(number, work.output_bytes))
        elif amount := work.compute.get(unit.resource):
            steps.append(Step(number, int(amount)))
    return tuple(steps)


def step_seconds(step: Step, backend: Backend) -> float:
    """How long `step` takes where nothing else uses the unit's port."""
    unit = backend.units[step.unit]
    return unit.startup_seconds + step.amount / unit.rate


def work_of(op: Operation) -> Work:
    """What `op` moves and computes; a fused group moves only its operands and results."""
    inner = list(op.body.block.ops) if isinstance(op, GroupOp) else [op]
    matrix = sum(flops(each) for each in inner if isinstance(each, MATRIX_OPS))
    vector = sum(flops(each) for each in inner if not isinstance(each, MATRIX_OPS))
    if not matrix and not vector:
        vector = sum(_elements(value) for value in op.results)
    weights = [value for value in dict.fromkeys(op.operands) if _is_weight(value)]
    inputs = [value for value in dict.fromkeys(op.operands) if not _is_weight(value)]
    return Work(
        sum(map(value_bytes, weights)),
        sum(map(value_bytes, inputs)),
        sum(map(value_bytes, op.results)),
        {"matrix": matrix, "vector": vector},
    )


def _loads(unit: int, work: Work, outer: bool) -> list[Step]:
    """From outside the chip weights may come early; what moves on has waited already."""
    if not outer:
        return [Step(unit, work.weight_bytes + work.input_bytes)]
    steps = [Step(unit, work.weight_bytes, waits=False)] if work.weight_bytes else []
    return [*steps, Step(unit, work.input_bytes)] if work.input_bytes else steps


def _declared(cost: float | Mapping[str, float], backend: Backend) -> tuple[Step, ...]:
    """The steps of declared seconds by resource or unit; seconds alone are vector work."""
    by_name = cost if isinstance(cost, Mapping) else {"vector": cost}
    steps: list[Step] = []
    for number, unit in enumerate(backend.units):
        seconds = by_name.get(unit.name, by_name.get(unit.resource))
        if seconds is not None:
            steps.append(Step(number, _amount(seconds, unit)))
    return tuple(steps)


def _amount(seconds: float, unit: Unit) -> int:
    return round(max(seconds - unit.startup_seconds, 0.0) * unit.rate)


def _is_weight(value: SSAValue) -> bool:
    """Whether `value` is there before the program runs: a parameter, or a part of one."""
    owner = value.owner
    while isinstance(owner, Operation) and is_addressing(owner) and not is_leaf(owner):
        owner = owner.operands[0].owner
    return isinstance(owner, Operation) and is_leaf(owner)


def _elements(value: SSAValue) -> int:
    return math.prod(cast(TensorType[Attribute], value.type).get_shape())
