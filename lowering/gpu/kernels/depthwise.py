"""Depthwise convolutions channels last, with what follows elementwise: nothing between is stored.

A thread has neighbouring channels of a point of the result. It reads the window, and the weights,
which are channels-last as well, by accesses of 16 bytes. If there are many threads, each has points
of several rows, whose windows overlap.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import gpu
from xdsl.ir import BlockArgument

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.regions import FusedOp
from braid.lowering.gpu.contraction.problem import bufferized_product
from braid.lowering.gpu.fallback.contracted_sums import contract_sums
from braid.lowering.gpu.fallback.emit_instead import emit_instead
from braid.lowering.gpu.fallback.sums_with_epilogue import SumsWithEpilogue
from braid.lowering.gpu.kernels.contraction_candidate import (
    ProductEntry,
    ProductMatch,
    match_product,
    product_kernel,
)
from braid.lowering.gpu.kernels.conv import CHANNELS_LAST, channels_last
from braid.lowering.gpu.kernels.plain_candidate import PlainCandidate
from braid.lowering.gpu.launch.entries import limit_blocks
from braid.lowering.gpu.launch.launches import THREADS, blocks_for
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
        function = bufferized_product(self.group, symbol)
        contract_sums(function)
        results = tuple(function.body.block.args[:-2])[len(self.group.inputs) :]
        sums = SumsWithEpilogue.of(function, results)
        if sums is None or sums.wide is None:
            return emit_instead(self.group, symbol, "sums over a window")
        entry = ProductEntry(
            blocks_for(sums.threads),
            THREADS,
            0,
            sums.constants,
            lambda code, values, _, __: sums.emit(code, values),
        )
        kernel = product_kernel([entry], function, symbol, self.group, self.machine)
        for made in [op for op in kernel.module.walk() if isinstance(op, gpu.FuncOp)]:
            limit_blocks(made, sums.blocks)
        return kernel
