"""`hoist-views`: ops that only change the shape of memory leave the loops and branches around
them."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from braid.analysis.execution.compute_ops import runtime_functions
from braid.analysis.storage.tensor_storage import is_view
from braid.analysis.structure.nesting import ops_outside_groups, parent_block
from braid.dialects.braid.attribute_names import BRANCH_SIZE_CHECKS
from braid.dialects.braid.clusters import clear_placement


def _hoist(op: Operation) -> None:
    """Move `op` out of all regions of control flow in which nothing that it reads is made."""
    while (block := op.parent) is not None:
        around = block.parent_op()
        if not isinstance(around, scf.ForOp | scf.WhileOp | scf.IfOp | scf.IndexSwitchOp):
            return
        if any(parent_block(operand) is block for operand in op.operands):
            return
        if BRANCH_SIZE_CHECKS in around.attributes:
            return  # The view is right only at sizes that are checked where a branch is taken.
        op.detach()
        clear_placement(op)  # a cluster stands in one block
        assert around.parent is not None
        around.parent.insert_op_before(op, around)


@dataclass(frozen=True)
class HoistViewsPass(ModulePass):
    """Moves views of a value from outside of a loop or branch next to its definition.

    A view costs nothing, but its result is a value of its block: a reorder of a view in a loop
    would have to be in the loop, too. It leaves its cluster with its block. Views stay in branches
    whose sizes are checked where they are taken.

    ```mlir
    scf.for … { %r = braid.reshape %x … }     // becomes
    %r = braid.reshape %x …
    scf.for … { … }
    ```
    """

    name = "hoist-views"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Hoist in every function that runs with the model."""
        for function in runtime_functions(op):
            for view in [inner for inner in ops_outside_groups(function) if is_view(inner)]:
                _hoist(view)
