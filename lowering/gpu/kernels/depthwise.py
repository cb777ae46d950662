"""Depthwise convolutions channels last, with what follows elementwise: nothing between is stored.

A thread has neighbouring channels of a point of the result. It reads the window, and the weights,
which are channels-last as well, by accesses of 16 bytes. If there are many threads, each has points
of several rows, whose windows overlap.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.dialects import gpu
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Block, BlockArgument
from xdsl.rewriter import InsertPoint

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.regions import FusedOp
from braid.lowering.common.element_types import compute_type, constant
from braid.lowering.gpu.contraction.epilogue import Epilogue
from braid.lowering.gpu.contraction.problem import ProductMatch
from braid.lowering.gpu.fallback.contracted_sums import contract_sums
from braid.lowering.gpu.fallback.sums_with_epilogue import SumsWithEpilogue
from braid.lowering.gpu.kernels.contraction_candidate import (
    ProductEntry,
    kernel_of_entries,
    match_product,
)
from braid.lowering.gpu.kernels.conv import CHANNELS_LAST, channels_last
from braid.lowering.gpu.kernels.plain_candidate import PlainCandidate
from braid.lowering.gpu.launch.entries import limit_blocks
from braid.lowering.gpu.launch.launches import THREADS, blocks_for
from braid.lowering.gpu.nests.placement import Placed, Placement
from braid.lowering.gpu.nests.stage_nest import stage_nest
from braid.targets.kernels.flexible_layouts import row_major_choice
from braid.targets.kernels.kernel_family import Kernel, KernelFamily
from braid.targets.kernels.schedules import Schedule
from braid.targets.machines.machine import Machine

_ODD_ROWS = 1.5
"""The factor by which layouts with channels first take longer, where rows have no pairs of
points."""
_WEIGHTS = {3: "bca", 4: "bcda", 5: "bcdea"}
"""Channels of the result innermost."""


@dataclass(frozen=True)
class DepthwiseFamily(KernelFamily):
    """`braid.conv` without padding with a channel a group, channels last, and its epilogue."""

    machine: Machine
    name: str = "gpu-depthwise"
    version: int = 5

    def match(self, group: FusedOp) -> "_Depthwise | None":
        """Match one convolution of block arguments, the rest elementwise on its result."""
        found = match_product(group, ConvOp, self.machine)
        if found is None or not isinstance(found.op, ConvOp):
            return None
        op = found.op
        rank, channels = len(shape_of(op.output)), shape_of(op.output)[1]
        if rank not in CHANNELS_LAST or op.windows.is_padded or op.input is op.weight:
            return None
        if op.groups.value.data != channels or shape_of(op.input)[1] != channels or channels < 2:
            return None
        if any(len(shape_of(value)) != rank for value in (*group.inputs, *group.outputs)):
            return None
        if op.weight.uses.get_length() > 1:
            return None
        return _Depthwise(group, self.machine, found)


@dataclass(frozen=True, eq=False)
class _Depthwise(PlainCandidate):
    found: ProductMatch

    @property
    def layouts(self) -> Sequence[LayoutChoice]:
        """Channels last, with channels innermost in weights, and channels first."""
        operands = list(map(channels_last, self.group.inputs))
        weight = self.found.op.operands[1]
        assert isinstance(weight, BlockArgument)
        operands[weight.index] = Layout.parse(_WEIGHTS[len(shape_of(weight))])
        last = LayoutChoice(tuple(operands), tuple(map(channels_last, self.group.outputs)))
        return [last, row_major_choice(self.group)]

    def seconds(self, choice: LayoutChoice) -> float:
        """Return the seconds; channels first, points are read and written at least in pairs, if
        possible.
        """
        odd = shape_of(self.found.op.output)[-1] % 2 and choice == row_major_choice(self.group)
        return super().seconds(choice) * (_ODD_ROWS if odd else 1.0)

    def emit(self, symbol: str, schedule: Schedule) -> Kernel:
        """Emit one entry, whose threads take some channels of a point each."""
        placement = Placement.of(self.group)
        sums = self._sums(placement)
        entry = ProductEntry(
            blocks_for(sums.threads),
            THREADS,
            0,
            sums.constants,
            lambda code, values, _, __: sums.emit(code, values),
        )
        buffers = placement.buffers
        read = [placement.operands[operand].buffer for operand in self.found.op.operands]
        in_place = sums.epilogue.in_place(buffers, read)
        kernel = kernel_of_entries(
            [entry], buffers, symbol, self.group, self.machine, in_place=in_place
        )
        for made in [op for op in kernel.module.walk() if isinstance(op, gpu.FuncOp)]:
            limit_blocks(made, sums.blocks)
        return kernel

    def _sums(self, placement: Placement) -> SumsWithEpilogue:
        """Return the sums over windows, in the order of the first result, and what follows."""
        op, (first, *_) = self.found.op, placement.results
        (stage,) = op.structure().stages
        types = [element_type_of(operand) for operand in op.operands]
        held = compute_type(element_type_of(op.output))
        shape = first.layout.storage_shape(shape_of(op.output))
        made = Placed(Block(arg_types=[MemRefType(held, shape)]).args[0], first.layout)
        reads = [
            placement.operands[operand].access(read.map)
            for operand, read in zip(op.operands, stage.reads, strict=True)
        ]
        nest = stage_nest(stage, types, reads, made.access(stage.result))
        contract_sums([nest])
        start = constant(Builder(InsertPoint.at_end(Block())), 0, held)
        found = SumsWithEpilogue.of(nest, Epilogue.of(self.found, placement), start)
        assert found is not None, "a window that is added up"
        return found
