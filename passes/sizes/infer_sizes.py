"""Infer the sizes of open dims of results from those of operands."""

from collections.abc import Sequence
from typing import NoReturn, cast

from xdsl.dialects import scf
from xdsl.dialects.builtin import FunctionType, ModuleOp, TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import VerifyException

from braid.analysis.diagnostics.locations import source_location
from braid.dialects.braid.base import AnyTensor, TensorOp, element_type_of, extents_of, fits
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.movement import ReshapeOp, reshape_dim_by_dim
from braid.dialects.braid.sizes import extents_of_type, sized_type
from braid.support.errors import BraidError, UnsupportedError
from braid.support.sizes.expression import Extent
from braid.support.sizes.operators import product_of


def infer_sizes(module: ModuleOp) -> None:
    """Give the results of ops the sizes that follow from those of their operands.

    The types of function arguments have the sizes of open dims. Afterwards, so have the types of
    all values that ops of braid and `scf` compute from them, and of function results. A result that
    says an extent keeps it. Ops of other dialects stay as they are.

    Raises:
        BraidError: an op is impossible at these sizes.
        UnsupportedError: branches have different shapes, or a value of a loop changes its own.

    """
    for function in module.walk():
        if isinstance(function, FuncOp) and not function.is_declaration:
            _infer_block(function.body.block)
            _set_result_types(function)


def _infer_block(block: Block) -> None:
    for op in list(block.ops):
        if isinstance(op, TensorOp):
            _infer_results(op)
        elif isinstance(op, scf.IfOp | scf.WhileOp | scf.ForOp):
            take_operand_types(op)
            for region in op.regions:
                for inner in region.blocks:
                    _infer_block(inner)
                    if isinstance(op, scf.WhileOp) and inner is op.before_region.block:
                        _take_condition_types(op)
            infer_control_flow(op)


def _infer_results(op: TensorOp) -> None:
    if all(_says_sizes(result.type) for result in op.results):
        return
    try:
        types = op.checked_result_types()
    except VerifyException as error:
        raise BraidError(f"'{op.name}' op {error}", location=source_location(op)) from error
    for result, type in zip(op.results, types, strict=False):
        extents = list(extents_of_type(type))
        if isinstance(op, ReshapeOp):
            extents = _reshaped(op)
        _sharpen(result, extents)


def _reshaped(op: ReshapeOp) -> list[Extent]:
    """Return the extents of a reshape's result; one open dim follows from the others."""
    extents = list(extents_of(op.results[0]))
    known = [extent for extent in extents if extent != DYNAMIC]
    rest = product_of(known)
    if len(known) == len(extents) - 1 and rest != 0 and _says_sizes(op.operands[0].type):
        extents[extents.index(DYNAMIC)] = product_of(extents_of(op.operands[0])) // rest
    return extents


def _says_sizes(type: Attribute) -> bool:
    """Return whether a type says how large each of its dims is."""
    return not isinstance(type, TensorType) or DYNAMIC not in extents_of_type(cast(AnyTensor, type))


def _sharpen(value: SSAValue, extents: Sequence[Extent]) -> None:
    """Give a value these extents where its type does not say its own."""
    own = extents_of(value)
    if len(own) != len(extents) or not fits(own, extents):
        return  # the verifier reports it
    merged = [known if mine == DYNAMIC else mine for mine, known in zip(own, extents, strict=True)]
    _set_type(value, sized_type(element_type_of(value), merged))


def _set_type(value: SSAValue, type: Attribute) -> None:
    if value.type != type:
        Rewriter.replace_value_with_new_type(value, type)


def take_operand_types(op: Operation) -> None:
    """Give the arguments of a loop's first region the types of its operands."""
    if isinstance(op, scf.WhileOp):
        for argument, value in zip(op.before_region.block.args, op.arguments, strict=True):
            _set_type(argument, value.type)
    elif isinstance(op, scf.ForOp):
        for argument, value in zip(op.body.block.args[1:], op.iter_args, strict=True):
            _set_type(argument, value.type)


def _take_condition_types(op: scf.WhileOp) -> None:
    """Give the arguments of the second region, and the results, the types of the condition's."""
    condition = op.before_region.block.last_op
    if isinstance(condition, scf.ConditionOp):
        after = op.after_region.block.args
        for values in (after, op.results):
            for value, passed in zip(values, condition.operands[1:], strict=True):
                _set_type(value, passed.type)


def infer_nested(op: Operation) -> None:
    """Infer the types of control flow inside of an op, then of the op, from the values that regions
    yield."""
    for region in op.regions:
        for block in region.blocks:
            for inner in list(block.ops):
                infer_nested(inner)
    infer_control_flow(op)


def infer_control_flow(op: Operation) -> None:
    """Give the results of `scf.if`, `scf.while` or `scf.for` the types that its regions yield.

    Raises UnsupportedError where branches yield different shapes, or a loop changes one.
    """
    if isinstance(op, scf.IfOp):
        _infer_if(op)
    elif isinstance(op, scf.WhileOp):
        _take_condition_types(op)
        _match(op, op.after_region.block, op.before_region.block.args)
    elif isinstance(op, scf.ForOp):
        _match(op, op.body.block, op.body.block.args[1:])
        for result, value in zip(op.results, op.iter_args, strict=True):
            _set_type(result, value.type)


def _infer_if(op: scf.IfOp) -> None:
    yielded = [region.block.last_op for region in op.regions if region.blocks]
    branches = [list(end.operands) for end in yielded if isinstance(end, scf.YieldOp)]
    if not op.results or len(branches) != 2:
        return
    for result, values in zip(op.results, zip(*branches, strict=True), strict=True):
        first, second = (value.type for value in values)
        if first == second:
            _set_type(result, first)
        elif _says_sizes(first) and _says_sizes(second) and not _says_sizes(result.type):
            _refuse(op, f"its branches give {first} and {second}")


def _match(op: Operation, block: Block, arguments: Sequence[SSAValue]) -> None:
    """Bring what a body yields to the types of the values that the loop carries."""
    end = block.last_op
    if end is None:
        return

    def insert(reshape: ReshapeOp) -> SSAValue:
        reshape.location = op.location
        Rewriter.insert_op([reshape], InsertPoint.before(end))
        return reshape.results[0]

    for index, (value, argument) in enumerate(zip(end.operands, arguments, strict=True)):
        left: Attribute = value.type
        entered: Attribute = argument.type
        if left == entered or not (
            isinstance(left, TensorType) and isinstance(entered, TensorType)
        ):
            continue
        own, wanted = extents_of(value), extents_of(argument)
        if own == wanted or DYNAMIC in own or not fits(own, wanted):
            _refuse(op, f"value {index} enters it as {entered!s} and leaves as {left!s}")
        try:
            end.operands[index] = reshape_dim_by_dim(value, wanted, insert)
        except VerifyException as error:
            _refuse(op, f"value {index} leaves it as {left!s}: {error}")


def _refuse(op: Operation, message: str) -> NoReturn:
    raise UnsupportedError(
        f"'{op.name}': {message}, expected one shape",
        location=source_location(op),
        hint="pad its values to one shape, or give the sizes in the types of the function",
    )


def _set_result_types(function: FuncOp) -> None:
    end = function.body.block.last_op
    if isinstance(end, ReturnOp) and len(end.operands) == len(function.function_type.outputs):
        inputs = [argument.type for argument in function.body.block.args]
        function.function_type = FunctionType.from_lists(inputs, list(end.operand_types))
