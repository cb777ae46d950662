"""`apply-convolution-groups`: several groups of a convolution as one, by weights with zeros."""

from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from braid.dialects.braid.attribute_names import MERGED_GROUPS
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.movement import ConcatOp, PadOp, ReshapeOp, SliceOp
from braid.dialects.braid.names import derive_names, inherit_names


@dataclass(frozen=True)
class ApplyConvolutionGroupsPass(ModulePass):
    """Merges as many groups of a convolution into one as its `braid.merged_groups` says.

    The weight of each then has zeros for the input channels of the others. In:
    `braid.merged_groups` as `select-convolution-groups` writes it, on convolutions of integers;
    floats would differ where an input is not finite. Out: none.

    ```mlir
    %y = braid.conv %x, %w {…, groups = 8, braid.merged_groups = 4}
        : (tensor<1x40x14x14xui8>, tensor<40x5x3x3xi8>) -> tensor<1x40x12x12xi32>
    // %m = … : tensor<40x20x3x3xi8>
    // braid.conv %x, %m {…, groups = 2}
    ```
    """

    name = "apply-convolution-groups"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite all convolutions that say so."""
        convolutions = [each for each in op.walk() if isinstance(each, ConvOp)]
        for conv in convolutions:
            if (count := conv.attributes.pop(MERGED_GROUPS, None)) is not None:
                _merge(conv, cast(IntegerAttr, count).value.data)


def _merge(conv: ConvOp, count: int) -> None:
    groups = conv.groups.value.data // count
    weight = _merged_weight(conv, groups, count)
    new = ConvOp.create(
        operands=[conv.input, weight],
        result_types=[conv.output.type],
        attributes={**conv.attributes, "groups": IntegerAttr(groups, conv.groups.type)},
    )
    new.location = conv.location
    Rewriter.insert_op(new, InsertPoint.before(conv))
    inherit_names(conv, new.results)
    conv.output.replace_all_uses_with(new.output)
    Rewriter.erase_op(conv)


def _merged_weight(conv: ConvOp, groups: int, count: int) -> SSAValue:
    """Return `[outputs, inputs of a group, window…]` with `count` times as many inputs.

    The groups that become one are padded one by one to the inputs of all.
    """
    outputs, depth, *window = shape_of(conv.weight)
    parts = (groups, count, outputs // (groups * count), depth, *window)
    apart = _made(conv, ReshapeOp.get(conv.weight, parts))
    padded: list[SSAValue] = []
    for number in range(count):
        starts, sizes = [0] * len(parts), [*parts]
        starts[1], sizes[1] = number, 1
        low, high = [0] * len(parts), [0] * len(parts)
        low[3], high[3] = number * depth, (count - 1 - number) * depth
        own = _made(conv, SliceOp.get(apart, starts, sizes))
        padded.append(_made(conv, PadOp.get(own, low, high, 0)))
    joined = _made(conv, ConcatOp.get(padded, 1))
    return _made(conv, ReshapeOp.get(joined, (outputs, count * depth, *window)))


def _made(conv: ConvOp, op: Operation) -> SSAValue:
    """Return the result of `op`, which makes the weight of `conv`."""
    op.location = conv.location
    Rewriter.insert_op(op, InsertPoint.before(conv))
    derive_names(op, conv, "merged-groups")
    return op.results[0]
