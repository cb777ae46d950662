"""Note in which layouts weights are stored by functions whose layouts are chosen already.

Variants of one model for several shapes share its weights as long as they want them in the same
layouts; each layout more is one more copy, in the artifact and in memory.
"""

from collections.abc import Iterator

from xdsl.ir import Operation, OpResult

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.clusters import device_name
from braid.dialects.braid.constants import ParameterOp
from braid.dialects.braid.layout import Layout
from braid.targets.costs.layout_costs import LayoutCosts

_Weight = tuple[str, str | None]
"""Its key, and the device that has it."""


class StoredWeights:
    """The layouts of each weight so far, and the cost of another one."""

    def __init__(self, costs: LayoutCosts) -> None:
        self._costs = costs
        self._layouts: dict[_Weight, set[Layout]] = {}

    def add(self, op: Operation, choice: LayoutChoice) -> None:
        """Let `op` read its weights in the layouts of `choice`."""
        for weight, _, layout in _weights(op, choice):
            self._layouts.setdefault(weight, set()).add(layout)

    def copies(self, op: Operation, choice: LayoutChoice) -> float:
        """Return the cost of weights that `op` would read in layouts that no other function uses.

        This is the time to write them once: caches hold fewer weights with each copy, and a smaller
        gain is not worth the memory.
        """
        return sum(
            self._costs.another_copy(parameter.output.type, layout)
            for weight, parameter, layout in _weights(op, choice)
            if layout not in self._layouts.get(weight, {layout})
        )


def _weights(op: Operation, choice: LayoutChoice) -> Iterator[tuple[_Weight, ParameterOp, Layout]]:
    device = device_name(op)
    for operand, layout in zip(op.operands, choice.operands, strict=True):
        if isinstance(operand, OpResult) and isinstance(operand.op, ParameterOp):
            yield (operand.op.key.data, device), operand.op, layout
