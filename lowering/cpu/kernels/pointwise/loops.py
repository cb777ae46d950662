"""The loops of an elementwise kernel: vectors along the innermost dim, a mask for the remainder."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, i64
from xdsl.dialects.llvm import CallIntrinsicOp
from xdsl.ir import SSAValue

from braid.analysis.nests.pointwise import PointwiseNest
from braid.dialects.braid.base import element_type_of
from braid.dialects.braid.dtypes import bytes_of
from braid.lowering.cpu.unit.vector_unit import VectorUnit
from braid.lowering.emit.buffer import Buffer
from braid.lowering.emit.emitter import Emitter, Index, Value
from braid.lowering.emit.math.points import evaluate
from braid.support.sizes.expression import Extent
from braid.support.sizes.operators import product_of
from braid.targets.kernels.schedules import Schedule

_CHUNK = 4096
"""Elements of one grid iteration: enough work to hide the call, few enough to share."""
_WORD = 4
"""Bytes of the elements that fill vectors."""
_AHEAD = 2048
"""Elements by which the only tensor that is read is prefetched: `exp` of one that no cache holds
takes 0.6 of the time (Zen 5). Where two are read, processors see to it better on their own."""


@dataclass(frozen=True)
class LoopSchedule(Schedule):
    """The innermost loop has `unroll` vectors in an iteration."""

    unroll: int


@dataclass(frozen=True)
class PointwiseLoops:
    """Emits the loops of a nest: grid = outer dims × chunks of the innermost dim."""

    nest: PointwiseNest
    unit: VectorUnit
    unroll: int

    @property
    def lanes(self) -> int:
        """Elements of a vector."""
        return self.unit.lanes

    @property
    def extent(self) -> Extent:
        """Iterations of the dim that vectors run along."""
        return self.nest.dims[-1].extent

    @property
    def step(self) -> int:
        """Elements of one iteration of the innermost loop."""
        return self.lanes * self.unroll

    @property
    def chunk(self) -> int:
        """Elements along the innermost dim in one grid iteration: a multiple of the step.

        Chunks of a known extent are as equal as can be.
        """
        if not isinstance(self.extent, int):
            return -(-_CHUNK // self.step) * self.step
        chunks = -(-self.extent // _CHUNK)
        return -(-self.extent // (chunks * self.step)) * self.step

    @property
    def grid_extents(self) -> tuple[Extent, ...]:
        """Outer dims, then chunks."""
        return (*(dim.extent for dim in self.nest.dims[:-1]), -(-self.extent // self.chunk))

    @property
    def grid(self) -> Extent:
        """Iterations of the grid."""
        return product_of(self.grid_extents)

    def iteration(self, e: Emitter, buffers: Sequence[Buffer], index: Index) -> None:
        """Compute one chunk: whole vectors, then the remainder under a mask."""
        *outer, chunk = e.coordinates(index, self.grid_extents)
        outer_strides = [dim.strides for dim in self.nest.dims[:-1]]
        bases = [
            e.dot(outer, [strides[tensor] for strides in outer_strides])
            for tensor in range(len(self.nest.dims[-1].strides))
        ]
        extent = self.extent
        tail = e.divmod(extent, self.step)[1]
        whole_end = e.sub(extent, tail)
        start = e.mul(chunk, self.chunk)
        stop = e.minimum(e.add(start, self.chunk), whole_end)

        def whole(position: Index, streams: bool = False) -> None:
            for vector in range(self.unroll):
                begin = e.add(position, vector * self.lanes)
                if self._streams_one:
                    ahead = e.add(e.add(bases[0], begin), _AHEAD)
                    buffers[self.nest.arguments[0]].prefetch(e, ahead)
                self._vector(e, buffers, bases, begin, None, streams)

        def past_caches() -> None:
            e.loop(start, stop, self.step, lambda position: whole(position, streams=True))
            e.effect(CallIntrinsicOp("llvm.x86.sse.sfence", [], []))

        def rest() -> None:
            if not isinstance(self.extent, int):
                e.loop(whole_end, extent, self.lanes, masked)
                return
            for begin in range(self.extent - self.extent % self.step, self.extent, self.lanes):
                self._vector(e, buffers, bases, begin, e.tail_mask(self.extent - begin))

        def masked(position: Index) -> None:
            self._vector(e, buffers, bases, position, e.mask(e.sub(extent, position)))

        if not isinstance(self.extent, int) or self.extent >= self.step:
            if self._streams_results:
                into_caches = partial(e.loop, start, stop, self.step, whole)
                e.branch(self._obstacles(e, buffers, bases, start), 1, past_caches, into_caches)
            else:
                e.loop(start, stop, self.step, whole)
        if tail != 0:
            last = self.grid_extents[-1] - 1
            e.branch(chunk, last, lambda: None, rest)

    @property
    def _streams_results(self) -> bool:
        """Return whether results are too large to be found in a cache, and can go past them."""
        kinds = [element_type_of(result) for result in self.nest.points.results]
        size = sum(map(bytes_of, kinds)) * product_of(dim.extent for dim in self.nest.dims)
        return (
            self.unit.has_streams
            and isinstance(size, int)
            and size > self.unit.last_cache_bytes
            and all(bytes_of(kind) == _WORD for kind in kinds)
        )

    def _obstacles(
        self, e: Emitter, buffers: Sequence[Buffer], bases: Sequence[Index], start: Index
    ) -> Index:
        """Return 0 where every result is aligned to its vectors, and is written over no operand."""
        results = buffers[-len(self.nest.points.results) :]
        found: Index = 0
        for buffer, base in zip(results, bases[-len(results) :], strict=True):
            address = buffer.address(e, e.add(base, start))
            found = e.add(found, e.divmod(address, _WORD * self.lanes)[1])
        for operand, result in self.nest.in_place:
            read, written = buffers[operand].address(e, 0), results[result].address(e, 0)
            is_same = e.insert(arith.CmpiOp(e.index(read), e.index(written), "eq"))
            one = e.insert(arith.ExtUIOp(is_same, i64))
            found = e.add(found, e.insert(arith.IndexCastOp(one, IndexType())))
        return found

    @property
    def _streams_one(self) -> bool:
        """Return whether the first of the operands alone is read along the innermost dim."""
        along = [stride != 0 for stride in self.nest.dims[-1].strides[: self.nest.reads]]
        return along[:1] == [True] and not any(along[1:]) and bool(self.nest.points.leaves)

    def _vector(
        self,
        e: Emitter,
        buffers: Sequence[Buffer],
        bases: Sequence[Index],
        position: Index,
        mask: Value | None,
        streams: bool = False,
    ) -> None:
        """Load, compute and store the lanes from `position` on, past the caches or not."""
        nest, strides = self.nest, self.nest.dims[-1].strides
        offsets = [
            e.add(base, e.dot([position], [s])) for base, s in zip(bases, strides, strict=True)
        ]

        def read(tensor: int) -> Value:
            buffer = buffers[nest.arguments[tensor]]
            offset = e.add(offsets[tensor], nest.starts[tensor])
            return buffer.splat(e, offset) if strides[tensor] == 0 else buffer.load(e, offset, mask)

        leaves = nest.points.leaves
        slices: dict[SSAValue, Value] = {
            op.output: read(n) for n, op in enumerate(nest.points.slices, len(leaves))
        }
        values = evaluate(e, nest.points, lambda leaf: read(leaves.index(leaf)), slices)
        results = offsets[nest.reads :]
        for value, buffer, offset in zip(values, buffers[-len(values) :], results, strict=True):
            if streams:
                buffer.stream(e, value, offset)
            else:
                buffer.store(e, value, offset, mask)
