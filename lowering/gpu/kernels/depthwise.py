"""Depthwise convolutions channels last, with what follows elementwise: nothing between is stored.

A thread has neighbouring channels of a point of the result, whose window it reads by accesses of
16 bytes, and so the weights, which lie channels last as well.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import i32
from xdsl.ir import BlockArgument, SSAValue

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.tensor_storage import storage_bytes
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.regions import FusedOp
from braid.lowering.common.tensor_loops import index_constant
from braid.lowering.gpu.aligned_entries import is_aligned
from braid.lowering.gpu.fallback.emit_fallback import emit_fallback
from braid.lowering.gpu.kernels.contraction.candidate import (
    ProductEntry,
    ProductMatch,
    bufferized_product,
    match_product,
    product_kernel,
)
from braid.lowering.gpu.kernels.contraction.code import Code
from braid.lowering.gpu.kernels.contraction.epilogue import Epilogue
from braid.lowering.gpu.kernels.contraction.kernel import product_nests
from braid.lowering.gpu.kernels.contraction.partial_sums import sum_type
from braid.lowering.gpu.kernels.contraction.problem import Part
from braid.lowering.gpu.kernels.conv import CHANNELS_LAST, channels_last
from braid.lowering.gpu.kernels.thread_nests import ThreadNest, global_thread
from braid.lowering.gpu.kernels.wide_sums import WideSums, each_lane
from braid.lowering.gpu.launches import THREADS, blocks_for
from braid.targets.kernels.kernel_family import Kernel, Overlap, Schedule
from braid.targets.machines.machine import Machine

_WEIGHTS = {3: "bca", 4: "bcda", 5: "bcdea"}
"""Channels of the result innermost."""


@dataclass(frozen=True)
class DepthwiseFamily:
    """`braid.conv` without padding with a channel a group, channels last, and its epilogue."""

    machine: Machine
    name: str = "gpu-depthwise"
    version: int = 1

    def match(self, group: FusedOp) -> "_Depthwise | None":
        """One convolution of block arguments, the rest elementwise on its result."""
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
class _Depthwise:
    group: FusedOp
    machine: Machine
    found: ProductMatch

    @property
    def layouts(self) -> Sequence[LayoutChoice]:
        """Channels last, and channels innermost in weights."""
        operands = list(map(channels_last, self.group.inputs))
        weight = self.found.op.operands[1]
        assert isinstance(weight, BlockArgument)
        operands[weight.index] = Layout.parse(_WEIGHTS[len(shape_of(weight))])
        return [LayoutChoice(tuple(operands), tuple(map(channels_last, self.group.outputs)))]

    def takes_strides(self, choice: LayoutChoice) -> bool:
        """Not at all."""
        return False

    def seconds(self, choice: LayoutChoice) -> float:
        """Of moving each operand and result once: there is next to nothing to compute."""
        moved = sum(storage_bytes(v.type) for v in (*self.group.inputs, *self.group.outputs))
        return moved / self.machine.fact("memory_bandwidth", 2e12)

    def space(self, level: int) -> Iterator[Schedule]:
        """There is nothing to choose."""
        if level == 0:
            yield {}

    def overlap(self) -> Overlap | None:
        """Never."""
        return None

    def emit(self, symbol: str, schedule: Schedule) -> Kernel:
        """One entry, a thread some channels of a point."""
        function = bufferized_product(self.group, symbol)
        nests = product_nests(function)
        if nests is None:
            return emit_fallback(self.group, symbol)
        results = tuple(function.body.block.args[:-2])[len(self.group.inputs) :]
        epilogue = Epilogue.of(nests.product, nests.others, results)
        if epilogue is None or epilogue.inner is None:
            return emit_fallback(self.group, symbol)
        own = ThreadNest.of(nests.product, epilogue.inner)
        lane = Part(epilogue.inner, 1, own.extents[epilogue.inner])
        sums = WideSums.of(own, epilogue.width([lane]))
        if sums is None or epilogue.inner != sums.lane:
            return emit_fallback(self.group, symbol)
        channels = _Channels(sums, epilogue, self.found.op.accumulator == i32)
        entry = ProductEntry(
            blocks_for(sums.threads),
            THREADS,
            0,
            nests.constants,
            lambda code, values, _, __: channels.emit(code, values),
        )
        return product_kernel([entry], function, symbol, self.group)


@dataclass(frozen=True)
class _Channels:
    """The code of a thread."""

    sums: WideSums
    epilogue: Epilogue
    is_integer: bool

    def emit(self, code: Code, values: Mapping[SSAValue, SSAValue]) -> None:
        """Sums of a window and what follows of them, for neighbouring channels of a point."""
        b = code.builder
        aligned = is_aligned(b)
        index = global_thread(b, THREADS)
        limit = index_constant(b, self.sums.threads)
        inside = code.insert(arith.CmpiOp(index, limit, "ult"))

        def work(own: Code) -> None:
            point = self.sums.point(own.builder, index)
            own.choose(
                aligned,
                lambda at: self._wide(at, point, values),
                lambda at: self._single(at, point, values),
            )

        code.choose(inside, work)

    def _wide(
        self, code: Code, point: Mapping[int, SSAValue], values: Mapping[SSAValue, SSAValue]
    ) -> None:
        start = [code.number(0, sum_type(self.is_integer))] * self.sums.width
        lanes = self.sums.sums(code.builder, point, start, values)
        self._store(code, lanes, point, values)

    def _single(
        self, code: Code, point: Mapping[int, SSAValue], values: Mapping[SSAValue, SSAValue]
    ) -> None:
        """One by one, where buffers begin anywhere."""
        builder, own = each_lane(code.builder, point, self.sums.lane, self.sums.width)
        at = Code(builder)
        start = [at.number(0, sum_type(self.is_integer))]
        lane = self.sums.own.reduce(builder, own, start, values)
        self._store(at, list(lane), own, values)

    def _store(
        self,
        code: Code,
        lanes: list[SSAValue],
        point: Mapping[int, SSAValue],
        values: Mapping[SSAValue, SSAValue],
    ) -> None:
        known = {dim: code.narrow(index) for dim, index in point.items()}
        self.epilogue.emit(code, lanes, known, self.sums.lane, values)
