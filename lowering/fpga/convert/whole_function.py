"""A function whose kernels are outlined as one graph again: a design has stages, not kernels."""

from collections.abc import Mapping, Sequence
from typing import cast

from xdsl.dialects.builtin import FunctionType, NoneAttr, TensorType
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from braid.analysis.structure.functions import functions_beside
from braid.dialects.braid.placement import ReorderOp

Values = dict[SSAValue, SSAValue]


def whole_function(function: FuncOp) -> FuncOp:
    """Return a copy with the ops of its kernels in the place of calls, and all tensors row-major.

    A stage's computation does not depend on layouts; those of the arguments and results are the
    order in which ports read and write.
    """
    inputs, outputs = function.function_type.inputs.data, function.function_type.outputs.data
    body = Block(arg_types=[_row_major(kind) for kind in inputs])
    results = _copy(function.body.block, body.args, body, functions_beside(function))
    body.add_op(ReturnOp(*results))
    kind = FunctionType.from_lists(
        [_row_major(one) for one in inputs], [_row_major(one) for one in outputs]
    )
    return FuncOp(function.sym_name.data, kind, Region(body))


def _copy(
    block: Block, arguments: Sequence[SSAValue], into: Block, functions: Mapping[str, FuncOp]
) -> Sequence[SSAValue]:
    """Add the ops of a function's block, called with `arguments`, and return its results."""
    values: Values = dict(zip(block.args, arguments, strict=True))
    for op in block.ops:
        operands = [values[operand] for operand in op.operands]
        results: Sequence[SSAValue]
        match op:
            case ReturnOp():
                return operands
            case CallOp():
                kernel = functions[op.callee.root_reference.data]
                results = _copy(kernel.body.block, operands, into, functions)
            case ReorderOp():
                results = operands
            case _:
                copied = _row_major_copy(op, operands)
                into.add_op(copied)
                results = copied.results
        values.update(zip(op.results, results, strict=True))
    raise AssertionError("functions end in a return")


def _row_major_copy(op: Operation, operands: Sequence[SSAValue]) -> Operation:
    return type(op).create(
        operands=operands,
        result_types=[_row_major(result.type) for result in op.results],
        properties=cast(Mapping[str, Attribute], op.properties),
        attributes=cast(Mapping[str, Attribute], op.attributes),
        regions=[region.clone() for region in op.regions],
    )


def _row_major(kind: Attribute) -> Attribute:
    if not isinstance(kind, TensorType):
        return kind
    tensor = cast(TensorType[Attribute], kind)
    return TensorType(tensor.element_type, tensor.get_shape(), NoneAttr())
