"""A product of two tensors as one product of matrices for each batch.

Every dim of the product is a batch (both operands have it, and the result), a row (A and the
result), a column (B and the result) or a depth (both operands, and not the result). Rows, columns
and K are numbered row-major over their dims, so that convolutions are products as well: implicit
GEMM (S. Chetlur et al., "cuDNN: Efficient Primitives for Deep Learning", 2014).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from math import prod
from typing import Any, cast

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, MemRefType, i32
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineMap

from braid.analysis.nests.stage_steps import Part, parts_of, steps_along
from braid.dialects.braid.base import element_type_of
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.dtypes import bytes_of, is_unsigned
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.quantization import is_byte
from braid.dialects.braid.structure import Stage
from braid.lowering.gpu.nests.placement import Placed

ProductOp = MatmulOp | ConvOp


class ElementKind(Enum):
    """The kind of the elements that are multiplied, as `mma` instructions name it."""

    F32 = "f32"
    TF32 = "tf32"
    F16 = "f16"
    BF16 = "bf16"
    S8 = "s8"
    U8 = "u8"


def element_kinds(op: ProductOp) -> tuple[ElementKind, ElementKind] | None:
    """Return the kinds of the operands of a product; None where GPUs multiply no such numbers."""
    left, right = (element_type_of(operand) for operand in op.operands)
    if op.accumulator == i32 and is_byte(left) and is_byte(right):
        first, second = (
            ElementKind.U8 if is_unsigned(type) else ElementKind.S8 for type in (left, right)
        )
        return first, second
    if op.accumulator is not None or left != right:
        return None
    kinds: dict[type[Attribute], ElementKind] = {
        Float32Type: ElementKind.F32,
        BFloat16Type: ElementKind.BF16,
        Float16Type: ElementKind.F16,
    }
    kind = kinds.get(type(left))
    return None if kind is None else (kind, kind)


@dataclass(frozen=True)
class ProductMatch:
    """A product, what it multiplies, what is elementwise on it, in order, and the results of all.

    Bytes of either sign are of kind S8. The ops `after` it may be constants of one value, too.
    """

    op: ProductOp
    kind: ElementKind
    after: tuple[Operation, ...]
    results: tuple[SSAValue, ...]


Terms = tuple[tuple[int, int], ...]
"""Extents and strides of dims, outermost first."""


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

    `parts` are those of batches, rows, columns and K, of dims of `stage`, whose operands have these
    element `types`. A is its second operand if it is `turned`.
    """

    stage: Stage
    types: tuple[Attribute, Attribute]
    a: Operand
    b: Operand
    batches: tuple[Part, ...]
    rows: tuple[Part, ...]
    columns: tuple[Part, ...]
    depths: tuple[Part, ...]
    turned: bool

    @property
    def is_integer(self) -> bool:
        """Return whether bytes are multiplied."""
        return self.a.kind in (ElementKind.S8, ElementKind.U8)

    @property
    def as_tf32(self) -> "Contraction":
        """The same of f32, whose elements are rounded to tf32 before they are multiplied."""
        a, b = (replace(operand, kind=ElementKind.TF32) for operand in (self.a, self.b))
        return replace(self, a=a, b=b)

    def count(self, parts: Sequence[Part]) -> int:
        """Return how many points parts have."""
        return prod(part.extent for part in parts)

    @staticmethod
    def of(op: ProductOp, places: Mapping[SSAValue, Placed], result: Layout) -> "Contraction":
        """Return the contraction of a product without padding whose operands lie at `places`.

        Points are numbered in the order of `result`. Its innermost dim is one of columns, if only
        one operand has it.
        """
        (stage,) = op.structure().stages
        kinds = element_kinds(op)
        assert kinds is not None, "a product of numbers that GPUs multiply"
        order = [*result.permutation, *stage.reduction_dims]
        parts = sorted(parts_of(stage), key=lambda part: order.index(part.dim))
        buffers = [places[operand] for operand in op.operands]
        steps = [
            _steps(own, read.map, parts) for own, read in zip(buffers, stage.reads, strict=True)
        ]
        by_kind = _by_kind(stage, steps)
        inner = result.permutation[-1:]
        turned = any((part.dim,) == inner and part.factor == 1 for part in by_kind["row"])
        if turned:
            by_kind["row"], by_kind["column"] = by_kind["column"], by_kind["row"]
        numbers = (1, 0) if turned else (0, 1)
        inmost = by_kind["depth"][-1:]
        if all(own[part] != 1 for own in steps for part in inmost):
            # Neighbours in A become neighbours along K, as channels last are.
            by_kind["depth"].sort(key=lambda part: -steps[numbers[0]][part])

        def operand(number: int, own: str) -> Operand:
            terms = (
                merged([(part.extent, steps[number][part]) for part in by_kind[kind]])
                for kind in ("batch", own, "depth")
            )
            return Operand(buffers[number].buffer, kinds[number], *terms)

        left, right = (element_type_of(operand) for operand in op.operands)
        return Contraction(
            stage,
            (left, right),
            operand(numbers[0], "row"),
            operand(numbers[1], "column"),
            tuple(by_kind["batch"]),
            tuple(by_kind["row"]),
            tuple(by_kind["column"]),
            tuple(by_kind["depth"]),
            turned,
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


def _steps(tensor: Placed, map: AffineMap, parts: Sequence[Part]) -> dict[Part, int]:
    access = tensor.access(map)
    steps = steps_along(access.map, access.strides, parts)
    assert steps is not None, "a product reads along its dims, without padding"
    return dict(zip(parts, steps, strict=True))


def _by_kind(stage: Stage, steps: Sequence[Mapping[Part, int]]) -> dict[str, list[Part]]:
    """Return the parts of more than one step by what they are, in order; `steps` of A and of B."""
    kinds: dict[str, list[Part]] = {"batch": [], "row": [], "column": [], "depth": []}
    names = {(True, False): "row", (False, True): "column"}
    a, b = steps
    for part in a:
        if part.extent > 1:
            is_reduced = part.dim in stage.reduction_dims
            kind = "depth" if is_reduced else names.get((a[part] != 0, b[part] != 0), "batch")
            kinds[kind].append(part)
    return kinds
