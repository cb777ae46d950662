"""The attributes by which functions of kernels describe how to run them in parallel."""

from dataclasses import dataclass
from typing import cast

from xdsl.dialects import func
from xdsl.dialects.builtin import DenseArrayBase, IntegerType, ModuleOp

from braid.dialects.braid.attribute_names import (
    BARRIERS,
    GRID,
    KERNEL_SIZES,
    SCRATCH_BYTES,
    WORKERS,
)
from braid.dialects.braid.sizes import SizesAttr, extent_attribute
from braid.support.sizes.expression import Extent


@dataclass(frozen=True)
class Workers:
    """The at most `count` workers of kernels with scratch, each with `scratch_bytes` of it."""

    count: int
    scratch_bytes: Extent


@dataclass(frozen=True)
class KernelGrid:
    """The iterations of a kernel; before each of `barriers`, all earlier ones are finished.

    With `workers`, the last buffer of the kernel is the scratch memory of all workers. The kernel
    takes the values of `sizes` as arguments.
    """

    iterations: Extent = 1
    workers: Workers | None = None
    barriers: tuple[int, ...] = ()
    sizes: tuple[Extent, ...] = ()


def kernel_grids(source: ModuleOp) -> dict[str, KernelGrid]:
    """Return the grid of each kernel by its symbol: one iteration where a function says nothing."""
    functions = (op for op in source.ops if isinstance(op, func.FuncOp))
    return {function.sym_name.data: _grid(function) for function in functions}


def _grid(function: func.FuncOp) -> KernelGrid:
    count, barriers = extent_attribute(function, WORKERS), function.attributes.get(BARRIERS)
    bytes = extent_attribute(function, SCRATCH_BYTES)
    scratch_bytes: Extent = 0 if bytes is None else bytes
    grid, sizes = extent_attribute(function, GRID), function.attributes.get(KERNEL_SIZES)
    return KernelGrid(
        1 if grid is None else grid,
        Workers(count, scratch_bytes // count) if isinstance(count, int) and count else None,
        cast(DenseArrayBase[IntegerType], barriers).get_values() if barriers else (),
        sizes.get_values() if isinstance(sizes, SizesAttr) else (),
    )
