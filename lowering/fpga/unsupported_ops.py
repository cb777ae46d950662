"""Ask the code that makes designs which ops they do not have, and why."""

from typing import cast

import numpy as np
from xdsl.dialects.builtin import FunctionType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue

from braid.analysis.structure.parameter_expressions import ParameterExpressions
from braid.dialects.braid.base import AnyTensor, TensorOp, element_type_of, shape_of
from braid.dialects.braid.constants import ConstantOp, ParameterOp
from braid.dialects.braid.dtypes import to_numpy
from braid.dialects.braid.movement import PadOp
from braid.dialects.braid.quantization import DequantizeOp, QuantizeOp
from braid.lowering.fpga.convert.design_of import check_stages, stream_type
from braid.lowering.fpga.convert.moves import MOVES, root_of
from braid.lowering.fpga.convert.products import HEADS
from braid.lowering.fpga.convert.values import Array
from braid.support.errors import UnsupportedError


def unsupported_reason(op: Operation, known: ParameterExpressions) -> str | None:
    """Return why designs do not have `op`, None where they do; `known` is of its module.

    It is tried alone, with weights of 1 that are not known yet: a sum of very many terms may be
    refused later, when they are.
    """
    if not isinstance(op, TensorOp) or isinstance(op, QuantizeOp | DequantizeOp):
        return f"'{op.name}' on an FPGA"
    if isinstance(op, PadOp):
        return _refusal_of_padding(op, known)
    if isinstance(op, MOVES):
        return _refusal_of_moves(op)
    return _tried(op, known)


def _refusal_of_padding(op: PadOp, known: ParameterExpressions) -> str | None:
    """Return why the readers of a padding, which must have windows, cannot compute it as well."""
    readers = [use.operation for use in op.results[0].uses]
    if not readers or not all(isinstance(reader, HEADS) for reader in readers):
        return f"'{op.name}' on an FPGA that other ops than windows read"
    tried = (_tried(reader, known) for reader in readers)
    return next((why for why in tried if why is not None), None)


def _refusal_of_moves(op: TensorOp) -> str | None:
    """Return why one of the two streams around a chain of movements is unsupported."""
    ends, values = [root_of(op.results[0])], [op.results[0]]
    while values:
        value = values.pop()
        readers = [use.operation for use in value.uses]
        values += [one.results[0] for one in readers if isinstance(one, MOVES)]
        if not readers or not all(isinstance(one, MOVES) for one in readers):
            ends.append(value)
    try:
        for value in ends:
            stream_type(value)
    except UnsupportedError as error:
        return error.message
    return None


def _tried(op: Operation, known: ParameterExpressions) -> str | None:
    try:
        check_stages(*_alone(op, known))
    except UnsupportedError as error:
        return error.message
    return None


def _alone(op: Operation, known: ParameterExpressions) -> tuple[FuncOp, dict[str, Array]]:
    """Return a function of `op`, paddings and moves in front of its windows, and its parameters."""
    body = Block()
    parameters: dict[str, Array] = {}

    def copied(value: SSAValue) -> SSAValue:
        owner = value.owner
        if isinstance(owner, ConstantOp):
            return _added(owner, [], body)
        if known.is_known(value):
            key = str(len(parameters))
            # Single numbers in memory.
            one = np.ones((), to_numpy(element_type_of(value)))
            parameters[key] = np.broadcast_to(one, shape_of(value))
            return _added(ParameterOp.of(key, cast(AnyTensor, value.type)), [], body)
        if isinstance(owner, (PadOp, *MOVES)) and isinstance(op, HEADS):
            return _added(owner, [copied(owner.operands[0])], body)
        return body.insert_arg(value.type, len(body.args))

    made = _added(op, [copied(operand) for operand in op.operands], body)
    body.add_op(ReturnOp(made))
    kind = FunctionType.from_lists([argument.type for argument in body.args], [made.type])
    return FuncOp("alone", kind, Region(body)), parameters


def _added(op: Operation, operands: list[SSAValue], body: Block) -> SSAValue:
    copy = type(op).create(
        operands=operands,
        result_types=[result.type for result in op.results],
        properties=dict(op.properties),
        attributes=dict(op.attributes),
    )
    body.add_op(copy)
    return copy.results[0]
