"""Stages of structured ops: elements of their results, computed where they are read."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.utils.fast_math import FastMathFlag
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
)

from braid.analysis.diagnostics.locations import source_location
from braid.dialects.braid.base import IndirectOp, StructuredOp, extents_of
from braid.dialects.braid.dtypes import bytes_of, i1, is_float, is_unsigned
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.scalar import Position, Scalar
from braid.dialects.braid.structure import (
    Access,
    OperandSource,
    Stage,
    StageSource,
    neutral_element,
)
from braid.lowering.common.element_types import compute_type, constant, narrow, widen
from braid.lowering.common.scalar_body import BodyEmitter
from braid.lowering.common.scalar_ops import emit_operation
from braid.lowering.cpu.fallback.open_groups.tensors import (
    ComputedTensor,
    Point,
    Tensor,
    bounded,
    index_at,
)
from braid.lowering.emit.emitter import Emitter, Index, Value
from braid.lowering.emit.long_sums import carry_sums
from braid.lowering.emit.positions import position_of
from braid.support.errors import UnsupportedError
from braid.support.sizes.expression import Extent, Size
from braid.support.sizes.operators import is_equal, select

_REASSOCIABLE = arith.FastMathFlagsAttr([FastMathFlag.REASSOC, FastMathFlag.ALLOW_CONTRACT])
"""Sums and products of floats may be computed in any order; nothing else is relaxed."""

Keep = Callable[[Tensor], Tensor]
"""Emit the computation of a tensor before its readers; return where it is."""


def results_of(
    op: StructuredOp | IndirectOp, operands: Sequence[Tensor], keep: Keep
) -> list[Tensor]:
    """Return the results of an op; the stages that others read are kept.

    Raises UnsupportedError for an op whose types do not give the lengths of its loops.
    """
    structure = op.structure()
    final = {
        stage: extents_of(op.results[number]) for number, stage in enumerate(structure.results)
    }
    made: list[Tensor] = []
    for number, stage in enumerate(structure.stages):
        nest = _nest(op, stage, operands, made, final.get(number))
        tensor = StageTensor(nest.extents, stage.result_type, nest.element, nest)
        is_read = any(
            access.source == StageSource(number)
            for later in structure.stages
            for access in later.reads
        )
        made.append(keep(tensor) if is_read else tensor)
    return [made[stage] for stage in structure.results]


def _nest(
    op: StructuredOp | IndirectOp,
    stage: Stage,
    operands: Sequence[Tensor],
    made: Sequence[Tensor],
    result: Sequence[Extent] | None,
) -> "StageNest":
    rank, dims = len(stage.result_shape), len(stage.extents)
    if stage.result != AffineMap(dims, 0, AffineMap.identity(dims).results[:rank]):
        raise UnsupportedError(
            f"no code for '{op.name}' with open dims: its result has no dim of its own for each",
            location=source_location(op),
            hint="give the shape",
        )
    reads = tuple(
        _Read(
            operands[access.source.index]
            if isinstance(access.source, OperandSource)
            else made[access.source.index],
            access,
        )
        for access in stage.reads
    )
    known = dict(enumerate(result or ()))
    for read in reads:
        for dim, extent in read.known():
            known.setdefault(dim, extent)
    space: list[Extent] = []
    for dim, extent in enumerate(stage.extents):
        if extent == DYNAMIC and known.get(dim, DYNAMIC) == DYNAMIC:
            raise UnsupportedError(
                f"no code for '{op.name}' along an open dim whose size has no name",
                location=source_location(op),
                hint="give the shape",
            )
        space.append(known[dim] if extent == DYNAMIC else extent)
    return StageNest(stage, tuple(space), reads, tuple(operands))


@dataclass(frozen=True, eq=False)
class _Read:
    """One access of a stage, and its source."""

    source: Tensor
    access: Access

    def is_along(self, dim: int) -> bool:
        """Return whether neighbours along an iteration dim are neighbours, or one element."""
        *outer, last = self.access.map.results or [AffineConstantExpr(0)]
        if any(dim in expr.used_dims() for expr in outer):
            return False
        return dim not in last.used_dims() or _has_step_1(last, dim)

    def known(self) -> Sequence[tuple[int, Extent]]:
        """Return the iteration dims that go over a dim of the source, with its extent."""
        padding = self.access.padding
        return [
            (expr.position, extent)
            for dim, (expr, extent) in enumerate(
                zip(self.access.map.results, self.source.extents, strict=True)
            )
            if isinstance(expr, AffineDimExpr)
            and (padding is None or (padding.low[dim], padding.high[dim]) == (0, 0))
        ]

    def uses(self, dims: Sequence[int]) -> bool:
        """Return whether the read element changes with some of the dims."""
        return any(dim in dims for expr in self.access.map.results for dim in expr.used_dims())

    def value(self, e: Emitter, point: Point, space: Sequence[Extent]) -> Value:
        """Append the code that reads the element at a point of the iteration space."""
        place = [index_at(e, expr, point) for expr in self.access.map.results]
        padding = self.access.padding
        if padding is None:
            return self.source.at(e, self._repeated(e, place, space))
        shifted = [e.sub(index, low) for index, low in zip(place, padding.low, strict=True)]
        checked = [
            dim
            for dim, (a, b) in enumerate(zip(padding.low, padding.high, strict=True))
            if (a, b) != (0, 0)
        ]
        outside = constant(e.builder, padding.value, compute_type(self.source.element_type))
        return bounded(e, self.source, shifted, checked, outside)

    def _repeated(self, e: Emitter, place: Sequence[Index], space: Sequence[Extent]) -> Point:
        """Return the index, with 0 along dims that may have extent 1 in a longer loop."""
        found: list[Index] = []
        for index, expr, extent in zip(
            place, self.access.map.results, self.source.extents, strict=True
        ):
            loop = space[expr.position] if isinstance(expr, AffineDimExpr) else extent
            if isinstance(extent, Size) and extent != loop:
                index = e.mul(index, select(is_equal(extent, 1), 0, 1))
            found.append(index)
        return found


def _has_step_1(expr: AffineExpr, dim: int) -> bool:
    """Return whether an expression is the index of a dim plus a value that does not depend on
    it."""
    if isinstance(expr, AffineBinaryOpExpr) and expr.kind is AffineBinaryOpKind.Add:
        parts = [side for side in (expr.lhs, expr.rhs) if dim in side.used_dims()]
        return len(parts) == 1 and _has_step_1(parts[0], dim)
    return isinstance(expr, AffineDimExpr)


@dataclass(frozen=True, eq=False)
class StageNest:
    """One stage: the extents of its iteration space, and its accesses."""

    stage: Stage
    space: tuple[Extent, ...]
    reads: tuple[_Read, ...]
    operands: tuple[Tensor, ...]

    @property
    def extents(self) -> tuple[Extent, ...]:
        """Return the extents of the result."""
        return self.space[: len(self.stage.result_shape)]

    def element(self, e: Emitter, point: Point) -> Value:
        """Append the computation of one element of the result."""
        if self.stage.combine is None:
            return self.rounded(e, self.body(e, point, {}))
        reduced = self.stage.reduction_dims
        fixed = {
            number: read.value(e, [*point, *[0] * len(reduced)], self.space)
            for number, read in enumerate(self.reads)
            if not read.uses(reduced)
        }
        first = constant(e.builder, self.neutral, compute_type(self.stage.result_type))
        return self.rounded(e, self._combined(e, list(point), list(reduced), first, fixed))

    @property
    def neutral(self) -> float | int | bool:
        """Return the initial value of the reduction."""
        type = self.stage.result_type
        bits = 1 if type == i1 else 8 * bytes_of(type)
        assert self.stage.combine is not None
        return neutral_element(self.stage.combine, is_float(type), bits, is_unsigned(type))

    def _combined(
        self,
        e: Emitter,
        point: list[Index],
        dims: Sequence[int],
        first: Value,
        fixed: Mapping[int, Value],
    ) -> Value:
        """Append loops over the reduced dims `dims`, starting from the value `first`."""
        if not dims:
            return self.combined(e, first, self.body(e, point, fixed))

        def step(index: Index, carried: Sequence[Value]) -> Sequence[Value]:
            return [self._combined(e, [*point, index], dims[1:], carried[0], fixed)]

        carry = carry_sums if self.stage.combine == "add" else Emitter.carry
        return carry(e, 0, self.space[dims[0]], 1, [first], step)[0]

    def combined(self, e: Emitter, total: Value, value: Value) -> Value:
        """Append the code that adds a value to the result."""
        combine, type = self.stage.combine, self.stage.result_type
        assert combine is not None
        result = emit_operation(e.builder, combine, [total, value], type)
        if combine in ("add", "mul") and is_float(type):
            result.owner.properties["fastmath"] = _REASSOCIABLE  # type: ignore[union-attr]
        return result

    def body(self, e: Emitter, point: Point, fixed: Mapping[int, Value]) -> Value:
        """Append the body at a point of the iteration space; `fixed` are values read before."""
        values = [
            fixed[number] if number in fixed else read.value(e, point, self.space)
            for number, read in enumerate(self.reads)
        ]
        types = [read.source.element_type for read in self.reads]
        emitter = _Body(e.builder, values, types, (), (), (), e, point, self)
        return emitter.emit(self.stage.body)[0]

    def rounded(self, e: Emitter, value: Value) -> Value:
        """Append the code that rounds a value to the result's type."""
        builder = e.builder
        return widen(builder, narrow(builder, value, self.stage.result_type))


@dataclass(frozen=True, eq=False)
class StageTensor(ComputedTensor):
    """The result of a stage."""

    nest: StageNest


@dataclass(frozen=True)
class _Body(BodyEmitter):
    """A body at one point of a nest."""

    emitter: Emitter
    point: Point
    nest: StageNest

    def size(self, size: Extent) -> Value:
        """See the base class."""
        return self.emitter.index(size)

    def index_of(self, dim: int) -> Value:
        """See the base class."""
        return self.emitter.index(self.point[dim])

    def load(self, operand: int, indices: Sequence[Scalar]) -> Value:
        """See the base class."""
        source = self.nest.operands[operand]
        place = [self._place(i, extent) for i, extent in zip(indices, source.extents, strict=True)]
        return source.at(self.emitter, place)

    def _place(self, index: Scalar, extent: Extent) -> Index:
        """Return the index into a dim of this extent; the index of a loop of the same extent is in
        bounds.
        """
        if isinstance(index, Position) and self.nest.space[index.dim] == extent:
            return self.point[index.dim]
        value, type = self.emit(index)
        return position_of(self.emitter, value, extent, is_unsigned(type))
