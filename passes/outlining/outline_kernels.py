"""`outline-kernels`: every fused group becomes a call of one kernel function."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import FunctionType, ModuleOp, StringAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from braid.analysis.execution.compute_ops import is_compute
from braid.analysis.storage.strided_storage import (
    STORAGE_DECISIONS,
    Strides,
    is_only_storage,
    overlap_of,
    set_overlap,
    set_strides,
    strides_of,
)
from braid.dialects.braid.attribute_names import NAME, RECOMPUTED, SCHEDULE, STREAM
from braid.dialects.braid.clusters import device_name
from braid.dialects.braid.names import union_names
from braid.dialects.braid.regions import FusedOp, YieldOp
from braid.dialects.braid.variants import program_functions
from braid.targets.kernels.equal_groups import EqualGroups
from braid.targets.kernels.keys import stored_text

KERNEL_PREFIX = "kernel_"


def in_group_of_its_own(op: Operation) -> FusedOp:
    """Replace `op` by a group that holds only it."""
    body = Block(arg_types=op.operand_types)
    inner = op.clone(dict(zip(op.operands, body.args, strict=True)))
    for index, operand in enumerate(body.args):
        inner.operands[index] = operand
    body.add_ops([inner, YieldOp(*inner.results)])
    group = FusedOp(list(op.operands), list(op.result_types), body)
    union_names(group, op)
    group.location = op.location
    Rewriter.replace_op(op, group)
    return group


def body_without_names(group: FusedOp) -> Region:
    """Return a copy of the body in which no op or value says which layer of the model it was."""
    body = group.body.clone()
    for argument in body.block.args:
        argument.name_hint = None
    for inner in body.walk():
        inner.attributes.pop(NAME, None)
        inner.attributes.pop(RECOMPUTED, None)
        for result in inner.results:
            result.name_hint = None
    return body


def kernel_function(symbol: str, group: FusedOp) -> func.FuncOp:
    """Return the private function that computes the group's body."""
    region = body_without_names(group)
    last = region.block.last_op
    assert isinstance(last, YieldOp)
    region.block.insert_op_before(func.ReturnOp(*last.arguments), last)
    last.detach()
    last.erase()
    signature = FunctionType.from_lists(list(group.operand_types), list(group.result_types))
    function = func.FuncOp(symbol, signature, region, visibility=StringAttr("private"))
    for name in (*STORAGE_DECISIONS, SCHEDULE, STREAM):
        if (attribute := group.attributes.get(name)) is not None:
            function.attributes[name] = attribute
    return function


def outlined_group(function: func.FuncOp) -> FusedOp:
    """Return the group that `kernel_function` made `function` of, on operands of its own."""
    body = function.body.clone().block
    last = body.last_op
    assert isinstance(last, func.ReturnOp)
    body.insert_op_before(YieldOp(*last.arguments), last)
    last.detach()
    last.erase()
    region = body.parent
    assert region is not None
    region.detach_block(body)
    operands = Block(arg_types=function.function_type.inputs.data)
    group = FusedOp(operands.args, function.function_type.outputs.data, body)
    operands.add_op(group)
    for name in (*STORAGE_DECISIONS, SCHEDULE):
        if (attribute := function.attributes.get(name)) is not None:
            group.attributes[name] = attribute
    return group


def replace_by_call(symbol: str, group: FusedOp) -> None:
    """Put a call of the kernel where the group stands."""
    call = func.CallOp(symbol, list(group.operands), list(group.result_types))
    call.attributes.update(group.attributes)
    call.location = group.location
    Rewriter.replace_op(group, call)


def dissolve(group: FusedOp) -> None:
    """Put the single op of a group that computes nothing in the place of the group."""
    inner = group.body.block.first_op
    assert inner is not None and inner.next_op is group.terminator
    op = inner.clone(dict(zip(group.body.block.args, group.operands, strict=True)))
    op.attributes.update(group.attributes)
    op.location = group.location
    Rewriter.replace_op(group, op)


def inputs_once(group: FusedOp) -> None:
    """Join operands that are the same value, so that a kernel's arguments never alias."""
    block = group.body.block
    first: dict[SSAValue, int] = {}
    kept: list[SSAValue] = []
    strides = strides_of(group)
    kept_strides: list[Strides | None] = []
    arguments, operands = list(block.args), list(group.operands)
    for argument, operand, lies in zip(arguments, operands, strides, strict=False):
        if operand in first:
            argument.replace_all_uses_with(block.args[first[operand]])
            block.erase_arg(argument)
        else:
            first[operand] = len(kept)
            kept.append(operand)
            kept_strides.append(lies)
    overlap = overlap_of(group)
    set_overlap(group, None if overlap is None else kept.index(operands[overlap]))
    group.operands = kept
    set_strides(group, [*kept_strides, *strides[len(operands) :]])


@dataclass(frozen=True)
class OutlineKernelsPass(ModulePass):
    """Makes one private function `@kernel_N` of every `braid.fused` group and calls it.

    In: a function `@main` in whose body (and nested control flow) every op that computes is in a
    group; an op outside of groups gets a separate one. Out: `@main` holds only calls, control flow,
    views, launches, parameters and constants. Groups that compute the same on one device share a
    kernel.

    ```mlir
    %y = braid.fused(%x) : (tensor<4xf32>) -> tensor<4xf32> { … }
    // becomes
    %y = func.call @kernel_0(%x) : (tensor<4xf32>) -> tensor<4xf32>
    ```
    """

    name = "outline-kernels"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Outline the groups of the model and of what it launches."""
        symbols: dict[str, str] = {}
        texts = EqualGroups(stored_text)
        for function in program_functions(op):
            for group in _groups(function.body):
                if is_only_storage(group):
                    dissolve(group)
                    continue
                if STREAM not in group.attributes:
                    inputs_once(group)
                schedule = group.attributes.get(SCHEDULE)
                stream = group.attributes.get(STREAM)
                key = f"{device_name(function)}\n{schedule}\n{stream}\n{texts.of(group)}"
                if key not in symbols:
                    symbols[key] = f"{KERNEL_PREFIX}{len(symbols)}"
                    op.body.block.add_op(kernel_function(symbols[key], group))
                replace_by_call(symbols[key], group)


def _groups(region: Region) -> list[FusedOp]:
    """Return all groups of the region, in order; ops without one get their own."""
    groups: list[FusedOp] = []
    for block in region.blocks:
        for op in list(block.ops):
            if isinstance(op, FusedOp):
                groups.append(op)
            elif is_compute(op):
                groups.append(in_group_of_its_own(op))
            else:
                groups.extend(group for inner in op.regions for group in _groups(inner))
    return groups
