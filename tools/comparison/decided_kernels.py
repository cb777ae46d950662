"""Read the decisions on a model's kernels: their ops, layouts, schedule, device and time."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp

from braid.analysis.profile.execution_counts import ExecutionCounts
from braid.analysis.storage.strided_storage import is_only_storage, stored_choice
from braid.dialects.braid.names import names_of
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.variants import program_functions
from braid.driver.options import CompileOptions
from braid.driver.pipeline import passes_for, passes_within
from braid.driver.read_source import read_to_compile
from braid.driver.sources.decision_sizes import bind_decision_sizes
from braid.driver.sources.signature import check_model
from braid.passes.infrastructure.context import make_context
from braid.passes.infrastructure.manager import run_pipeline
from braid.passes.outlining.outline_kernels import OutlineKernelsPass
from braid.targets.costs.cost_source import CostSource
from braid.targets.costs.kernel_choice import KernelChoice
from braid.targets.kernels.kernel_schedule import KernelSchedule
from braid.targets.machines.resolve import device_of, target_of
from braid.targets.machines.target import Target
from braid.tools.explain.kernel_rows import KernelRow
from braid.tools.explain.walk import decided_rows

MEASURED = "measured here"
"""The source of times that were measured for the comparison."""


@dataclass(frozen=True)
class DecidedKernel:
    """A kernel, named after the model's ops that it computes.

    `schedule` is that of a kernel family, empty where none makes it. `seconds` is the time of all
    its `runs` in one run of the model, expected or measured as `source` says.
    """

    name: str
    ops: str
    layouts: str
    schedule: str
    device: str
    runs: float
    seconds: float
    source: str


def decided_kernels(model: Path, options: CompileOptions) -> list[DecidedKernel]:
    """Return the kernels of a model in the order in which they run.

    Dims that are open have the sizes at which decisions are made.

    Raises:
        BraidError: as `braid.compile`.

    """
    context = make_context()
    module = read_to_compile(context, model, options).module
    check_model(module)
    bind_decision_sizes(context, module)
    target = target_of(module)
    passes = passes_within(options, passes_for(module), target)
    outlines = [isinstance(pass_, OutlineKernelsPass) for pass_ in passes]
    # Groups are in place until they become separate functions.
    run_pipeline(context, module, passes[: outlines.index(True)] if True in outlines else passes)
    return list(_kernels(module, target))


def weighed_kernels(model: Path, options: CompileOptions) -> tuple[KernelRow, ...]:
    """Return the same kernels with the candidates that were weighed for each; raises likewise."""
    context = make_context()
    module = read_to_compile(context, model, options).module
    check_model(module)
    bind_decision_sizes(context, module)
    passes = passes_within(options, passes_for(module), target_of(module))
    return decided_rows(context, module, passes)


def _kernels(module: ModuleOp, target: Target) -> Iterator[DecidedKernel]:
    counts, costs = ExecutionCounts.of(module), CostSource(target)
    choices = {device.name: KernelChoice.on(device) for device in target.devices}
    for function in program_functions(module):
        for op in function.walk():
            if not isinstance(op, FusedOp) or is_only_storage(op):
                continue  # a group that moves nothing is no kernel
            device = device_of(op, target)
            chosen = choices[device.name].choose(op)
            schedule = (
                None if chosen is None else KernelSchedule.of(chosen[0].family.name, chosen[1])
            )
            runs = 1.0 if op.parent is None else counts.of_block(op.parent)
            cost = costs.cost(op)
            yield DecidedKernel(
                "+".join(names_of(op)),
                " ".join(inner.name.removeprefix("braid.") for inner in op.body.block.ops)
                .removesuffix("yield")
                .strip(),
                str(stored_choice(op)),
                "" if schedule is None else str(schedule),
                device.name,
                runs,
                runs * cost.seconds,
                str(cost.source),
            )
