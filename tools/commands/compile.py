"""`braid compile`: a model as one artifact file, or at a stage of its lowering."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from braid.tools.commands.compile_options import (
    STAGES,
    BudgetOption,
    Emit,
    EmitOption,
    InterOpThreadsOption,
    MeasureLayoutsOption,
    MeasureOrdersOption,
    MemoryJsonOption,
    MemoryReportOption,
    OrderSecondsOption,
    OutputOption,
    ProfileOption,
    SourceArguments,
    UseProfileOption,
    check_options,
    given_options,
)
from braid.tools.commands.compile_stream import compile_for_chip
from braid.tools.commands.options import (
    BoundOption,
    BucketsOption,
    JobsOption,
    ShapeOption,
    SourceArgument,
    TargetOption,
    parse_bounds,
    parse_buckets,
    parse_shapes,
)

if TYPE_CHECKING:
    from braid.model import Model


def compile_model(
    context: typer.Context,
    model: SourceArgument,
    output: OutputOption = None,
    emit: EmitOption = Emit.ARTIFACT,
    shape: ShapeOption = None,
    shape_buckets: BucketsOption = None,
    shape_bound: BoundOption = None,
    target: TargetOption = "host",
    jobs: JobsOption = None,
    profile: ProfileOption = False,
    measure: MeasureLayoutsOption = None,
    measure_orders: MeasureOrdersOption = None,
    inter_op_threads: InterOpThreadsOption = 1,
    use_profile: UseProfileOption = None,
    memory_budget: BudgetOption = None,
    memory_report: MemoryReportOption = False,
    memory_json: MemoryJsonOption = None,
    order_seconds: OrderSecondsOption = None,
) -> None:
    """Compile a model to one artifact file, or for a chip to an instruction stream."""
    from braid.chip import chip_of

    is_chip = chip_of(target) is not None
    check_options(given_options(context), emit, target, is_chip)
    source = SourceArguments(
        target=target,
        shapes=parse_shapes(shape),
        shape_buckets=parse_buckets(shape_buckets),
        shape_bounds=parse_bounds(shape_bound),
        jobs=jobs,
    )
    if is_chip:
        compile_for_chip(model, output, target, source["shapes"], jobs, order_seconds)
        return
    if measure is not None:
        _measure_layouts(model, measure, source)
    if emit in STAGES:
        _emit_stage(model, emit, output, source, profile, use_profile)
        return
    from braid.compiler import compile
    from braid.tools.commands.diagnostics import compiling

    with compiling(model):
        compiled = compile(
            model,
            profile=profile,
            use_profile=use_profile,
            memory_budget=memory_budget,
            measure_orders=measure_orders,
            inter_op_threads=inter_op_threads,
            **source,
        )
        _save(compiled, emit, output, model)
    # Last: a reader of the report that goes away takes nothing with it.
    _report_memory(compiled, memory_report, memory_json)


def _measure_layouts(model: Path, seconds: float, source: SourceArguments) -> None:
    """Time kernels in all layouts, and say on standard error what was measured."""
    from rich.console import Console

    from braid.measuring import measure_model

    with Console(stderr=True).status(f"measuring the kernels of {model.name}"):
        report = measure_model(model, seconds, **source)
    print(report, file=sys.stderr)


def _emit_stage(
    model: Path,
    emit: Emit,
    output: Path | None,
    source: SourceArguments,
    profile: bool,
    use_profile: Path | None,
) -> None:
    """Write a stage of the lowering to `output`; without it, print text and name a binary file."""
    from braid.compiler import emit_model
    from braid.runtime.atomic_file import atomic_file
    from braid.tools.commands.diagnostics import compiling

    with compiling(model):
        stage = emit_model(model, emit.value, profile=profile, use_profile=use_profile, **source)
    if output is None and isinstance(stage, str):
        print(stage, end="")
        return
    output = output or Path(model.with_suffix(".o").name)
    with atomic_file(output) as file:
        file.write(stage.encode() if isinstance(stage, str) else stage)


def _save(compiled: "Model", emit: Emit, output: Path | None, model: Path) -> None:
    """Write what was compiled from `model`, by default to its name with another suffix."""
    if emit is Emit.SO:
        compiled.save_c_library(output or Path(model.with_suffix(".so").name))
    else:
        compiled.save(output or Path(model.with_suffix(".braid").name))


def _report_memory(model: "Model", printed: bool, file: Path | None) -> None:
    """Print or write what `plan-memory` decided."""
    from braid.runtime.atomic_file import atomic_file

    if printed:
        print("\n\n".join(map(str, model.memory)))
    if file is not None:
        with atomic_file(file) as output:
            reports = [report.to_json() for report in model.memory]
            output.write(json.dumps(reports, indent=1).encode())
