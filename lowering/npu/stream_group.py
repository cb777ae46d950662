"""A part that a chip runs at once as a group, to which schedules of streams refer."""

import hashlib
from dataclasses import fields, replace
from typing import cast

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Block, Operation, Region, SSAValue

from braid.dialects.braid.attribute_names import SCHEDULE
from braid.dialects.braid.base import AnyTensor, shape_of
from braid.dialects.braid.clusters import MARKS
from braid.dialects.braid.constants import ParameterOp
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.regions import FusedOp, YieldOp
from braid.lowering.npu.stream_parts import StreamPart
from braid.passes.order.block_graph import LEAVES
from braid.targets.machines.machine import Machine
from braid.targets.machines.target import BackendDescription


def stream_group(part: StreamPart) -> FusedOp | None:
    """Return a new block with the ops of `part`, preceded by the ops that make its weights.

    The result is None for ops on other types than tensors of known shapes, and for views, which
    have no instructions.
    """
    if not part.has_instructions:
        return None
    arguments, leaves = list[SSAValue](), list[Operation]()
    inputs = list(part.block.args) if part.whole else part.inputs
    for value in inputs:
        owner = value.owner
        is_known = isinstance(owner, Operation) and isinstance(owner, LEAVES)
        (leaves if is_known else arguments).append(owner if is_known else value)  # pyright: ignore
    leaves += [op for op in part.members if isinstance(op, LEAVES)]
    weights = [op for op in leaves if isinstance(op, ParameterOp)]
    returned = [*part.alone.last_op.operands] if part.whole else part.handed_on  # pyright: ignore
    outer = [*arguments, *(op.results[0] for op in weights)]
    if not returned or not all(map(_is_static, (*outer, *returned))):
        return None
    outside = Block(arg_types=[value.type for value in arguments])
    values: dict[SSAValue, SSAValue] = dict(zip(arguments, outside.args, strict=True))
    for op in weights:
        outside.add_op(_plain(op, values))
    body = Block(arg_types=[value.type for value in outer])
    inner: dict[SSAValue, SSAValue] = dict(zip(outer, body.args, strict=True))
    constants = [op for op in leaves if not isinstance(op, ParameterOp)]
    for op in (*constants, *(op for op in part.members if not isinstance(op, LEAVES))):
        body.add_op(_plain(op, inner))
    body.add_op(YieldOp(*(inner[value] for value in returned)))
    group = FusedOp([values[v] for v in outer], [v.type for v in returned], body)
    group.location = part.members[-1].location
    outside.add_op(group)
    return group


def group_module(group: FusedOp) -> ModuleOp:
    """Return a module whose `@main` is a group of `stream_group`, without the group around it.

    Its parameters, in the order of the group's operands, get new keys, since passes may have named
    those of the model.
    """
    outside = group.parent
    assert outside is not None
    block = Block(arg_types=outside.arg_types)
    values: dict[SSAValue, SSAValue] = dict(zip(outside.args, block.args, strict=True))
    for number, op in enumerate(op for op in outside.ops if isinstance(op, ParameterOp)):
        weight = ParameterOp.of(f"weight {number}", cast(AnyTensor, op.results[0].type))
        values[op.results[0]] = weight.results[0]
        block.add_op(weight)
    inputs = [values[value] for value in group.operands]
    values.update(zip(group.body.block.args, inputs, strict=True))
    for op in group.body.block.ops:
        if op is not group.terminator:
            block.add_op(op.clone(values))
    block.add_op(func.ReturnOp(*(values[value] for value in group.terminator.arguments)))
    types = list(block.arg_types), [value.type for value in group.results]
    return ModuleOp([func.FuncOp("main", types, Region(block))])


def described_machine(chip: BackendDescription) -> Machine:
    """Return the machine of a chip, identified by its whole description, not its name alone."""
    known = {field.name: getattr(chip, field.name) for field in fields(chip)}
    del known["device"]  # its name, and its host, change nothing of a stream
    # Keys of records know the ports of a chip by this name.
    text = repr(sorted(known.items())).replace("SharedPort(", "Port(")
    digest = hashlib.sha256(text.encode()).hexdigest()
    return replace(chip.machine, features=digest[:16])


def _plain(op: Operation, values: dict[SSAValue, SSAValue]) -> Operation:
    """Return a copy without the attributes for its device and its schedule."""
    copy = op.clone(values)
    for name in (*MARKS, SCHEDULE):
        copy.attributes.pop(name, None)
    return copy


def _is_static(value: SSAValue) -> bool:
    return isinstance(value.type, TensorType) and DYNAMIC not in shape_of(value)
