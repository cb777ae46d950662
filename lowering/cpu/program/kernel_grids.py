"""What the functions of kernels say about running them in parallel."""

from typing import cast

from xdsl.dialects import func
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, IntegerType, ModuleOp

from braid.lowering.cpu.program.kernels import Workers
from braid.passes.memory.plan_memory import SCRATCH_BYTES

GRID = "braid.grid"
WORKERS = "braid.workers"
"""How many parts of a kernel's grid may run at once, where it has scratch: each has its own."""
BARRIERS = "braid.barriers"
"""`array<i64>` of iterations of a kernel's grid that wait for all earlier ones."""


def grids_of(source: ModuleOp) -> dict[str, int]:
    """Iterations of each kernel's grid, where a kernel says."""
    return {
        op.sym_name.data: grid.value.data
        for op in source.ops
        if isinstance(op, func.FuncOp) and isinstance(grid := op.attributes.get(GRID), IntegerAttr)
    }


def workers_of(source: ModuleOp) -> dict[str, Workers]:
    """The workers of each kernel that runs in parallel with scratch memory."""
    found: dict[str, Workers] = {}
    for op in source.ops:
        if isinstance(op, func.FuncOp) and isinstance(
            count := op.attributes.get(WORKERS), IntegerAttr
        ):
            total = op.attributes[SCRATCH_BYTES]
            assert isinstance(total, IntegerAttr)
            number = count.value.data
            found[op.sym_name.data] = Workers(number, total.value.data // number)
    return found


def barriers_of(source: ModuleOp) -> dict[str, tuple[int, ...]]:
    """The barriers of each kernel that has some."""
    return {
        op.sym_name.data: cast(DenseArrayBase[IntegerType], barriers).get_values()
        for op in source.ops
        if isinstance(op, func.FuncOp)
        and isinstance(barriers := op.attributes.get(BARRIERS), DenseArrayBase)
    }
