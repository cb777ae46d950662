"""Check what recomputation costs and saves: carried out on a copy, bytes and seconds op by op."""

from collections.abc import Sequence
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import DenseArrayBase, IntegerType, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.traits import IsTerminator

from braid.analysis.diagnostics.remarks import Remark
from braid.analysis.profile.execution_counts import ExecutionCounts
from braid.analysis.storage.tensor_storage import is_view
from braid.dialects.braid.attribute_names import RECOMPUTE_SETS
from braid.dialects.braid.constants import ConstantOp, ParameterOp
from braid.passes.infrastructure.decision_checks import WrongClaimError
from braid.passes.rematerialization.apply_rematerialization import ApplyRematerializationPass
from braid.passes.rematerialization.select_rematerialization import SelectRematerializationPass
from braid.passes.verification.claims import (
    AppliedCopy,
    claims_about,
    name_of,
    number,
    require_at_most,
    require_bound,
    require_equal,
)
from braid.passes.verification.live_bytes import RECOMPUTED as COUNT
from braid.passes.verification.live_bytes import RECOMPUTED_ORDER, block_peak
from braid.support.byte_sizes import parse_size
from braid.targets.costs.cost_source import CostSource
from braid.targets.machines.resolve import target_of


def check_selection(
    context: Context, pass_: ModulePass, module: ModuleOp, remarks: Sequence[Remark]
) -> None:
    """Raise WrongClaimError where peaks, times or counts of what is recomputed are wrong."""
    assert isinstance(pass_, SelectRematerializationPass)
    copy = AppliedCopy(module)
    _apply(context, copy)
    for remark in claims_about(remarks, pass_, "sets"):
        _check_counts(remark)
    # The module says whether there was a profile, since its only mark may be on an erased op.
    counts = ExecutionCounts(ExecutionCounts.of(module).is_profiled)
    seconds = CostSource(target_of(copy.module)).expected_seconds(counts)
    for remark in claims_about(remarks, pass_, "peak_bytes"):
        function = copy.of(remark.op)
        assert isinstance(function, FuncOp) and isinstance(remark.op, FuncOp)
        block, before = function.body.block, remark.op.body.block
        require_equal(remark, "peak_bytes", block_peak(block, RECOMPUTED_ORDER, COUNT))
        require_equal(remark, "natural_peak_bytes", block_peak(before, RECOMPUTED_ORDER, COUNT))
        if pass_.budget is not None:
            require_at_most(remark, "peak_bytes", parse_size(pass_.budget), "the budget")
        duration = sum(seconds(op) for op in block.ops if _runs(op))
        require_equal(remark, "cost", duration)
        require_bound(remark, duration)
        require_equal(remark, "recomputations", sum(op not in copy.origin for op in block.ops))


def check_application(
    context: Context, pass_: ModulePass, module: ModuleOp, remarks: Sequence[Remark]
) -> None:
    """Raise WrongClaimError if the remaining peak differs."""
    for remark in claims_about(remarks, pass_, "peak_bytes"):
        assert isinstance(remark.op, FuncOp)
        require_equal(remark, "peak_bytes", block_peak(remark.op.body.block, COUNT))


def _apply(context: Context, copy: AppliedCopy) -> None:
    """Apply the decisions, and check what that claims."""
    module = copy.module
    functions = [op for op in module.ops if isinstance(op, FuncOp) and op.body.blocks]
    before = {function: block_peak(function.body.block, COUNT) for function in functions}
    apply = ApplyRematerializationPass()
    remarks = copy.apply(context, apply, "recomputation")
    check_application(context, apply, module, remarks)
    for remark in claims_about(remarks, apply, "natural_peak_bytes"):
        require_equal(remark, "natural_peak_bytes", before[cast(FuncOp, remark.op)])


def _check_counts(remark: Remark) -> None:
    """Check the numbers of sets and members that the attributes of ops have."""
    numbers: set[int] = set()
    members = 0
    for op in remark.op.walk():
        attribute = op.attributes.get(RECOMPUTE_SETS)
        if attribute is not None:
            own = cast(DenseArrayBase[IntegerType], attribute).get_values()
            members += len(own)
            numbers.update(own)
    if (len(numbers), members) != (number(remark, "sets"), number(remark, "ops")):
        raise WrongClaimError(
            f"{name_of(remark.op)}: {remark.message} claimed, {len(numbers)} sets of {members} "
            "ops found"
        )


def _runs(op: Operation) -> bool:
    leaf = isinstance(op, ConstantOp | ParameterOp)
    return not leaf and not is_view(op) and not op.has_trait(IsTerminator)
