"""One op of TOSA while it is converted: its fields."""

from collections.abc import Collection

import numpy as np
from xdsl.ir import SSAValue

from braid.dialects.braid.relayout import Array
from braid.dialects.tosa import TosaOp
from braid.passes.conversion.converters import Converters
from braid.passes.conversion.node import ForeignNode

_SHAPE_OPERANDS = {"pad": (1,), "reshape": (1,), "resize": (1, 2, 3), "slice": (1, 2), "tile": (1,)}


class TosaNode(ForeignNode[TosaOp]):
    """An op of TOSA, with its attributes."""

    @property
    def shape_operands(self) -> Collection[int]:
        """Return which operands have a `!tosa.shape`."""
        return _SHAPE_OPERANDS.get(self.op.short_name(), ())

    def known(self, value: SSAValue) -> Array | None:
        """Return the elements of a constant or of a list of extents, None for any other value."""
        owner = value.owner
        if isinstance(owner, TosaOp) and is_const_shape(owner):
            return np.array(TosaNode(owner).elements("values").get_values())
        return super().known(value)

    def known_integers(self, index: int) -> list[int]:
        """Return the elements of operand `index`, a constant, as numbers."""
        return [int(number) for number in self.known_operand(index).reshape(-1)]

    def zero_point(self, index: int) -> int:
        """Return the zero point in operand `index`, 0 where the op has no such operand."""
        if index >= len(self.op.operands):
            return 0
        numbers = {*self.known_integers(index)}
        if len(numbers) != 1:
            self.unsupported(
                f"operand {index} has {len(numbers)} different zero points, expected one",
                hint="quantize all channels with one zero point",
            )
        return numbers.pop()

    def require_nan_propagation(self) -> None:
        """Reject the mode that ignores NaNs."""
        if self.text("nan_mode", "PROPAGATE") != "PROPAGATE":
            self.unsupported(
                "NaNs are ignored by its 'nan_mode', and braid propagates them",
                hint="leave 'nan_mode' out if there are no NaNs",
            )


def is_const_shape(op: TosaOp) -> bool:
    """Return whether the result of `op` is a list of extents, which other ops read from it."""
    return op.short_name() == "const_shape"


CONVERTERS = Converters(
    TosaNode,
    "braid.passes.tosa",
    ("control_flow", "elementwise", "integers", "movement", "reduction", "resize", "windows"),
)
converter = CONVERTERS.register
"""The function converts the ops of these names."""
