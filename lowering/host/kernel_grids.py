"""What the functions of kernels say about running them in parallel."""

from dataclasses import dataclass
from typing import cast

from xdsl.dialects import func
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, IntegerType, ModuleOp

from braid.dialects.braid.attribute_names import BARRIERS, GRID, SCRATCH_BYTES, WORKERS


@dataclass(frozen=True)
class Workers:
    """Kernels with scratch run on at most `count` workers, each with so many bytes of it."""

    count: int
    scratch_bytes: int


@dataclass(frozen=True)
class KernelGrid:
    """The iterations of a kernel; before each of `barriers`, all earlier ones are finished.

    With `workers`, the last buffer of the kernel is the scratch memory of all of them.
    """

    iterations: int = 1
    workers: Workers | None = None
    barriers: tuple[int, ...] = ()


def kernel_grids(source: ModuleOp) -> dict[str, KernelGrid]:
    """The grid of each kernel by its symbol: one iteration where a function says nothing."""
    functions = (op for op in source.ops if isinstance(op, func.FuncOp))
    return {function.sym_name.data: _grid(function) for function in functions}


def _grid(function: func.FuncOp) -> KernelGrid:
    count, barriers = _integer(function, WORKERS), function.attributes.get(BARRIERS)
    scratch_bytes = _integer(function, SCRATCH_BYTES) or 0
    return KernelGrid(
        _integer(function, GRID) or 1,
        Workers(count, scratch_bytes // count) if count else None,
        cast(DenseArrayBase[IntegerType], barriers).get_values() if barriers else (),
    )


def _integer(function: func.FuncOp, name: str) -> int | None:
    attribute = function.attributes.get(name)
    return attribute.value.data if isinstance(attribute, IntegerAttr) else None
