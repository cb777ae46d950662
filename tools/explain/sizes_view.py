"""The resources of a model compiled for all sizes, at other sizes than the likely ones."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.rewriter import Rewriter

from braid.analysis.profile.execution_counts import ExecutionCounts
from braid.dialects.braid.names import names_of
from braid.dialects.braid.variants import specialized_sizes
from braid.passes.sizes.bind_sizes import bind_sizes
from braid.passes.sizes.select_likely_sizes import size_checks_of
from braid.support.errors import BraidError
from braid.support.sizes.checks import SizeChecks
from braid.targets.costs.cost_source import CostSource
from braid.targets.costs.op_amounts import kind_name, main_op
from braid.targets.machines.resolve import device_of
from braid.targets.machines.target import Target
from braid.tools.explain.kernels import kernel_ops
from braid.tools.explain.model_names import joined, model_ops
from braid.tools.explain.views import SizedKernel, SizePoint, SizesView

_FACTORS = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8)
"""The sizes that are looked at, as multiples of the likely one."""


@dataclass(frozen=True)
class _Row:
    """A kernel at one choice of sizes."""

    name: str
    kind: str
    device: str
    seconds: float


def sizes_view(
    module: ModuleOp, target: Target, likely: Mapping[str, int], names: set[str]
) -> SizesView | None:
    """Return the predicted times of the kernels of an open module, whose decisions were made.

    Kernels are those that were decided at the sizes `likely`, of the code for all sizes; `names`
    are those of all ops as they were read. The result is None if nothing is known about other
    sizes.
    """
    module = module.clone()
    functions = [each for each in module.ops if isinstance(each, FuncOp)]
    special = [each for each in functions if specialized_sizes(each)]
    for function in special:
        Rewriter.erase_op(function)
    points: list[SizePoint] = []
    rows: list[list[_Row]] = []
    checks = size_checks_of([each for each in functions if each not in special])
    for symbol, size, sizes in _choices(likely, checks.among(likely)):
        bound = module.clone()
        try:
            bind_sizes(bound, sizes)
            found = list(_rows(bound, target, names))
        except BraidError:
            continue  # the model does not run at these sizes
        if rows and len(found) != len(rows[0]):
            continue  # a branch that sizes decide: kernels are not the same ones
        points.append(SizePoint(symbol, size, sum(row.seconds for row in found)))
        rows.append(found)
    if len(points) < 2:
        return None
    kernels = tuple(
        SizedKernel(own[0].name, own[0].kind, own[0].device, tuple(row.seconds for row in own))
        for own in zip(*rows, strict=True)
    )
    return SizesView(dict(likely), tuple(points), kernels)


def _choices(
    likely: Mapping[str, int], checks: SizeChecks
) -> Iterator[tuple[str, int, Mapping[str, int]]]:
    """Yield one size after the other, in all its values, while others are as is likely, but for
    sums that have to change with it.
    """
    for symbol, size in likely.items():
        others = likely.keys() - checks.sums_of({symbol})
        for value in dict.fromkeys(round(factor * size) for factor in _FACTORS):
            sizes = {**likely, symbol: value}
            if value >= 1:
                yield symbol, value, checks.solved(sizes, others) or sizes


def _rows(module: ModuleOp, target: Target, names: set[str]) -> Iterator[_Row]:
    counts, costs = ExecutionCounts.of(module), CostSource(target)
    for op in kernel_ops(module):
        runs = 1.0 if op.parent is None else counts.of_block(op.parent)
        kind = kind_name(main_op(op)).removeprefix("braid.")
        cost = costs.of(op).predicted(op)
        seconds = runs * (cost.seconds + costs.of(op).start_of(cost))
        name = joined(model_ops(names_of(op), names)) or kind
        yield _Row(name, kind, device_of(op, target).name, seconds)
