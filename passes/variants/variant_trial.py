"""The time of a model's run at some sizes, in code for all sizes and in specialized code.

Both are found by a trial on a copy: the passes of the default pipeline up to layouts run, and the
costs of what they made are added up. In the trial, the code for all sizes is also decided at these
sizes, its best case: so the gain of specialized code does not come from that choice. It is as good
as the cost model is for open dims, whose kernels it takes for slower than they are.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute

from braid.analysis.diagnostics.remarks import collect_remarks
from braid.analysis.execution.compute_ops import runtime_functions
from braid.analysis.profile.execution_counts import ExecutionCounts
from braid.analysis.sizes.open_forms import note_open_types
from braid.analysis.storage.tensor_storage import storage_bytes
from braid.analysis.structure.parameter_expressions import ParameterExpressions
from braid.dialects.braid.attribute_names import SYMBOLS
from braid.dialects.braid.measured_times import drop_measured
from braid.dialects.braid.placement import ReorderOp
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.sizes import assumptions_of, symbols_attribute
from braid.dialects.braid.variants import public_functions
from braid.passes.infrastructure.pipeline_parser import parse_pipeline
from braid.passes.pipelines import DEFAULT, LAYOUTS
from braid.passes.sizes.bind_sizes import bind_likely_sizes, bind_sizes
from braid.support.diagnostics import handle_diagnostics
from braid.support.sizes.assumptions import Assumed
from braid.targets.costs.cost_source import CostSource
from braid.targets.machines.resolve import target_of

_OPEN = DEFAULT[DEFAULT.index("collect-size-checks") : DEFAULT.index("select-likely-sizes")]
_BEFORE = DEFAULT[DEFAULT.index("select-likely-sizes") + 1 : DEFAULT.index("assign-devices") + 1]


@dataclass(frozen=True)
class TrialCosts:
    """The predicted seconds of a run, the number of its kernels, and the weights it packs.

    `packed` has the bytes of each weight in a layout that the model does not have, by its
    expression.
    """

    seconds: float
    kernels: int
    packed: Mapping[Attribute, int]


def open_costs(ctx: Context, module: ModuleOp, sizes: Mapping[str, int]) -> TrialCosts:
    """Return the costs of a run at these sizes, in code for all sizes.

    Raises BraidError where the model is impossible there.
    """
    copy = _copy(module)
    for function in public_functions(copy):
        known = assumptions_of(function).by_name
        likely = {n: replace(known.get(n, Assumed()), likely=(s,)) for n, s in sizes.items()}
        function.attributes[SYMBOLS] = symbols_attribute(dict(sorted({**known, **likely}.items())))
    _run(ctx, copy, (*_OPEN, *_BEFORE, *LAYOUTS))
    for op in copy.walk():
        note_open_types(op)
    bind_likely_sizes(copy)
    return _costs(copy)


def own_costs(ctx: Context, module: ModuleOp, sizes: Mapping[str, int]) -> TrialCosts:
    """Return the costs of a run at these sizes, in code of its own; raises as `open_costs`."""
    copy = _copy(module)
    bind_sizes(copy, sizes)
    _run(ctx, copy, (*_BEFORE, *LAYOUTS))
    return _costs(copy)


def _copy(module: ModuleOp) -> ModuleOp:
    """Return a copy without times of a profile, which were measured on code for all sizes."""
    copy = module.clone()
    for op in copy.walk():
        drop_measured(op)
    return copy


def _run(ctx: Context, module: ModuleOp, passes: tuple[str, ...]) -> None:
    with collect_remarks(), handle_diagnostics(lambda _: None):
        for pass_ in parse_pipeline(",".join(passes)):
            pass_.apply(ctx, module)


def _costs(module: ModuleOp) -> TrialCosts:
    """Return the costs of a module with layouts, whose ops on weights alone run at compile time."""
    costs, known = CostSource(target_of(module)), ParameterExpressions()
    seconds_of = costs.expected_seconds(ExecutionCounts.of(module))
    seconds, kernels, packed = 0.0, 0, dict[Attribute, int]()
    for function in runtime_functions(module):
        for op in function.body.block.ops:
            if op.results and known.all_known(op.results):
                if isinstance(op, ReorderOp):
                    packed[op.output.type] = packed.get(op.output.type, 0) + storage_bytes(
                        op.output.type
                    )
                continue
            seconds += seconds_of(op)
            if isinstance(op, FusedOp | ReorderOp):
                kernels += 1
                seconds += costs.of(op).start_of(costs.cost(op))
    return TrialCosts(seconds, kernels, packed)
