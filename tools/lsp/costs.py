"""The predicted cost of one run of an op, and the alternatives."""

from collections.abc import Iterator, Sequence

from xdsl.ir import Operation

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.strided_storage import stored_choice
from braid.analysis.structure.parameter_expressions import is_leaf
from braid.dialects.braid.base import TensorOp
from braid.dialects.braid.regions import FusedOp
from braid.passes.layout.decisions import read_layouts
from braid.support.byte_sizes import format_size
from braid.targets.costs.cost import Cost
from braid.targets.costs.cost_source import CostSource
from braid.tools.explain.quantities import format_seconds

_SHOWN = 4
"""Choices of layouts that are listed."""
_NEGLIGIBLE = 1e-9
"""The share of a cost by which another must be less to be less."""


def costs_of(op: Operation, source: CostSource) -> Iterator[str]:
    """Yield lines about the cost of an op with tensors; of a group, also why its layouts are so.

    Raises:
        BraidError: the device has no rates, or a size is not known.

    """
    if not isinstance(op, TensorOp | FusedOp) or is_leaf(op):
        return
    costs = source.of(op)
    if not isinstance(op, FusedOp):
        yield _said(costs.cost(op))
        return
    choices = sorted(costs.choices(op), key=lambda each: each[1].seconds)
    taken = _taken(op)
    cost = dict(choices).get(taken)
    if cost is None:
        yield _said(costs.cost(op))
        return
    yield _said(cost)
    yield _reason(choices, cost)
    rivals = costs.rivals(op, taken)
    if len(rivals) > 1:
        yield "kernels in these layouts: " + _listed(
            [f"`{family}` {format_seconds(seconds)}" for family, seconds, _ in rivals]
        )
    if len(choices) > 1:
        yield "choices of layouts: " + _listed(
            [
                f"`{choice}` {format_seconds(own.seconds)}{' (taken)' if choice == taken else ''}"
                for choice, own in choices
            ]
        )


def _taken(op: FusedOp) -> LayoutChoice:
    """Return the layouts that were decided, else those in which its tensors are stored."""
    operands, results = read_layouts(op, "operands"), read_layouts(op, "results")
    if operands is None or results is None:
        return stored_choice(op)
    return LayoutChoice(tuple(operands), tuple(results))


def _said(cost: Cost) -> str:
    by = f" by `{cost.family}`" if cost.family else ""
    amounts = f"{format_size(cost.bytes)} moved, {cost.flops:,} scalar operations"
    return f"cost of a run: {format_seconds(cost.seconds)}{by} ({cost.source}), {amounts}"


def _reason(choices: Sequence[tuple[LayoutChoice, Cost]], taken: Cost) -> str:
    best, least = choices[0]
    if len(choices) == 1:
        return "because: no other layouts are offered"
    if least.seconds >= taken.seconds * (1 - _NEGLIGIBLE):
        return f"because: the cheapest of {len(choices)} choices of layouts by itself"
    saved = format_seconds(taken.seconds - least.seconds)
    return f"because: `{best}` would save {saved} here, and the surrounding ops decide"


def _listed(parts: Sequence[str]) -> str:
    more = len(parts) - _SHOWN
    return ", ".join(parts[:_SHOWN]) + (f", and {more} more" if more > 0 else "")
