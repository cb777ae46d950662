"""`braid compile`: a model as one artifact file, or at a stage of its lowering."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from braid.errors import BraidError
from braid.tools.commands.compile_options import (
    BudgetOption,
    Emit,
    EmitOption,
    MeasureLayoutsOption,
    MeasureOrdersOption,
    MemoryJsonOption,
    MemoryReportOption,
    OrderSecondsOption,
    OutputOption,
    ProfileOption,
    UseProfileOption,
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
    use_profile: UseProfileOption = None,
    memory_budget: BudgetOption = None,
    memory_report: MemoryReportOption = False,
    memory_json: MemoryJsonOption = None,
    order_seconds: OrderSecondsOption = None,
) -> None:
    """Compile a model to one artifact file, or for a chip to an instruction stream."""
    from rich.console import Console

    from braid.analysis.diagnostics import handle_diagnostics
    from braid.chip import chip_of
    from braid.compiler import compile, emit_model
    from braid.measuring import measure_model
    from braid.runtime.atomic_file import atomic_file
    from braid.tools.commands.diagnostics import show_diagnostic

    if emit not in (Emit.ARTIFACT, Emit.SO) and (memory_budget or memory_report or memory_json):
        raise BraidError("memory is planned for --emit=artifact and --emit=so only")
    if emit not in (Emit.ARTIFACT, Emit.SO) and measure_orders is not None:
        raise BraidError("orders are measured for --emit=artifact and --emit=so only")
    shapes, buckets = parse_shapes(shape), parse_buckets(shape_buckets)
    bounds = parse_bounds(shape_bound)
    if chip_of(target) is not None:
        others = {
            "--emit": emit is not Emit.ARTIFACT,
            "--shape-buckets": bool(buckets),
            "--shape-bound": bool(bounds),
            "--profile": profile,
            "--use-profile": use_profile is not None,
            "--measure-layouts": measure is not None,
            "--measure-orders": measure_orders is not None,
            "--memory-budget": memory_budget is not None,
            "--memory-report": memory_report,
            "--memory-json": memory_json is not None,
        }
        compile_for_chip(model, output, target, shapes, jobs, order_seconds, others)
        return
    if order_seconds is not None:
        raise BraidError(f"--order-seconds is for chips; '{target}' is not one")
    if measure is not None:
        with Console(stderr=True).status(f"measuring the kernels of {model.name}"):
            report = measure_model(
                model,
                measure,
                target=target,
                shapes=shapes,
                shape_buckets=buckets,
                shape_bounds=bounds,
                jobs=jobs,
            )
        print(report, file=sys.stderr)
    with (
        Console(stderr=True).status(f"compiling {model.name}"),
        handle_diagnostics(show_diagnostic),
    ):
        if emit in (Emit.ARTIFACT, Emit.SO):
            compiled = compile(
                model,
                target=target,
                shapes=shapes,
                shape_buckets=buckets,
                shape_bounds=bounds,
                jobs=jobs,
                profile=profile,
                use_profile=use_profile,
                memory_budget=memory_budget,
                measure_orders=measure_orders,
            )
            if emit is Emit.SO:
                compiled.save_c_library(output or Path(model.with_suffix(".so").name))
            else:
                compiled.save(output or Path(model.with_suffix(".braid").name))
            # Last: a reader of the report that goes away takes nothing with it.
            _report_memory(compiled, memory_report, memory_json)
            return
        stage = emit_model(
            model,
            emit.value,
            target=target,
            shapes=shapes,
            shape_buckets=buckets,
            shape_bounds=bounds,
            jobs=jobs,
            profile=profile,
            use_profile=use_profile,
        )
    if output is None and isinstance(stage, str):
        print(stage, end="")
        return
    output = output or Path(model.with_suffix(".o").name)
    with atomic_file(output) as file:
        file.write(stage.encode() if isinstance(stage, str) else stage)


def _report_memory(model: "Model", printed: bool, file: Path | None) -> None:
    """Print or write what `plan-memory` decided."""
    from braid.runtime.atomic_file import atomic_file

    if printed:
        print("\n\n".join(map(str, model.memory)))
    if file is not None:
        with atomic_file(file) as output:
            reports = [report.to_json() for report in model.memory]
            output.write(json.dumps(reports, indent=1).encode())
