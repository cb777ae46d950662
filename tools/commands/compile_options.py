"""Options of `braid compile` only: its outputs, and which options may be combined."""

import os
from pathlib import Path
from typing import Annotated

import typer

from braid.support.errors import BraidError
from braid.tools.commands.options import seconds_option

ARTIFACT = "artifact"
LIBRARY = "so"
_SUFFIXES = {
    ARTIFACT: ".braid",
    LIBRARY: ".so",
    "obj": ".o",
    "stream": ".bin",
    "hls-project": ".tar",
}
_STAGES = {".bin": "stream", ".txt": "stream-text"}
"""A file of this suffix holds this stage, for targets that have it."""
MEMORY_OPTIONS = ("--memory-budget", "--memory-report", "--memory-json")


OutputOption = Annotated[
    Path | None,
    typer.Option(
        "-o",
        "--output",
        metavar="FILE",
        help="The file to write; by default the name of MODEL, in this directory, with .braid, "
        ".so or .o. Text is printed. For a chip, .bin and .txt are its stream.",
    ),
]
MeasureLayoutsOption = Annotated[
    float | None,
    seconds_option("First time kernels in all layouts, for so long at most; the figures are kept."),
]
MemoryReportOption = Annotated[
    bool, typer.Option("--memory-report", help="Print what is in the arena at its peak.")
]
MemoryJsonOption = Annotated[
    Path | None,
    typer.Option("--memory-json", metavar="FILE", help="Write the memory report to FILE, as JSON."),
]
VerifyDecisionsOption = Annotated[
    bool,
    typer.Option(
        "--verify-decisions",
        help="Recompute by separate code what passes claim: costs, bounds, peaks, memory plans.",
    ),
]


def _stages_to_complete(incomplete: str) -> list[str]:
    """Return the stages that shells offer after `--emit`: those that every target has."""
    from braid.lowering.host.stages import stages_of
    from braid.targets.machines.load import load_target

    known = (ARTIFACT, LIBRARY, *stages_of(load_target()))
    return [stage for stage in known if stage.startswith(incomplete)]


EmitOption = Annotated[
    str | None,
    typer.Option(
        metavar="WHAT",
        autocompletion=_stages_to_complete,
        help="What to write: the artifact, a shared object with a C header beside it (so), or a "
        "stage of the lowering: text (mlir, linalg, llvm, asm, and those of the target's backends, "
        "such as stream), or an object file (obj).",
    ),
]


def is_stage(emit: str) -> bool:
    """Return whether that is written without compiling all of the model."""
    return emit not in (ARTIFACT, LIBRARY)


def what_to_emit(
    emit: str | None, output: Path | None, target: str | os.PathLike[str] | None
) -> str:
    """Return what is asked for, or follows from the suffix of the file, for this target.

    Raises:
        BraidError: models for the target have no such stage.

    """
    named = ARTIFACT if output is None else _STAGES.get(output.suffix.lower(), ARTIFACT)
    if emit == ARTIFACT or (emit is None and named == ARTIFACT):
        return ARTIFACT
    from braid.lowering.host.stages import stages_of
    from braid.targets.machines.load import HOST, load_target

    target = HOST if target is None else os.fspath(target)
    stages = stages_of(load_target(target))
    if emit is None:
        return named if named in stages else ARTIFACT
    known = (ARTIFACT, LIBRARY, *stages)
    if emit not in known:
        raise BraidError(
            f"--emit is '{emit}', expected one of {', '.join(known)} for target '{target}'",
            hint="braid compile --help describes each of them",
        )
    return emit


def default_output(model: Path, emit: str) -> Path | None:
    """Return the file to write without `-o`: named after the model, here; None for text on stdout.

    Raises:
        BraidError: the model has no name: it is a directory.

    """
    if not model.name:
        raise BraidError(
            f"'{model}' is a directory, expected a model: .onnx or .mlir",
            hint="name the file in it",
        )
    if model.suffix.lower() == _SUFFIXES[ARTIFACT]:
        raise BraidError(
            f"'{model}' is compiled already, expected a model: .onnx or .mlir",
            hint=f"braid run {model} runs it",
        )
    suffix = _SUFFIXES.get(emit)
    return None if suffix is None else Path(model.with_suffix(suffix).name)


def files_written(output: Path | None, emit: str) -> tuple[Path | None, ...]:
    """Return the output, and the header that a shared object has beside it."""
    if output is None or emit != LIBRARY:
        return (output,)
    return (output, output.with_suffix(".h"))


def check_binary(output: Path | None, emit: str) -> None:
    """Raise BraidError where an artifact or a library would go to standard output."""
    from braid.tools.terminal.outputs import STANDARD_OUTPUT

    if output == STANDARD_OUTPUT and emit in {ARTIFACT, LIBRARY}:
        raise BraidError(
            "an artifact or library is not written to standard output",
            hint="name a file: -o model.braid",
        )


def given_options(context: typer.Context) -> frozenset[str]:
    """Return the long names of the options that stand on the command line."""
    return frozenset(
        parameter.opts[-1]
        for parameter in context.command.params
        if _is_given(context, parameter.name)
    )


def _is_given(context: typer.Context, parameter: str) -> bool:
    source = context.get_parameter_source(parameter)
    return source is not None and source.name == "COMMANDLINE"


def check_options(given: frozenset[str], emit: str) -> None:
    """Refuse options that do not go together.

    Raises:
        BraidError: one of those `given` has no meaning for this output.

    """
    if is_stage(emit) and not given.isdisjoint(MEMORY_OPTIONS):
        raise BraidError(
            f"memory is planned for --emit=artifact and --emit=so only, not for --emit={emit}",
            hint="leave out --emit, or the options of memory",
        )
    if is_stage(emit) and "--inter-op-threads" in given:
        raise BraidError(
            f"kernels run side by side with --emit=artifact and --emit=so only, not --emit={emit}",
            hint="leave out --emit, or --inter-op-threads",
        )
    if {"--inter-op-threads", "--profile"} <= given:
        raise BraidError(
            "kernels that run side by side cannot be profiled",
            hint="profile without --inter-op-threads; the profile holds with it too",
        )
    if is_stage(emit) and "--measure-orders" in given:
        raise BraidError(
            f"orders are measured for --emit=artifact and --emit=so only, not --emit={emit}",
            hint="leave out --emit, or --measure-orders",
        )
