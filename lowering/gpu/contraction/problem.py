"""A nest that adds up products, as one product of matrices for each batch.

Every dim of the nest is a batch (both operands have it, and the result), a row (A and the result),
a column (B and the result) or a depth (both operands, and not the result). Rows, columns and K
are numbered row-major over their dims, so that convolutions are products as well: implicit GEMM
(S. Chetlur et al., "cuDNN: Efficient Primitives for Deep Learning", 2014).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from math import prod
from typing import Any, cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, IntegerType, MemRefType
from xdsl.dialects.func import FuncOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
)

from braid.dialects.braid.dtypes import bytes_of
from braid.dialects.braid.regions import FusedOp
from braid.lowering.common.bufferized_group import bufferized_group, copies_as_nests
from braid.lowering.common.loop_nest import loops_of
from braid.lowering.gpu.launch.entries import expand_magnitudes


def bufferized_product(group: FusedOp, symbol: str) -> FuncOp:
    """Return the group as loop nests on buffers."""
    module = bufferized_group(group, symbol)
    function = next(op for op in module.ops if isinstance(op, FuncOp))
    copies_as_nests(function)
    expand_magnitudes(function)
    return function


class ElementKind(Enum):
    """The kind of the elements that are multiplied, as `mma` instructions name it."""

    F32 = "f32"
    TF32 = "tf32"
    F16 = "f16"
    BF16 = "bf16"
    S8 = "s8"
    U8 = "u8"


Terms = tuple[tuple[int, int], ...]
"""Extents and strides of dims, outermost first."""


@dataclass(frozen=True)
class Part:
    """Steps along one dim of the nest, each over `factor` of its indices."""

    dim: int
    factor: int
    extent: int


@dataclass(frozen=True)
class Operand:
    """A or B: a buffer, and its strides in elements along batches, its own dims and K."""

    value: SSAValue
    kind: ElementKind
    batch: Terms
    lines: Terms
    depths: Terms

    @property
    def bytes(self) -> int:
        """Bytes of an element."""
        return bytes_of(cast(MemRefType[Any], self.value.type).element_type)

    @property
    def reach(self) -> int:
        """Bytes from a batch's first element to after its last one, at most."""
        return sum(extent * stride for extent, stride in (*self.lines, *self.depths)) * self.bytes

    def chunk(self, along_depth: bool) -> int:
        """Return the bytes that can be copied at once along K or the operand's own dims: 16, 8, 4
        or 0.

        As many as the strides keep aligned, if the buffer begins at a multiple of 16 bytes.
        """
        inner, outer = (self.depths, self.lines) if along_depth else (self.lines, self.depths)
        if not inner or inner[-1][1] != 1:
            return 4 if self.bytes == 4 else 0
        steps = [inner[-1][0], *(s for _, s in (*inner[:-1], *outer, *self.batch))]
        return next((w for w in (16, 8, 4) if all(s * self.bytes % w == 0 for s in steps)), 0)


@dataclass(frozen=True)
class Contraction:
    """result[batch, row, column] = Σ over depths of A · B, in f32, or in i32 for bytes.

    `parts` are those of batches, rows, columns and K.
    """

    nest: linalg.GenericOp
    a: Operand
    b: Operand
    batches: tuple[Part, ...]
    rows: tuple[Part, ...]
    columns: tuple[Part, ...]
    depths: tuple[Part, ...]

    @property
    def is_integer(self) -> bool:
        """Return whether bytes are multiplied."""
        return self.a.kind in (ElementKind.S8, ElementKind.U8)

    @property
    def as_tf32(self) -> "Contraction":
        """The same of f32, whose elements are rounded to tf32 before they are multiplied."""
        a, b = (replace(operand, kind=ElementKind.TF32) for operand in (self.a, self.b))
        return replace(self, a=a, b=b)

    @property
    def result(self) -> SSAValue:
        """The buffer of sums."""
        return self.nest.outputs[0]

    def count(self, parts: Sequence[Part]) -> int:
        """Return how many points parts have."""
        return prod(part.extent for part in parts)

    @staticmethod
    def of(nest: linalg.GenericOp, inner: int | None) -> "Contraction | None":
        """Return the contraction of a nest on buffers whose result begins as zeros; None for other
        nests.

        Dim `inner` of the nest is one of columns, if only one operand has it.
        """
        loops = loops_of(nest)
        numbers = _numbers(nest)
        if numbers is None or len(nest.inputs) != 2 or 0 in loops.extents:
            return None
        parts = _parts(loops.maps, loops.extents)
        steps = [
            _steps(value, map, parts) for value, map in zip(nest.operands, loops.maps, strict=True)
        ]
        if any(step is None for step in steps):
            return None
        a, b, c = (cast("list[int]", step) for step in steps)
        kinds = [_kind(*own) for own in zip(a, b, c, strict=True)]
        used = [(part, kind) for part, kind in zip(parts, kinds, strict=True) if part.extent > 1]
        if any(kind is None for _, kind in used):
            return None
        first, second = 0, 1
        rows = [part for part, kind in used if kind == "row"]
        if any(part.dim == inner and part.factor == 1 for part in rows):
            first, second = 1, 0
            swap = {"row": "column", "column": "row"}
            used = [(part, swap.get(kind or "", kind)) for part, kind in used]
        by_kind = {
            kind: tuple(part for part, own in used if own == kind)
            for kind in ("batch", "row", "column", "depth")
        }
        strides = [dict(zip(parts, step, strict=True)) for step in (a, b)]
        inmost = by_kind["depth"][-1:]
        if all(strides[number][part] != 1 for number in (first, second) for part in inmost):
            # Neighbours in A become neighbours along K, as channels last are.
            by_kind["depth"] = tuple(sorted(by_kind["depth"], key=lambda p: -strides[first][p]))

        def operand(number: int, own: str) -> Operand:
            def terms(kind: str) -> Terms:
                found = [(part.extent, strides[number][part]) for part in by_kind[kind]]
                return merged(found)

            return Operand(
                nest.inputs[number], numbers[number], terms("batch"), terms(own), terms("depth")
            )

        return Contraction(
            nest,
            operand(first, "row"),
            operand(second, "column"),
            by_kind["batch"],
            by_kind["row"],
            by_kind["column"],
            by_kind["depth"],
        )


