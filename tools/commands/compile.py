"""`braid compile`: a model as one artifact file, or at a stage of its lowering."""

import json
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from braid.tools.commands.compile_options import (
    STAGES,
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
    check_options,
    default_output,
    files_written,
    given_options,
)
from braid.tools.commands.compile_stream import compile_for_chip
from braid.tools.commands.options import (
    BoundOption,
    BucketsOption,
    BudgetOption,
    JobsOption,
    ShapeOption,
    SourceArgument,
    TargetOption,
    UseProfileOption,
    parse_bounds,
    parse_buckets,
    parse_shapes,
)
from braid.tools.outputs import check_outputs, write_files

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
    measure_layouts: MeasureLayoutsOption = None,
    measure_orders: MeasureOrdersOption = None,
    inter_op_threads: InterOpThreadsOption = 1,
    use_profile: UseProfileOption = None,
    memory_budget: BudgetOption = None,
    memory_report: MemoryReportOption = False,
    memory_json: MemoryJsonOption = None,
    order_seconds: OrderSecondsOption = None,
) -> None:
    """Compile a model to an artifact, or for a chip to a stream.

    The artifact is one file that braid run, braid.load and the C runtime load; the stream is of
    instructions, which braid simulate times.
    """
    from braid.chip import chip_of

    is_chip = chip_of(target) is not None
    check_options(given_options(context), emit, target, is_chip)
    output = output or default_output(model, emit, is_chip)
    check_outputs(*files_written(output, emit), memory_json)
    source = SourceArguments(
        target=target,
        shapes=parse_shapes(shape),
        shape_buckets=parse_buckets(shape_buckets),
        shape_bounds=parse_bounds(shape_bound),
        jobs=jobs,
    )
    if measure_layouts is not None:
        _measure_layouts(model, measure_layouts, source)
    if output is None or emit in STAGES:
        _emit_stage(model, emit, output, source, profile, use_profile)
        return
    if is_chip:
        compile_for_chip(model, output, target, source["shapes"], jobs, order_seconds)
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
        _save(compiled, emit, output, memory_json)
    if memory_report:  # last: a reader that goes away takes nothing with it
        print("\n\n".join(map(str, compiled.memory)))


def _measure_layouts(model: Path, seconds: float, source: SourceArguments) -> None:
    """Time kernels in all layouts, and say on standard error what was measured."""
    from rich.console import Console

    from braid.measuring import measure_model
    from braid.support.diagnostics import handle_diagnostics
    from braid.tools.commands.diagnostics import show_diagnostic

    with (
        Console(stderr=True).status(f"measuring the kernels of {model.name}"),
        handle_diagnostics(show_diagnostic),
    ):
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
    """Write a stage of the lowering to `output`, or print it."""
    from braid.compiler import emit_model
    from braid.tools.commands.diagnostics import compiling

    with compiling(model):
        stage = emit_model(model, emit.value, profile=profile, use_profile=use_profile, **source)
    content = stage.encode() if isinstance(stage, str) else stage
    if output is not None:
        write_files({output: content})
    else:
        print(content.decode(), end="")


def _save(compiled: "Model", emit: Emit, output: Path, memory_json: Path | None) -> None:
    """Write what was compiled, and what `plan-memory` decided: both or neither."""
    from braid.support.atomic_file import atomic_file

    with ExitStack() as files:
        if memory_json is not None:
            reports = [report.to_json() for report in compiled.memory]
            file = files.enter_context(atomic_file(memory_json))
            file.write(json.dumps(reports, indent=1).encode())
            file.flush()
        if emit is Emit.SO:
            compiled.save_c_library(output)
        else:
            compiled.save(output)
