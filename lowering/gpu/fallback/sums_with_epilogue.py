"""Reductions with elementwise ops on the result, in one entry: the sums are not stored.

A thread has neighbouring points of the result if these can be accessed by 16 bytes at once, as with
channels-last windows, else one point.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.func import FuncOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue

from braid.analysis.nests.stage_steps import Part
from braid.lowering.common.tensor_loops import delinearized, index_constant
from braid.lowering.gpu.contraction.code import Code
from braid.lowering.gpu.contraction.epilogue import Epilogue
from braid.lowering.gpu.fallback.nest_epilogue import epilogue_of, sum_nests
from braid.lowering.gpu.launch.aligned_entries import is_aligned
from braid.lowering.gpu.launch.launches import THREADS
from braid.lowering.gpu.nests.thread_nests import ThreadNest, global_thread
from braid.lowering.gpu.nests.wide_sums import WideSums, each_lane

Values = Mapping[SSAValue, SSAValue]
Point = Mapping[int, SSAValue]


@dataclass(frozen=True)
class SumsWithEpilogue:
    """The code of a thread: `wide` where it has neighbours, `own` for one point.

    Sums begin as `start`, a constant.
    """

    own: ThreadNest
    wide: WideSums | None
    epilogue: Epilogue
    start: SSAValue

    @staticmethod
    def of(
        nest: linalg.GenericOp, epilogue: Epilogue, start: SSAValue
    ) -> "SumsWithEpilogue | None":
        """Return the sums of a nest; None where there are none, or results have no dims."""
        inner = epilogue.inner
        if inner is None:
            return None
        own = ThreadNest.of(nest, inner)
        if not own.reduced or not own.points:
            return None
        wide = WideSums.of(own, epilogue.width([Part(inner, 1, own.extents[inner])]))
        if wide is not None and wide.tile.lane != inner:
            wide = None
        return SumsWithEpilogue(own, wide, epilogue, start)

    @property
    def constants(self) -> tuple[Operation, ...]:
        """The numbers that the code needs."""
        assert isinstance(self.start.owner, Operation)
        return tuple(dict.fromkeys((*self.epilogue.constants, self.start.owner)))

    @property
    def threads(self) -> int:
        """Return the number of threads that have work."""
        return self.own.points if self.wide is None else self.wide.threads

    @property
    def blocks(self) -> int:
        """Blocks that fit a multiprocessor at least, with the registers that a thread needs."""
        return self.own.blocks if self.wide is None else self.wide.blocks

    def emit(self, code: Code, values: Values) -> None:
        """Emit the sum and its epilogue, for a thread; `values` are the entry's for the kernel's
        arguments.
        """
        b = code.builder
        aligned = is_aligned(b) if self.wide is not None else None
        index = global_thread(b, THREADS)
        limit = index_constant(b, self.threads)
        inside = code.insert(arith.CmpiOp(index, limit, "ult"))

        def work(at: Code) -> None:
            if self.wide is None or aligned is None:
                extents = [self.own.extents[dim] for dim in self.own.parallel]
                place = delinearized(at.builder, index, extents)
                self._single(at, dict(zip(self.own.parallel, place, strict=True)), values)
                return
            wide, point = self.wide, self.wide.point(at.builder, index)
            at.choose(
                aligned,
                lambda own: self._wide(own, wide, point, values),
                lambda own: self._each(own, wide, point, values),
            )

        code.choose(inside, work)

    def _wide(self, code: Code, wide: WideSums, point: Point, values: Values) -> None:
        start = [values[self.start]] * wide.tile.width
        found = wide.sums(code.builder, point, start, values)
        for row, sums in zip(wide.rows(code.builder, point), found, strict=True):
            self._store(code, sums, row, values)

    def _each(self, code: Code, wide: WideSums, point: Point, values: Values) -> None:
        """Compute one sum at a time, where buffers begin anywhere."""
        for row in wide.rows(code.builder, point):
            builder, own = each_lane(code.builder, row, wide.tile.lane, wide.tile.width)
            self._single(Code(builder), own, values)

    def _single(self, code: Code, point: dict[int, SSAValue], values: Values) -> None:
        sums = self.own.reduce(code.builder, point, [values[self.start]], values)
        self._store(code, list(sums), point, values)

    def _store(self, code: Code, sums: list[SSAValue], point: Point, values: Values) -> None:
        known = {dim: code.narrow(index) for dim, index in point.items()}
        self.epilogue.emit(code, sums, known, self.own.parallel[-1], values)


def sums_of(function: FuncOp, results: Sequence[SSAValue]) -> SumsWithEpilogue | None:
    """Return the sums of a bufferized kernel that is a reduction and elementwise nests on it."""
    nests = sum_nests(function)
    epilogue = None if nests is None else epilogue_of(nests, results)
    if nests is None or epilogue is None:
        return None
    return SumsWithEpilogue.of(nests.sums, epilogue, nests.start)
