"""The needs of a model's kernels, as attributes that memory planning and the program read."""

from collections.abc import Sequence

from xdsl.dialects import func
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, ModuleOp, StringAttr, i64

from braid.analysis.storage.strided_storage import set_overlap
from braid.dialects.braid.attribute_names import (
    BARRIERS,
    GRID,
    IN_PLACE,
    KERNEL_SIZES,
    SCRATCH_BYTES,
    STATUS,
    WORKERS,
)
from braid.dialects.braid.buffer import in_place_attribute
from braid.dialects.braid.sizes import SizesAttr, attribute_of
from braid.lowering.host.codegen.compiler import available_cpus
from braid.lowering.host.variants import model_functions
from braid.targets.backend import KernelNeeds


def kernel_functions(
    module: ModuleOp, callers: Sequence[func.FuncOp] | None = None
) -> list[func.FuncOp]:
    """Return the functions of the kernels that `callers` call.

    By default these are all functions that are the model.
    """
    called = {
        op.callee.root_reference.data
        for function in (model_functions(module) if callers is None else callers)
        for op in function.walk()
        if isinstance(op, func.CallOp)
    }
    return [op for op in module.ops if isinstance(op, func.FuncOp) and op.sym_name.data in called]


def workers_of(needs: KernelNeeds) -> int:
    """Return how many parts of the kernel's grid run at once, each with its own memory: one per
    CPU."""
    own = needs.scratch_bytes != 0 and not needs.barriers
    most = available_cpus()
    return 1 if not own else min(needs.grid, most) if isinstance(needs.grid, int) else most


def annotate_kernels(functions: Sequence[func.FuncOp], needs: Sequence[KernelNeeds]) -> None:
    """Write grid, scratch and aliasing of the kernels on their functions."""
    for function, own in zip(functions, needs, strict=True):
        function.attributes[GRID] = attribute_of(own.grid)
        if own.sizes:
            function.attributes[KERNEL_SIZES] = SizesAttr.of(own.sizes)
        workers = workers_of(own)
        if workers > 1:
            function.attributes[WORKERS] = IntegerAttr(workers, i64)
        function.attributes[SCRATCH_BYTES] = attribute_of(own.scratch_bytes * workers)
        function.attributes[IN_PLACE] = in_place_attribute(own.in_place)
        set_overlap(function, own.overlap)
        if own.status:
            function.attributes[STATUS] = StringAttr(own.status)
        if own.barriers:
            function.attributes[BARRIERS] = DenseArrayBase.from_list(i64, own.barriers)
