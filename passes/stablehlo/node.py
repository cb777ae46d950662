"""One op of StableHLO while it is converted: its fields."""

import re
from collections.abc import Sequence

from xdsl.ir import SSAValue

from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.dtypes import i1
from braid.dialects.stablehlo import StablehloOp
from braid.passes.conversion.converters import Converters
from braid.passes.conversion.node import ForeignNode


class StablehloNode(ForeignNode[StablehloOp]):
    """An op of StableHLO, with what it says about itself."""

    def dims(self, name: str, part: str) -> list[int]:
        """The list `part` in a field of the dialect, empty where it is missing."""
        match = re.search(rf"\b{part} = \[([0-9, ]*)\]", self.text(name))
        return [int(number) for number in match[1].split(",")] if match and match[1] else []

    def repeat(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """A value of rank 0 in every place of `shape`, any other as it is."""
        if len(shape_of(value)) == len(shape):
            return value
        return self.broadcast(self.reshape(value, [1] * len(shape)), shape)

    def is_bool(self, value: SSAValue) -> bool:
        """Whether the elements are bools, on which arithmetic is logic."""
        return element_type_of(value) == i1


CONVERTERS = Converters(
    StablehloNode,
    "braid.passes.stablehlo",
    ("control_flow", "elementwise", "indexing", "movement", "products", "reduction", "windows"),
)
converter = CONVERTERS.register
"""The function converts the ops of these names."""
