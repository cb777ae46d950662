"""One op of StableHLO on complex numbers, with the ops on real ones that replace it."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from xdsl.dialects.builtin import ComplexType, DenseIntOrFPElementsAttr, TensorType
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from braid.dialects.braid.base import AnyTensor, element_type_of, integer, integers, shape_of
from braid.dialects.braid.dtypes import dense_from_numpy, i1
from braid.dialects.braid.relayout import Array
from braid.dialects.stablehlo import (
    Chlo,
    ComparisonDirectionAttr,
    Stablehlo,
    StablehloOp,
)
from braid.passes.stablehlo.node import StablehloNode

Pair = tuple[SSAValue, SSAValue]
"""The real and the imaginary part."""

_OPS = {op.name: op for op in (*Stablehlo.operations, *Chlo.operations)}


def has_parts(type: Attribute) -> bool:
    """Return whether this is a type of tensors of complex numbers."""
    return isinstance(type, TensorType) and isinstance(
        cast(AnyTensor, type).element_type, ComplexType
    )


def is_complex(value: SSAValue) -> bool:
    """Return whether a value is a tensor of complex numbers."""
    return has_parts(value.type)


def part_of(type: Attribute) -> AnyTensor:
    """Return the type of the parts of complex numbers of a type."""
    own = cast(AnyTensor, type)
    element_type = cast("ComplexType[Any]", own.element_type).element_type
    return TensorType(element_type, own.get_shape(), own.encoding)


def part_type(value: SSAValue) -> AnyTensor:
    """Return the type of the parts of a value."""
    return part_of(value.type)


class ComplexNode(StablehloNode):
    """An op on complex numbers; `pairs` are the parts of values that stand before it."""

    def __init__(self, op: StablehloOp, pairs: Mapping[SSAValue, Pair]) -> None:
        super().__init__(op)
        self._pairs = pairs

    def pair(self, index: int) -> Pair:
        """Return the parts of operand `index`, which is complex."""
        value = self.value(index)
        if value not in self._pairs:
            self.fail(f"operand {index} has type {value.type}, expected complex numbers")
        return self._pairs[value]

    def expanded(self) -> list[SSAValue]:
        """Return all operands, with two for each complex one."""
        parts = (self._pairs.get(value, (value,)) for value in self.op.operands)
        return [part for pair in parts for part in pair]

    def one_part(self, number: int) -> list[SSAValue]:
        """Return all operands, with the real part (0) or the imaginary one (1) of complex ones."""
        return [self._pairs[v][number] if v in self._pairs else v for v in self.op.operands]

    def make(
        self,
        name: str,
        operands: Sequence[SSAValue],
        types: Sequence[Attribute],
        properties: Mapping[str, Attribute] | None = None,
        regions: Sequence[Region] = (),
    ) -> Sequence[SSAValue]:
        """Insert an op of StableHLO, and return its results."""
        op = _OPS[name].create(
            operands=operands, result_types=types, properties=properties or {}, regions=regions
        )
        op.location = self.op.location
        Rewriter.insert_op(op, InsertPoint.before(self.op))
        return op.results

    def do(self, name: str, *operands: SSAValue) -> SSAValue:
        """Insert an elementwise op, whose result has the type of its last operand."""
        dialect = "chlo" if name in ("cosh", "sinh") else "stablehlo"
        return self.make(f"{dialect}.{name}", operands, [operands[-1].type])[0]

    def compare(self, direction: str, left: SSAValue, right: SSAValue) -> SSAValue:
        """Insert a comparison."""
        properties = {"comparison_direction": ComparisonDirectionAttr.of(direction)}
        type = TensorType(i1, cast(AnyTensor, left.type).get_shape())
        return self.make("stablehlo.compare", [left, right], [type], properties)[0]

    def full(self, number: float, like: SSAValue) -> SSAValue:
        """Return a number in each place of `like`."""
        type = cast(AnyTensor, like.type)
        value = DenseIntOrFPElementsAttr.from_list(TensorType(type.element_type, []), [number])
        scalar = self.make("stablehlo.constant", [], [value.type], {"value": value})[0]
        places = {"broadcast_dimensions": integers([])}
        return self.make("stablehlo.broadcast_in_dim", [scalar], [type], places)[0]

    def constant_of(self, array: Array) -> SSAValue:
        """Return a constant."""
        value = dense_from_numpy(array)
        return self.make("stablehlo.constant", [], [value.type], {"value": value})[0]

    def convert_to(self, value: SSAValue, element_type: Attribute) -> SSAValue:
        """Return a value in another element type; itself if it has that."""
        type = TensorType(element_type, cast(AnyTensor, value.type).get_shape())
        return value if value.type == type else self.make("stablehlo.convert", [value], [type])[0]

    def reshape_to(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """Return a value in another shape."""
        type = TensorType(cast(AnyTensor, value.type).element_type, shape)
        return self.make("stablehlo.reshape", [value], [type])[0]

    def slice_of(self, value: SSAValue, start: int, limit: int) -> SSAValue:
        """Return elements of the last dim from `start` on, before `limit`."""
        type = cast(AnyTensor, value.type)
        *outer, _ = type.get_shape()
        fields = {
            "start_indices": integers([*[0] * len(outer), start]),
            "limit_indices": integers([*outer, limit]),
            "strides": integers([1] * (len(outer) + 1)),
        }
        kept = TensorType(type.element_type, [*outer, limit - start])
        return self.make("stablehlo.slice", [value], [kept], fields)[0]

    def joined(self, left: SSAValue, right: SSAValue) -> SSAValue:
        """Return two values one after the other in the last dim."""
        (*outer, first), (*_, second) = shape_of(left), shape_of(right)
        type = TensorType(element_type_of(left), [*outer, first + second])
        dim = {"dimension": integer(len(outer))}
        return self.make("stablehlo.concatenate", [left, right], [type], dim)[0]

    def fields(self) -> dict[str, Attribute]:
        """Return an attribute of the op."""
        return {**self.op.attributes, **self.op.properties}
