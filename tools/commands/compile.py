"""`braid compile`: a model as one artifact file, or at a stage of its lowering."""

import json
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import typer

from braid.tools.commands.compile_options import (
    ARTIFACT,
    LIBRARY,
    DecisionArguments,
    EmitOption,
    IntegersOption,
    InterOpThreadsOption,
    KernelsOption,
    MeasureLayoutsOption,
    MeasureOrdersOption,
    MemoryJsonOption,
    MemoryReportOption,
    OnMissOption,
    OnMissSecondsOption,
    OrderSecondsOption,
    OutputOption,
    ProfileOption,
    RecomputeOption,
    SourceArguments,
    VerifyDecisionsOption,
    check_binary,
    check_options,
    default_output,
    files_written,
    given_options,
    is_stage,
    what_to_emit,
)
from braid.tools.commands.option_groups import grouped
from braid.tools.commands.options import (
    BoundOption,
    BucketsOption,
    BudgetOption,
    CacheOption,
    CpuOption,
    EmulateOption,
    GpuArchOption,
    JobsOption,
    PartitionOption,
    PinOption,
    ShapeOption,
    SourceArgument,
    TargetOption,
    UnseenOption,
    UseProfileOption,
    parse_bounds,
    parse_buckets,
    parse_shapes,
)
from braid.tools.commands.result_options import ResultOptions
from braid.tools.terminal.outputs import STANDARD_OUTPUT, check_outputs, write_files

if TYPE_CHECKING:
    from braid.driver.options import CompileOptions
    from braid.runtime.model import Model


@dataclass(frozen=True)
class OutputOptions:
    """What is written, and where."""

    output: OutputOption = None
    emit: EmitOption = None


@dataclass(frozen=True)
class SourceOptions:
    """What is compiled, and for which machine."""

    shape: ShapeOption = None
    shape_buckets: BucketsOption = None
    shape_bound: BoundOption = None
    target: TargetOption = None
    cpu: CpuOption = None
    gpu_arch: GpuArchOption = None
    jobs: JobsOption = None

    @property
    def arguments(self) -> SourceArguments:
        """As keywords. Raises BraidError for sizes that are none."""
        return SourceArguments(
            target=self.target,
            cpu=self.cpu,
            gpu_arch=self.gpu_arch,
            shapes=parse_shapes(self.shape),
            shape_buckets=parse_buckets(self.shape_buckets),
            shape_bounds=parse_bounds(self.shape_bound),
            jobs=self.jobs,
        )


@dataclass(frozen=True)
class OrderOptions:
    """What is measured before orders and layouts are decided, and how orders are searched."""

    measure_layouts: MeasureLayoutsOption = None
    measure_orders: MeasureOrdersOption = None
    inter_op_threads: InterOpThreadsOption = 1


@dataclass(frozen=True)
class DecisionOptions:
    """What bears on decisions."""

    profile: ProfileOption = False
    use_profile: UseProfileOption = None
    unseen: UnseenOption = None
    recompute: RecomputeOption = None
    order_seconds: OrderSecondsOption = None
    integers: IntegersOption = True
    partition: PartitionOption = None
    pin: PinOption = None
    kernels: KernelsOption = None
    on_miss: OnMissOption = "default"
    on_miss_seconds: OnMissSecondsOption = 600.0

    @property
    def arguments(self) -> DecisionArguments:
        """As keywords."""
        return cast(DecisionArguments, {**vars(self), "pin": tuple(self.pin or ())})


@dataclass(frozen=True)
class MemoryOptions:
    """What memory there is, and what is told of it."""

    memory_budget: BudgetOption = None
    memory_report: MemoryReportOption = False
    memory_json: MemoryJsonOption = None


