"""What an op does on the units of a chip: the amounts behind instructions and fast estimates."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from braid.analysis.storage.memory_graph import value_bytes
from braid.analysis.storage.tensor_storage import is_view
from braid.analysis.structure.parameter_expressions import is_leaf
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.movement import ConcatOp, SliceOp
from braid.dialects.braid.opaque import OpaqueOp
from braid.dialects.braid.regions import GroupOp
from braid.dialects.braid.transposed_convolution import ConvTransposeOp
from braid.targets.costs.op_amounts import flops
from braid.targets.costs.simulator.declared import Amount, declared_amounts
from braid.targets.machines.target import BackendDescription, Unit

MATRIX_OPS = (ConvOp, ConvTransposeOp, MatmulOp)


@dataclass(frozen=True)
class Step:
    """`amount` of its resource (bytes or scalar operations) on unit number `unit`.

    Where units share their work that is the first of them, and stands for any. `declared` is
    what it takes in seconds where somebody said so.
    """

    unit: int
    amount: int
    declared: float | None = None


@dataclass(frozen=True)
class Work:
    """What an op reads (bytes), and what it takes of every resource.

    `matrix` and `vector` are scalar operations, `flops` both together, and `bytes` what the op
    reads and writes: on processors without instructions for units, of which these are the units.
    """

    operand_bytes: int
    compute: Mapping[str, float]


def is_addressing(op: Operation) -> bool:
    """Whether `op` takes no instruction: its readers address its operands instead.

    A transfer has strides, so slices and concatenations are where data is loaded from or stored
    to.
    """
    return is_leaf(op) or is_view(op) or isinstance(op, SliceOp | ConcatOp)


@dataclass(frozen=True)
class Transfers:
    """The units between the chip and the memory outside, and the bytes that the chip holds."""

    load: int
    store: int
    capacity: int


def transfers_of(backend: BackendDescription) -> Transfers | None:
    """How data gets onto the chip; None for a backend whose ops read any memory themselves.

    The first unit that loads is the way in, the last one that stores the way out, and the first
    memory is the one between them. Without one that stores, what loads does that too.
    """
    loads = [n for n, unit in enumerate(backend.units) if unit.resource == "load"]
    stores = [n for n, unit in enumerate(backend.units) if unit.resource == "store"]
    if not loads or not backend.memories:
        return None
    store = backend.kinds[stores[-1]][0] if stores else loads[0]
    return Transfers(loads[0], store, backend.memories[0].bytes)


def distinct_units(backend: BackendDescription) -> Iterator[tuple[int, Unit]]:
    """The units by their numbers, of those that share their work the first alone."""
    for number, unit in enumerate(backend.units):
        if backend.kinds[number][0] == number:
            yield number, unit


def is_declared(op: Operation) -> bool:
    """Whether `op` declares all that it takes, what it moves included."""
    return isinstance(op, OpaqueOp) and op.declared_cost is not None


def steps_of(op: Operation, backend: BackendDescription) -> tuple[Step, ...]:
    """What `op` does with operands on the chip, one step after the other; none for addressing.

    What has no tensors, such as the condition of a branch, is the host's. Raises UnsupportedError
    for open dims, and BraidError for a declared resource that the backend does not have.
    """
    if is_addressing(op) or not any(map(_is_tensor, (*op.operands, *op.results))):
        return ()
    if isinstance(op, OpaqueOp) and op.declared_cost is not None:
        amounts = declared_amounts(op, op.declared_cost, backend)
        return tuple(_declared_step(amount, backend) for amount in amounts)
    work = work_of(op)
    outside = transfers_of(backend)
    steps: list[Step] = []
    for number, unit in distinct_units(backend):
        if unit.only_with and not work.compute.get(unit.only_with):
            continue
        if outside is not None and number in (outside.load, outside.store):
            continue
        amount = work.operand_bytes if unit.resource == "load" else work.compute.get(unit.resource)
        if amount:
            steps.append(Step(number, int(amount)))
    return tuple(steps)


def step_seconds(step: Step, backend: BackendDescription) -> float:
    """How long `step` takes where nothing else uses the unit's port."""
    if step.declared is not None:
        return step.declared
    return unit_seconds(backend.units[step.unit], step.amount)


def unit_seconds(unit: Unit, amount: int) -> float:
    """How long `unit` takes for `amount` of its resource."""
    return unit.startup_seconds + amount / unit.rate


def work_of(op: Operation) -> Work:
    """What `op` reads and computes; a fused group reads only its operands."""
    inner = list(op.body.block.ops) if isinstance(op, GroupOp) else [op]
    matrix = sum(flops(each) for each in inner if isinstance(each, MATRIX_OPS))
    vector = sum(flops(each) for each in inner if not isinstance(each, MATRIX_OPS))
    if not matrix and not vector:
        vector = sum(_elements(value) for value in op.results)
    operands = sum(map(value_bytes, dict.fromkeys(op.operands)))
    moved = operands + sum(map(value_bytes, op.results))
    compute = {"matrix": matrix, "vector": vector, "flops": matrix + vector, "bytes": moved}
    return Work(operands, compute)


def _declared_step(amount: Amount, backend: BackendDescription) -> Step:
    if amount.seconds is None:
        return Step(amount.unit, round(amount.work))
    unit = backend.units[amount.unit]
    left = max(amount.seconds - unit.startup_seconds, 0.0)
    return Step(amount.unit, round(left * unit.rate), amount.seconds)


def _is_tensor(value: SSAValue) -> bool:
    return isinstance(value.type, TensorType)


def _elements(value: SSAValue) -> int:
    return (
        math.prod(cast(TensorType[Attribute], value.type).get_shape()) if _is_tensor(value) else 1
    )
