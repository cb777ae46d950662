"""Finish a kernel after bufferization: give it its scratch memory and its grid."""

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from braid.lowering.common.bufferized_group import (
    argument_attributes,
    copies_as_nests,
    move_to_scratch,
)
from braid.lowering.common.loop_nest import in_place_arguments
from braid.lowering.cpu.fallback.long_sums import long_sums_as_loops
from braid.lowering.cpu.fallback.parallel_loops import parallelize
from braid.targets.kernels.kernel_family import Kernel


def finish_buffers(symbol: str, module: ModuleOp, operands: int) -> Kernel:
    """Return the kernel made of a bufferized module, whose first `operands` arguments are only
    read.

    A kernel that only computes its one result is split into independent iterations. Otherwise
    its buffers become views of one scratch argument.
    """
    function = next(op for op in module.ops if isinstance(op, FuncOp))
    copies_as_nests(function)
    in_place = in_place_arguments(function, operands)
    results = len(function.body.block.args) - 2 - operands
    function.arg_attrs = argument_attributes(operands, results, in_place)
    grid = parallelize(function)
    if grid is not None:
        return Kernel(symbol, module, grid, in_place=in_place)
    long_sums_as_loops(function)
    scratch_bytes = move_to_scratch(function)
    return Kernel(symbol, module, 1, scratch_bytes, in_place)
