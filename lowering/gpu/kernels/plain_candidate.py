"""Candidates of families that offer one way to make a kernel."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from xdsl.dialects.builtin import MemRefType, TensorType
from xdsl.ir import Attribute, Block, BlockArgument

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.tensor_storage import storage_bytes
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.scan import ScanOp
from braid.dialects.braid.sorting import TopKOp
from braid.lowering.common.element_types import signless_tensor
from braid.targets.kernels.flexible_layouts import row_major_choice
from braid.targets.kernels.kernel_family import Candidate
from braid.targets.kernels.schedules import Schedule
from braid.targets.machines.machine import Machine


@dataclass(frozen=True, eq=False)
class PlainCandidate(Candidate[Schedule]):
    """Reads and writes row-major tensors, with a single schedule.

    Subclasses add what their families matched.
    """

    group: FusedOp
    machine: Machine

    @property
    def layouts(self) -> Sequence[LayoutChoice]:
        """Row-major layouts alone."""
        return [row_major_choice(self.group)]

    def seconds(self, choice: LayoutChoice) -> float:
        """Return the seconds of moving each operand and result once: computing overlaps
        with that.
        """
        moved = sum(storage_bytes(v.type) for v in (*self.group.inputs, *self.group.outputs))
        return moved / self.machine.fact("memory_bandwidth", 2e12)


@dataclass(frozen=True, eq=False)
class AlongDim(PlainCandidate):
    """A single op that processes its operand row by row along a dim."""

    op: ScanOp | TopKOp

    @property
    def dim(self) -> int:
        """The dim that rows lie along."""
        return self.op.dim.value.data

    @cached_property
    def buffers(self) -> Sequence[BlockArgument]:
        """Memory of the operand, and of each result."""
        types: list[Attribute] = []
        for value in (*self.group.inputs, *self.group.outputs):
            tensor = signless_tensor(cast(TensorType[Any], value.type))
            types.append(MemRefType(tensor.element_type, tensor.get_shape()))
        return Block(arg_types=types).args

    @property
    def outer(self) -> list[int]:
        """Extents of the other dims."""
        return [extent for d, extent in enumerate(shape_of(self.op.input)) if d != self.dim]
