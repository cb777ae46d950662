"""Kernels for groups that no family takes: linalg and upstream's passes."""

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region, SSAValue

from braid.analysis.storage.strided_storage import strides_of
from braid.dialects.braid.regions import FusedOp
from braid.lowering.common.convert_braid_to_linalg import ConvertBraidToLinalgPass
from braid.lowering.common.element_types import signless_tensor, tensor_type_of
from braid.lowering.common.materialize_layouts import MaterializeLayoutsPass
from braid.lowering.common.upstream import generic_form
from braid.lowering.common.upstream_parsing import parse_upstream
from braid.lowering.cpu.fallback.buffers import finish_buffers
from braid.lowering.cpu.fallback.destination_passing import to_destination_passing
from braid.lowering.cpu.fallback.passes import FALLBACK_PASSES
from braid.lowering.host.codegen.kernel_text import module_text
from braid.support.errors import BraidError
from braid.targets.kernels.kernel_family import Kernel

VERSION = 1
"""Of this emitter, as the `version` of a family."""


def emit_fallback(group: FusedOp, symbol: str) -> Kernel:
    """A kernel for any group of ops with static shapes, in the layouts of its types.

    Raises UnsupportedError for an op without code or an open dim, and BraidError where upstream
    MLIR rejects the group.
    """
    module = ModuleOp([_function(group, symbol)])
    context = Context()
    ConvertBraidToLinalgPass().apply(context, module)
    function = module.body.block.first_op
    assert isinstance(function, FuncOp)
    expected = tuple(signless_tensor(tensor_type_of(v)) for v in group.outputs)
    assert function.function_type.outputs.data == expected, "a result lost its layout"
    MaterializeLayoutsPass().apply(context, module)
    kernel = ModuleOp([to_destination_passing(function, strides_of(group))])
    try:
        text = generic_form(module_text(kernel), FALLBACK_PASSES)
    except BraidError as error:
        raise BraidError(f"kernel '{symbol}': {error.message}") from error
    return finish_buffers(symbol, parse_upstream(text), len(group.inputs))


def _function(group: FusedOp, symbol: str) -> FuncOp:
    """The group as a function from its operands to its results."""
    block = Block(arg_types=group.inputs.types)
    values: dict[SSAValue, SSAValue] = dict(zip(group.body.block.args, block.args, strict=True))
    for op in group.body.block.ops:
        if op is not group.terminator:
            block.add_op(op.clone(values))
    block.add_op(ReturnOp(*(values.get(v, v) for v in group.terminator.arguments)))
    return FuncOp(symbol, (group.inputs.types, group.outputs.types), Region(block))
