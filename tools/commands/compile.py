"""`braid compile`: a model as one artifact file, or at a stage of its lowering."""

import json
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from braid.driver.options import DEFAULTS, CompileOptions, options_of
from braid.tools.commands.compile_options import (
    ARTIFACT,
    LIBRARY,
    EmitOption,
    MeasureLayoutsOption,
    MemoryJsonOption,
    MemoryReportOption,
    OutputOption,
    VerifyDecisionsOption,
    check_binary,
    check_options,
    default_output,
    files_written,
    given_options,
    is_stage,
    what_to_emit,
)
from braid.tools.commands.option_groups import grouped, only
from braid.tools.commands.options import SourceArgument
from braid.tools.terminal.answer import Answer
from braid.tools.terminal.outputs import STANDARD_OUTPUT, check_outputs, write_files
from braid.tools.terminal.reporter import reporter

if TYPE_CHECKING:
    from braid.runtime.model import Model


@dataclass(frozen=True)
class OutputOptions:
    """The options that say which output is written, and where."""

    output: OutputOption = None
    emit: EmitOption = None


@dataclass(frozen=True)
class ReportOptions:
    """The options that say which measurements, checks and reports are made."""

    measure_layouts: MeasureLayoutsOption = None
    memory_report: MemoryReportOption = False
    memory_json: MemoryJsonOption = None
    verify_decisions: VerifyDecisionsOption = False


@grouped
def compile_model(
    context: typer.Context,
    model: SourceArgument,
    written: OutputOptions,
    # How many threads run an artifact is said where it is loaded.
    options: Annotated[CompileOptions, only(*(n for n in options_of() if n != "threads"))],
    reports: ReportOptions,
) -> Answer:
    """Compile a model to an artifact.

    The artifact is one file that braid run, braid.load and the C runtime load. It is kept, and
    copied where the same model is compiled again with the same options.
    """
    from braid.tools.commands import models

    what = what_to_emit(written.emit, written.output, options.target)
    check_options(given_options(context), what)
    by_default = default_output(model, what)
    output = written.output or by_default
    check_binary(output, what)
    check_outputs(*files_written(output, what), reports.memory_json, model=model)
    if reports.verify_decisions:
        from braid.passes.infrastructure.decision_checks import verifying_decisions

        context.with_resource(verifying_decisions())
    if reports.measure_layouts is not None:
        _measure_layouts(model, reports.measure_layouts, options)
    if output is None or is_stage(what):
        return _emit_stage(model, what, output, options)
    # A shared object is linked from more than an artifact has.
    kept = options.cache and what == ARTIFACT
    compiled = models.compile_model(model, replace(options, load=False, cache=kept))
    _save(compiled, what, output, reports.memory_json)
    if compiled.kernels.recorded or options.untuned != DEFAULTS.untuned:
        reporter().tell(str(compiled.kernels))
    data = {
        "model": str(model),
        "output": str(output),
        "emit": what,
        "bytes": _size(output),
        "kernels": compiled.kernels._asdict(),
        "memory": [report.to_json() for report in compiled.memory],
        "text": None,
    }
    text = "\n\n".join(map(str, compiled.memory))
    return Answer(data, lambda: print(text) if reports.memory_report else None)


def _size(path: Path) -> int | None:
    """Return the bytes of a file; devices and pipes have none."""
    return path.stat().st_size if path.is_file() else None


def _measure_layouts(model: Path, seconds: float, options: CompileOptions) -> None:
    """Time kernels in all layouts, and print the measurements on standard error."""
    from braid.tools.commands.diagnostics import compiling
    from braid.tuning.tune_model import measure_model

    with compiling(model, "measuring the kernels of"):
        report = measure_model(model, seconds, options)
    reporter().tell(str(report))


def _emit_stage(model: Path, stage: str, output: Path | None, options: CompileOptions) -> Answer:
    """Write a stage of the lowering to `output`, or print it."""
    from braid.driver.compile_source import emit_model
    from braid.tools.commands.diagnostics import compiling

    with compiling(model):
        content = emit_model(model, stage, options)
    data = content.encode() if isinstance(content, str) else content
    is_printed = output is None or output == STANDARD_OUTPUT
    if output is not None and not is_printed:
        write_files({output: data})
    found: dict[str, object] = {
        "model": str(model),
        "output": None if is_printed else str(output),
        "emit": stage,
        "bytes": len(data),
        "kernels": None,
        "memory": [],
        "text": content if is_printed and isinstance(content, str) else None,
    }
    return Answer(found, lambda: write_files({STANDARD_OUTPUT: data}) if is_printed else None)


def _save(compiled: "Model", emit: str, output: Path, memory_json: Path | None) -> None:
    """Write the artifact and the memory plan: both or neither."""
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
