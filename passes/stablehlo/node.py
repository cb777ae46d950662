"""One op of StableHLO while it is converted: its fields."""

import re
from collections.abc import Sequence

from xdsl.ir import SSAValue

from braid.dialects.braid.base import element_type_of, extents_of, shape_of
from braid.dialects.braid.dtypes import i1
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.stablehlo import StablehloOp
from braid.passes.conversion.converters import Converters
from braid.passes.conversion.node import ForeignNode
from braid.support.sizes.expression import Extent


class StablehloNode(ForeignNode[StablehloOp]):
    """An op of StableHLO, with what it says about itself."""

    def dims(self, name: str, part: str) -> list[int]:
        """Return the list `part` in a field of the dialect, empty where it is missing."""
        match = re.search(rf"\b{part} = \[([0-9, ]*)\]", self.text(name))
        return [int(number) for number in match[1].split(",")] if match and match[1] else []

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

    def repeat(self, value: SSAValue, shape: Sequence[Extent]) -> SSAValue:
        """Return a value of rank 0 in every place of `shape`, any other as it is."""
        if len(shape_of(value)) == len(shape):
            return value
        return self.broadcast(self.reshape(value, [1] * len(shape)), shape)

    def is_bool(self, value: SSAValue) -> bool:
        """Return whether the elements are bools, on which arithmetic is logic."""
        return element_type_of(value) == i1


def _common(extents: Sequence[Extent]) -> Extent:
    """Return the extent that all but ones have: a number where one of them is."""
    others = [extent for extent in extents if extent not in (1, DYNAMIC)]
    return next((e for e in others if isinstance(e, int)), others[0] if others else 1)


CONVERTERS = Converters(
    StablehloNode,
    "braid.passes.stablehlo",
    ("control_flow", "elementwise", "indexing", "movement", "products", "reduction", "windows"),
)
converter = CONVERTERS.register
"""The function converts the ops of these names."""
