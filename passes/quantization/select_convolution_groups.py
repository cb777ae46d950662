"""`select-convolution-groups`: which groups of convolutions of bytes are convolved as one."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from xdsl.context import Context
from xdsl.dialects.builtin import DYNAMIC_INDEX, IntegerAttr, ModuleOp, TensorType, i64

from braid.analysis.diagnostics.remarks import emit_remark
from braid.analysis.structure.parameter_expressions import ParameterExpressions, most_elements
from braid.dialects.braid.attribute_names import MERGED_GROUPS
from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.quantization import is_byte
from braid.passes.sizes.likely_decisions import DecisionPass
from braid.targets.costs.cost_source import CostSource
from braid.targets.kernels.single_op_group import single_op_group
from braid.targets.machines.resolve import runs_on, target_of

_LEAST_GAIN = 4
"""The factor by which merging must be cheaper. If a family takes the groups unmerged, merging gains
at most 1.5, and bad merges, with similar estimates, lose 1.1 to 1.8. Estimates of generic kernels
are up to 7 times too high, and useful merges gain 5 to 30."""


@dataclass(frozen=True)
class SelectConvolutionGroupsPass(DecisionPass):
    """Notes how many groups of a convolution are merged into one, with zero weights between them.

    Kernels of bytes multiply several input channels at a time, for whole vectors of output
    channels, which groups of few channels do not fill. In: `braid.conv` of bytes by known weights,
    in groups of several channels. Out: `braid.merged_groups`, for `apply-convolution-groups`, where
    kernels of the op's device cost far less so; sums of integers are the same. With `devices` only
    convolutions on these are looked at.

    ```mlir
    %y = braid.conv %x, %w {…, groups = 8} : (tensor<1x40x14x14xui8>, tensor<40x5x3x3xi8>) …
    // braid.conv %x, %w {…, groups = 8, braid.merged_groups = 4}
    ```
    """

    name = "select-convolution-groups"

    target: str | None = None
    devices: tuple[str, ...] = ()

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Decide convolution by convolution; equal ones are asked about once."""
        target, known = target_of(op, self.target), ParameterExpressions()
        costs = CostSource(target)
        convolutions = merged = 0
        for conv in op.walk():
            if not isinstance(conv, ConvOp) or not _can_be_merged(conv, known):
                continue
            if not runs_on(conv, self.devices, target):
                continue
            convolutions += 1
            conv.attributes.pop(MERGED_GROUPS, None)
            best = _best_count(costs, conv)
            if best > 1:
                conv.attributes[MERGED_GROUPS] = IntegerAttr(best, i64)
                merged += 1
        if convolutions:
            emit_remark(
                op,
                self.name,
                f"groups of {merged} of {convolutions} convolutions are merged",
                convolutions=convolutions,
                merged=merged,
            )


def _can_be_merged(conv: ConvOp, known: ParameterExpressions) -> bool:
    shapes = (*shape_of(conv.input), *shape_of(conv.weight))
    return (
        conv.groups.value.data > 1
        and math.prod(shape_of(conv.weight)[:2]) > conv.groups.value.data
        and all(is_byte(element_type_of(operand)) for operand in conv.operands)
        and known.is_known(conv.weight)
        and DYNAMIC_INDEX not in shapes
        and 0 not in shapes
    )


def _best_count(costs: CostSource, conv: ConvOp) -> int:
    """Return how many groups are to be merged: the fewest among equals."""
    seconds = {count: _seconds(costs, conv, count) for count in _counts(conv)}
    best = min(seconds, key=lambda count: seconds[count])
    return best if _LEAST_GAIN * seconds[best] < seconds[1] else 1


def _counts(conv: ConvOp) -> Sequence[int]:
    """Return the counts that divide the groups, as far as compilation makes the weights."""
    groups, elements = conv.groups.value.data, math.prod(shape_of(conv.weight))
    counts = (count for count in range(2, groups + 1) if groups % count == 0)
    return [1, *(count for count in counts if elements <= most_elements(elements // count))]


def _seconds(costs: CostSource, conv: ConvOp, count: int) -> float:
    """Return the cost of the best kernel for the convolution alone, with this many groups
    merged."""
    outputs, depth, *window = shape_of(conv.weight)
    weight = TensorType(element_type_of(conv.weight), (outputs, count * depth, *window))
    groups = IntegerAttr(conv.groups.value.data // count, conv.groups.type)
    group = single_op_group(conv, {conv.weight: weight}, {"groups": groups})
    choices = costs.of(conv).choices(group)
    return min((cost.seconds for _, cost in choices), default=inf)
