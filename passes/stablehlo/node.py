"""One op of StableHLO while it is converted: its fields."""

import re
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, IntegerType
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from braid.dialects.braid.base import AnyTensor, element_type_of, extents_of, shape_of
from braid.dialects.braid.dtypes import i1, to_numpy
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.sized_ops import pad_of, slice_of
from braid.dialects.stablehlo import StablehloOp
from braid.passes.conversion.converters import Converters
from braid.passes.conversion.node import ForeignNode
from braid.support.sizes.expression import Extent


class StablehloNode(ForeignNode[StablehloOp]):
    """An op of StableHLO, with its attributes."""

    def dims(self, name: str, part: str) -> list[int]:
        """Return the list `part` in a field of the dialect, empty where it is missing."""
        match = re.search(rf"\b{part} = \[([0-9, ]*)\]", self.text(name))
        return [int(number) for number in match[1].split(",")] if match and match[1] else []

    def index_vector_dim(self, name: str) -> int:
        """Return the dim of the starts along which the parts of one start are, by a field."""
        match = re.search(r"\bindex_vector_dim = ([0-9]+)", self.text(name))
        return int(match[1]) if match else 0

    def letter(self, name: str, letters: str) -> str:
        """Return an option of LAPACK, whose code is one of these letters."""
        options = self.options("mhlo.backend_config") or self.options("backend_config")
        number = options.get(name, 0)
        if number not in map(ord, letters):
            self.fail(f"its option '{name}' is {number}, expected the code of one of {letters}")
        return chr(number)

    def options(self, name: str) -> dict[str, int]:
        """Return the numbers of a field that is a dictionary, none where it is missing."""
        field = self.op.field(name)
        if not isinstance(field, DictionaryAttr):
            return {}
        return {
            key: cast(IntegerAttr[IntegerType], entry).value.data
            for key, entry in field.data.items()
            if isinstance(entry, IntegerAttr)
        }

    def apply(self, name: str, *operands: SSAValue) -> SSAValue:
        """Insert elementwise `name`, whose operands have one shape: StableHLO repeats none."""
        return super().apply(name, *self._of_one_shape(operands))

    def _of_one_shape(self, operands: Sequence[SSAValue]) -> list[SSAValue]:
        """Return operands whose open dims have the same sizes, but for numbers in all places."""
        shapes = [extents_of(value) for value in operands]
        if all(shape == shapes[0] for shape in shapes) or len({*map(len, shapes)}) != 1:
            return list(operands)
        common = [_common(extents) for extents in zip(*shapes, strict=True)]
        return [
            self.with_extents(
                value,
                [own if own in (1, DYNAMIC) else n for own, n in zip(shape, common, strict=True)],
            )
            for value, shape in zip(operands, shapes, strict=True)
        ]

    def convert(self, op: StablehloOp) -> Sequence[SSAValue]:
        """Insert an op of StableHLO in the place of this one, and return its replacement."""
        op.location = self.op.location
        Rewriter.insert_op(op, InsertPoint.before(self.op))
        node = StablehloNode(op)
        values = CONVERTERS.replace(node)
        self.inserted += node.inserted
        return values

    def repeat(self, value: SSAValue, shape: Sequence[Extent]) -> SSAValue:
        """Return a value of rank 0 in every place of `shape`, any other as it is."""
        if len(shape_of(value)) == len(shape):
            return value
        return self.broadcast(self.reshape(value, [1] * len(shape)), shape)

    def part(
        self, value: SSAValue, dim: int, start: Extent, count: Extent, step: int = 1
    ) -> SSAValue:
        """Return `count` elements of `value` along `dim`, `step` apart; itself if that is all."""
        extents = list(extents_of(value))
        if step == 1 and count == extents[dim]:
            return value
        extents[dim] = count
        starts: list[Extent] = [0] * len(extents)
        steps = [1] * len(extents)
        starts[dim], steps[dim] = start, step
        return self.emit(slice_of(value, starts, extents, steps))

    def pad_by(
        self,
        value: SSAValue,
        number: SSAValue,
        low: Sequence[Extent],
        high: Sequence[Extent],
        steps: Sequence[int],
    ) -> SSAValue:
        """Return `value` with `number`, of one element, between its elements and around them.

        Elements are `steps` apart; negative counts remove elements.
        """
        if {*low, *high} <= {0} and {*steps} <= {1}:
            return value
        known = self.known(number)
        if known is not None:
            return self._padded(value, low, high, steps, known.reshape(-1)[0].item())
        padded = self._padded(value, low, high, steps, 0)
        true = self.constant(np.ones([1] * len(shape_of(value)), np.bool_))
        everywhere = self.broadcast(true, self.extents(value))
        is_there = self._padded(everywhere, low, high, steps, False)
        return self.apply("select", is_there, padded, self.repeat(number, extents_of(padded)))

    def _padded(
        self,
        value: SSAValue,
        low: Sequence[Extent],
        high: Sequence[Extent],
        steps: Sequence[int],
        number: Any,
    ) -> SSAValue:
        spread = self.spread(value, steps, number)
        before = [count for count in low if isinstance(count, int)]
        after = [count for count in high if isinstance(count, int)]
        if len(before) + len(after) == len(low) + len(high):
            return self.pad(spread, before, after, number)
        if any(count < 0 for count in (*before, *after)):
            self.unsupported(
                "it takes elements away, and adds others", hint="slice its operand instead"
            )
        return self.emit(pad_of(spread, low, high, number))

    def empty(self, index: int) -> SSAValue | None:
        """Return result `index` if it has no elements."""
        type = cast(AnyTensor, self.op.results[index].type)
        if 0 not in type.get_shape():
            return None
        return self.constant(np.zeros(type.get_shape(), to_numpy(type.element_type)))

    def is_bool(self, value: SSAValue) -> bool:
        """Return whether the elements are bools, on which arithmetic is logic."""
        return element_type_of(value) == i1


def _common(extents: Sequence[Extent]) -> Extent:
    """Return the extent that all agree on except for ones: a number if one of them is a number."""
    others = [extent for extent in extents if extent not in (1, DYNAMIC)]
    return next((e for e in others if isinstance(e, int)), others[0] if others else 1)


CONVERTERS = Converters(
    StablehloNode,
    "braid.passes.stablehlo",
    (
        "bits",
        "calls",
        "control_flow",
        "elementwise",
        "factorization",
        "indexing",
        "movement",
        "products",
        "random_bits",
        "random_numbers",
        "reduction",
        "scattering",
        "selection",
        "sorting",
        "triangular",
        "windows",
    ),
)
converter = CONVERTERS.register
"""The function converts the ops of these names."""
