"""`select-types`: in which type a device computes an op, and by how much that may differ."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from braid.analysis.diagnostics.locations import source_location
from braid.analysis.structure.clusters import clustered_blocks, is_placed
from braid.dialects.braid.attribute_checks import COMPUTE_TYPES
from braid.dialects.braid.attribute_names import COMPUTE_TYPE, TOLERANCE
from braid.dialects.braid.clusters import set_tolerance
from braid.passes.partition.apply_types import CONVERSIONS
from braid.passes.sizes.likely_decisions import DecisionPass
from braid.support.errors import BraidError
from braid.targets.costs.backend_support import entry_for
from braid.targets.machines.resolve import device_of, target_of
from braid.targets.machines.target import Target


@dataclass(frozen=True)
class SelectTypesPass(DecisionPass):
    """Notes the type in which the device of an op computes it, where that is another than its own.

    The entry of the mapping list for the op gives the type (`computes`, `tolerance`); attributes of
    the op take precedence. In: `braid.device` on ops. Out: `braid.compute_type`, for `apply-types`,
    and `braid.tolerance`, which stays and is what `braid verify --per-cluster` asks for. Raises
    BraidError for a compute type without a tolerance.

    ```mlir
    %0 = braid.exp %x {braid.device = "npu:0"}
    // becomes
    %0 = braid.exp %x {braid.compute_type = f16, braid.device = "npu:0",
                       braid.tolerance = 1.0e-2 : f64}
    ```
    """

    name = "select-types"

    target: str | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Decide op by op."""
        target = target_of(op, self.target)
        for block in clustered_blocks(op):
            for inner in block.ops:
                if is_placed(inner):
                    _decide(inner, target)


def _decide(op: Operation, target: Target) -> None:
    if COMPUTE_TYPE in op.attributes:
        if TOLERANCE not in op.attributes:
            raise BraidError(
                f"'{op.name}' op has {COMPUTE_TYPE}, and no {TOLERANCE}",
                location=source_location(op),
                hint=f"say by how much its results may differ: '{TOLERANCE} = 1.0e-2 : f64'",
            )
        return
    entry = entry_for(op, target.backend_of(device_of(op, target)))
    if entry is None:
        return
    if entry.computes and op.name not in CONVERSIONS:
        op.attributes[COMPUTE_TYPE] = COMPUTE_TYPES[entry.computes]()
    if TOLERANCE not in op.attributes:
        set_tolerance(op, entry.tolerance)
