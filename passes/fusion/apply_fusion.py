"""`apply-fusion`: every fusion group becomes one `braid.fused`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from braid.analysis.diagnostics.locations import source_location
from braid.analysis.execution.compute_ops import may_fuse, runtime_functions
from braid.analysis.structure.nesting import blocks_outside_groups
from braid.dialects.braid.attribute_names import FUSION_GROUP
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.measured_times import sum_measured
from braid.dialects.braid.names import union_names
from braid.passes.fusion.fused_group import fused_group
from braid.support.errors import BraidError


def _group_number(op: Operation) -> int:
    attribute = op.attributes.get(FUSION_GROUP)
    if not isinstance(attribute, IntegerAttr):
        raise BraidError(
            f"'{op.name}' is in no fusion group",
            location=source_location(op),
            hint="run select-fusion before apply-fusion",
        )
    return cast(IntegerAttr, attribute).value.data


def _groups(func: FuncOp) -> list[list[Operation]]:
    """Return the members of every group, in their order in the block."""
    groups: dict[tuple[Block, int], list[Operation]] = {}
    for block in blocks_outside_groups(func):
        for op in block.ops:
            if may_fuse(op) or FUSION_GROUP in op.attributes:
                groups.setdefault((block, _group_number(op)), []).append(op)
    return list(groups.values())


def _fuse(members: Sequence[Operation]) -> None:
    fused, escaping = fused_group(members)
    union_names(fused, *members)
    sum_measured(fused, members)
    fused.location = members[-1].location
    Rewriter.insert_op(fused, InsertPoint.before(members[-1]))
    for old, new in zip(escaping, fused.outputs, strict=True):
        old.replace_all_uses_with(new)
    operands = dict.fromkeys(operand for op in members for operand in op.operands)
    for op in reversed(members):
        Rewriter.erase_op(op)
    for constant in dict.fromkeys(operand.owner for operand in operands):
        if isinstance(constant, ConstantOp) and constant.output.first_use is None:
            Rewriter.erase_op(constant)


@dataclass(frozen=True)
class ApplyFusionPass(ModulePass):
    """Makes one `braid.fused` of every fusion group, in the place of the group's last op.

    In: `braid.fusion_group` on every compute op, as `select-fusion` writes it. Out: all compute ops
    are inside of groups. Outside are parameters, views, control flow, and opaque ops that declare
    costs or layouts, which a group would hide. Constants are copied into the groups that read them.
    Raises `BraidError` for an op without a group.

    ```mlir
    %1 = braid.fused (%x, %w, %b) : … {
      ^bb0(%0: …, %1: …, %2: …):
        %3 = braid.matmul %0, %1 …
        %4 = braid.add %3, %2 …
        braid.yield %4 : …
    }
    ```
    """

    name = "apply-fusion"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Fuse in every function that runs with the model."""
        for func in runtime_functions(op):
            for members in _groups(func):
                _fuse(members)
