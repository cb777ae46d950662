"""Computing on the parts of a concatenation instead of on the whole.

A convolution of joined channels is a sum of convolutions of the parts; what keeps channels apart,
such as a depthwise convolution, is made for each part (Ahn et al., "Ordering chaos: memory-aware
scheduling of irregularly wired neural networks", MLSys 2020, "identity graph rewriting").
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from xdsl.dialects.builtin import IntegerAttr, NoneAttr, TensorType, i64
from xdsl.ir import Attribute, Operation, SSAValue, Use
from xdsl.rewriter import InsertPoint, Rewriter

from braid.analysis.storage.tensor_storage import logical_bytes
from braid.analysis.structure.parameter_expressions import ParameterExpressions
from braid.dialects.braid.attribute_names import NAME
from braid.dialects.braid.base import AnyTensor, TensorOp, element_type_of, shape_of
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.dtypes import bytes_of, is_float
from braid.dialects.braid.elementwise import ElementwiseOp, elementwise
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.movement import ConcatOp, PadOp, SliceOp
from braid.dialects.braid.names import derive_names
from braid.dialects.braid.pooling import PoolOp
from braid.dialects.braid.reduction import ReduceOp

_CHANNELS = 1
_SMALL = 8
"""The least factor by which what may be joined again is smaller than the concatenation."""


@dataclass(frozen=True)
class Parts:
    """The tensors that `dim` of a whole consists of, in their order."""

    values: tuple[SSAValue, ...]
    dim: int

    @property
    def extents(self) -> list[int]:
        """The extent of each part."""
        return [shape_of(value)[self.dim] for value in self.values]


@dataclass
class ConcatSplitting:
    """A choice of concatenations that need not exist, and their rewriting.

    `known` says whose values are there at compile time: only such weights are cut.
    """

    known: ParameterExpressions = field(default_factory=ParameterExpressions)
    _vanishing: dict[tuple[SSAValue, int], bool] = field(
        default_factory=dict[tuple[SSAValue, int], bool]
    )

    def can_split(self, concat: ConcatOp) -> bool:
        """Return whether all that reads `concat` can read its parts instead, and so on from
        there.
        """
        self._vanishing.clear()  # what it knows holds until something else is rewritten
        type = cast(TensorType[Any], concat.output.type)
        plain = isinstance(type.encoding, NoneAttr) and len(set(concat.inputs)) > 1
        closed = all(DYNAMIC not in shape_of(v) for v in (*concat.inputs, concat.output))
        return plain and closed and self._vanishes(concat.output, concat.dim.value.data)

    def split(self, concat: ConcatOp) -> None:
        """Make the readers of `concat` read its parts, and erase it."""
        self._read_parts(concat.output, Parts(tuple(concat.inputs), concat.dim.value.data))
        Rewriter.erase_op(concat)

    def _vanishes(self, whole: SSAValue, dim: int) -> bool:
        key = (whole, dim)
        if key not in self._vanishing:
            readers = list(whole.uses)
            self._vanishing[key] = bool(readers) and all(
                self._takes_parts(use, dim, whole) for use in readers
            )
        return self._vanishing[key]

    def _takes_parts(self, use: Use, dim: int, whole: SSAValue) -> bool:
        op = use.operation
        if op.parent is not whole.owner.parent:
            return False
        if isinstance(op, ConcatOp):
            return op.dim.value.data == dim
        if isinstance(op, ConvOp) and op.groups.value.data == 1:
            weights = use.index == 0 and self.known.is_known(op.weight)
            return weights and dim == _CHANNELS and _sums_exactly(op)
        if not isinstance(op, TensorOp) or not self._keeps_apart(op, dim, whole):
            return False
        result = op.results[0]
        small = _SMALL * _bytes(result) <= _bytes(whole)
        return small or self._vanishes(result, dim)

    def _keeps_apart(self, op: TensorOp, dim: int, whole: SSAValue) -> bool:
        """Return whether the result of `op` at one index of `dim` depends on `whole` at that index
        alone.
        """
        match op:
            case ConvOp():
                depthwise = op.groups.value.data == shape_of(op.input)[_CHANNELS]
                known = op.weight is not whole and self.known.is_known(op.weight)
                return dim == _CHANNELS and depthwise and known
            case PoolOp():
                return dim <= _CHANNELS
            case PadOp():
                return op.low.get_values()[dim] == op.high.get_values()[dim] == 0
            case ReduceOp():
                return dim not in op.dims.get_values()
            case ElementwiseOp():
                others = [value for value in op.operands if value is not whole]
                return shape_of(op.output)[dim] == shape_of(whole)[dim] and all(
                    shape_of(value)[dim] == 1 or self.known.is_known(value) for value in others
                )
            case _:
                return False

    def _read_parts(self, whole: SSAValue, parts: Parts) -> None:
        # A rewrite for one reader may rewrite another one, so readers are looked up anew.
        while (use := next(iter(whole.uses), None)) is not None:
            op = use.operation
            if isinstance(op, ConcatOp):
                _flatten(op, whole, parts)
            elif isinstance(op, ConvOp) and op.groups.value.data == 1:
                _sum_of_parts(op, parts)
            else:
                assert isinstance(op, TensorOp)
                self._map_parts(op, whole, parts)

    def _map_parts(self, op: TensorOp, whole: SSAValue, parts: Parts) -> None:
        """Make `op` once for each part."""
        result = op.results[0]
        factor = shape_of(result)[parts.dim] // shape_of(whole)[parts.dim]
        made: list[SSAValue] = []
        start = 0
        for number, value in enumerate(parts.values):
            extent = shape_of(value)[parts.dim]
            dim = 0 if isinstance(op, ConvOp) else parts.dim
            operands = [
                value
                if operand is whole
                else _cut(op, operand, dim, start * factor, extent * factor)
                for operand in op.operands
            ]
            made.append(_part_of(op, operands, parts.dim, extent * factor, number))
            start += extent
        if self._vanishes(result, parts.dim):
            self._read_parts(result, Parts(tuple(made), parts.dim))
        else:
            joined = ConcatOp.get(made, parts.dim)
            joined.location = op.location
            derive_names(joined, op, "joined")
            Rewriter.insert_op(joined, InsertPoint.before(op))
            result.replace_all_uses_with(joined.output)
        Rewriter.erase_op(op)


def _bytes(value: SSAValue) -> int:
    return logical_bytes(cast(AnyTensor, value.type))


def _sums_exactly(op: ConvOp) -> bool:
    """Return whether partial sums in the type of the result are as good as one sum."""
    element_type = element_type_of(op.output)
    return not is_float(element_type) or bytes_of(element_type) >= 4


def _cut(op: Operation, value: SSAValue, dim: int, start: int, extent: int) -> SSAValue:
    """Return a part of a known value; the whole of a value that is repeated along `dim`."""
    shape = list(shape_of(value))
    if shape[dim] == 1:
        return value
    offsets = [start if d == dim else 0 for d in range(len(shape))]
    shape[dim] = extent
    part = SliceOp.get(value, offsets, shape)
    Rewriter.insert_op(part, InsertPoint.before(op))
    return part.output


def _part_of(
    op: TensorOp, operands: Sequence[SSAValue], dim: int, extent: int, number: int
) -> SSAValue:
    """Return `op` on `operands`, part `number` of its result, before `op`."""
    shape = list(shape_of(op.results[0]))
    shape[dim] = extent
    attributes: dict[str, Attribute] = dict(op.attributes)
    if isinstance(op, ConvOp) and op.groups.value.data > 1:
        attributes["groups"] = IntegerAttr(shape_of(operands[0])[_CHANNELS], i64)
    part = type(op).create(
        operands=operands,
        result_types=[TensorType(element_type_of(op.results[0]), shape)],
        attributes=attributes,
    )
    part.location = op.location
    part.attributes.pop(NAME, None)
    derive_names(part, op, f"part{number}")
    Rewriter.insert_op(part, InsertPoint.before(op))
    return part.results[0]


def _sum_of_parts(op: ConvOp, parts: Parts) -> None:
    """Replace a convolution of a concatenation by the sum of the convolutions of its parts with
    slices of the weights.
    """
    channels = shape_of(op.output)[_CHANNELS]
    total: SSAValue | None = None
    start = 0
    for number, (value, extent) in enumerate(zip(parts.values, parts.extents, strict=True)):
        weight = _cut(op, op.weight, _CHANNELS, start, extent)
        product = _part_of(op, [value, weight], _CHANNELS, channels, number)
        start += extent
        if total is None:
            total = product
            continue
        added = elementwise("add", product, total)
        added.location = op.location
        derive_names(added, op, f"sum{number}")
        Rewriter.insert_op(added, InsertPoint.before(op))
        total = added.output
    assert total is not None
    op.output.replace_all_uses_with(total)
    Rewriter.erase_op(op)


def _flatten(op: ConcatOp, whole: SSAValue, parts: Parts) -> None:
    """Join the parts at once where their concatenation was joined with more."""
    values = [v for o in op.inputs for v in (parts.values if o is whole else (o,))]
    flat = ConcatOp.get(values, parts.dim)
    flat.attributes |= op.attributes
    flat.location = op.location
    Rewriter.insert_op(flat, InsertPoint.before(op))
    op.output.replace_all_uses_with(flat.output)
    Rewriter.erase_op(op)