def merged(terms: Sequence[tuple[int, int]]) -> Terms:
    """Merge neighbouring dims to one where the result has one stride."""
    result: list[tuple[int, int]] = []
    for extent, stride in terms:
        if result and result[-1][1] == extent * stride:
            result[-1] = (result[-1][0] * extent, stride)
        else:
            result.append((extent, stride))
    return tuple(result)


def _kind(a: int, b: int, c: int) -> str | None:
    if c == 0:
        return "depth" if a or b else None
    if a and b:
        return "batch"
    return "row" if a else "column" if b else "batch"


def _numbers(nest: linalg.GenericOp) -> tuple[ElementKind, ElementKind] | None:
    """Return what a body multiplies that adds the product of its two operands to the result."""
    last = nest.body.block.last_op
    assert isinstance(last, linalg.YieldOp)
    if len(last.arguments) != 1 or len(nest.body.block.args) != 3:
        return None
    total = nest.body.block.args[2]
    add = last.arguments[0].owner
    if not isinstance(add, arith.AddfOp | arith.AddiOp) or total not in add.operands:
        return None
    product = next((v.owner for v in add.operands if v is not total), None)
    if not isinstance(product, arith.MulfOp | arith.MuliOp):
        return None
    if not isinstance(total.type, Float32Type) and total.type != IntegerType(32):
        return None
    found = [_element_kind(value, nest.body.block.args) for value in product.operands]
    numbers = {argument: number for own in found if own for argument, number in [own]}
    left, right = (numbers.get(argument) for argument in nest.body.block.args[:2])
    if left is None or right is None:
        return None
    bytes_ = {ElementKind.S8, ElementKind.U8}
    return (left, right) if left is right or {left, right} <= bytes_ else None


def _element_kind(
    value: SSAValue, arguments: Sequence[SSAValue]
) -> tuple[SSAValue, ElementKind] | None:
    """Return the argument of the body that a factor is, maybe after a conversion."""
    owner = value.owner
    source = value
    if isinstance(owner, arith.ExtFOp | arith.ExtSIOp | arith.ExtUIOp):
        source = owner.operands[0]
    if source not in arguments[:2]:
        return None
    type: Attribute = source.type
    if isinstance(type, BFloat16Type):
        return source, ElementKind.BF16
    if isinstance(type, Float16Type):
        return source, ElementKind.F16
    if isinstance(type, Float32Type) and source is value:
        return source, ElementKind.F32
    if type == IntegerType(8) and isinstance(owner, Operation):
        return source, ElementKind.U8 if isinstance(owner, arith.ExtUIOp) else ElementKind.S8
    return None


def _parts(maps: Sequence[AffineMap], extents: Sequence[int]) -> list[Part]:
    """Return the dims; a dim by whose quotient an operand is indexed, such as that of groups,
    counts as two dims.
    """
    divisors: dict[int, int] = {}
    for map in maps:
        for expr in map.results:
            for inner in expr.dfs():
                if isinstance(inner, AffineBinaryOpExpr) and isinstance(inner.lhs, AffineDimExpr):
                    right = inner.rhs
                    if inner.kind is AffineBinaryOpKind.FloorDiv and isinstance(
                        right, AffineConstantExpr
                    ):
                        divisors[inner.lhs.position] = right.value
    parts: list[Part] = []
    for dim, extent in enumerate(extents):
        size = divisors.get(dim, 1)
        if size > 1 and extent % size == 0:
            parts.append(Part(dim, size, extent // size))
            parts.append(Part(dim, 1, size))
        else:
            parts.append(Part(dim, 1, extent))
    return parts


def _steps(value: SSAValue, map: AffineMap, parts: Sequence[Part]) -> list[int] | None:
    """Return the elements from one step along each part to the next; None where that is not a
    number.
    """
    type = cast(MemRefType[Any], value.type)
    strides = type.get_strides()
    if strides is None:
        return None
    steps = [0] * len(parts)
    for expr, stride in zip(map.results, strides, strict=True):
        if not _add_steps(expr, int(stride or 0), parts, steps):
            return None
    return steps


def _add_steps(expr: AffineExpr, scale: int, parts: Sequence[Part], steps: list[int]) -> bool:
    if isinstance(expr, AffineConstantExpr):
        return expr.value == 0
    if isinstance(expr, AffineDimExpr):
        for number, part in enumerate(parts):
            if part.dim == expr.position:
                steps[number] += scale * part.factor
        return True
    if not isinstance(expr, AffineBinaryOpExpr):
        return False
    left, right = expr.lhs, expr.rhs
    if expr.kind is AffineBinaryOpKind.Add:
        return _add_steps(left, scale, parts, steps) and _add_steps(right, scale, parts, steps)
    if not isinstance(right, AffineConstantExpr):
        return False
    if expr.kind is AffineBinaryOpKind.Mul:
        return _add_steps(left, scale * right.value, parts, steps)
    if expr.kind is AffineBinaryOpKind.FloorDiv and isinstance(left, AffineDimExpr):
        for number, part in enumerate(parts):
            if part.dim == left.position and part.factor == right.value:
                steps[number] += scale
                return True
            if part.dim == left.position and part.extent == 1:
                return True
    return False