@dataclass(frozen=True)
class WayOptions:
    """How it is compiled."""

    emulate: EmulateOption = False
    verify_decisions: VerifyDecisionsOption = False
    cache: CacheOption = True

    def enter(self, context: typer.Context) -> None:
        """Let all that is compiled until the command ends be compiled so."""
        if self.verify_decisions:
            from braid.passes.infrastructure.decision_checks import verifying_decisions

            context.with_resource(verifying_decisions())


@grouped
def compile_model(
    context: typer.Context,
    model: SourceArgument,
    written: OutputOptions,
    source: SourceOptions,
    order: OrderOptions,
    decisions: DecisionOptions,
    memory: MemoryOptions,
    results: ResultOptions,
    way: WayOptions,
) -> None:
    """Compile a model to an artifact.

    The artifact is one file that braid run, braid.load and the C runtime load. It is kept, and
    copied where the same model is compiled again with the same options.
    """
    from braid.driver.options import CompileOptions
    from braid.tools.commands import models

    what = what_to_emit(written.emit, written.output, source.target)
    check_options(given_options(context), what)
    output = written.output or default_output(model, what)
    check_binary(output, what)
    check_outputs(*files_written(output, what), memory.memory_json)
    given, decided = source.arguments, decisions.arguments
    options = CompileOptions(
        **given,
        **decided,
        memory_budget=memory.memory_budget,
        measure_orders=order.measure_orders,
        inter_op_threads=order.inter_op_threads,
        emulate=way.emulate,
        numerics=results.numerics,
        precision=results.precision,
        load=False,
    )
    way.enter(context)
    if order.measure_layouts is not None:
        settings = {**results.given, "emulate": way.emulate or None}
        _measure_layouts(model, order.measure_layouts, given, settings)
    if output is None or is_stage(what):
        _emit_stage(model, what, output, options)
        return
    # A shared object is linked from more than an artifact has.
    compiled = models.compile_model(model, options, cache=way.cache and what == ARTIFACT)
    _save(compiled, what, output, memory.memory_json)
    if compiled.kernels.recorded or decisions.on_miss != "default":
        print(compiled.kernels, file=sys.stderr)
    if memory.memory_report:  # last: a reader that goes away takes nothing with it
        print("\n\n".join(map(str, compiled.memory)))


def _measure_layouts(
    model: Path, seconds: float, source: SourceArguments, settings: Mapping[str, object]
) -> None:
    """Time kernels in all layouts, and say on standard error what was measured."""
    from rich.console import Console

    from braid.support.diagnostics import handle_diagnostics
    from braid.tools.commands.diagnostics import show_diagnostic
    from braid.tuning.tune_model import measure_model

    with (
        Console(stderr=True).status(f"measuring the kernels of {model.name}"),
        handle_diagnostics(show_diagnostic),
    ):
        report = measure_model(model, seconds, **source, settings=settings)
    print(report, file=sys.stderr)


def _emit_stage(model: Path, stage: str, output: Path | None, options: "CompileOptions") -> None:
    """Write a stage of the lowering to `output`, or print it."""
    from braid.driver.compile_source import emit_model
    from braid.tools.commands.diagnostics import compiling

    with compiling(model):
        content = emit_model(model, stage, options)
    data = content.encode() if isinstance(content, str) else content
    write_files({STANDARD_OUTPUT if output is None else output: data})


def _save(compiled: "Model", emit: str, output: Path, memory_json: Path | None) -> None:
    """Write what was compiled, and what `plan-memory` decided: both or neither."""
    from braid.support.atomic_file import atomic_file

    report = json.dumps([report.to_json() for report in compiled.memory], indent=1).encode()
    with ExitStack() as files:
        if memory_json is not None and memory_json != STANDARD_OUTPUT:
            file = files.enter_context(atomic_file(memory_json))
            file.write(report)
            file.flush()
        if emit == LIBRARY:
            compiled.save_c_library(output)
        else:
            compiled.save(output)
    if memory_json == STANDARD_OUTPUT:
        write_files({STANDARD_OUTPUT: report})
