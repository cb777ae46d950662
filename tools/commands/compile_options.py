"""Options of `braid compile` alone, what it can write, and which options go together."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypedDict

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
"""What a file of this suffix is for targets that have such a stage."""
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
ProfileOption = Annotated[
    bool, typer.Option("--profile", help="Count and time every op when the model runs.")
]
MeasureLayoutsOption = Annotated[
    float | None,
    seconds_option("First time kernels in all layouts, for so long at most; the figures are kept."),
]
MeasureOrdersOption = Annotated[
    float | None,
    seconds_option("Time orders of ops instead of estimating them, for so long at most."),
]
InterOpThreadsOption = Annotated[
    int,
    typer.Option(
        metavar="N",
        min=1,
        help="Run kernels that do not need each other side by side, on up to so many threads; "
        "run the model on as many.",
    ),
]
MemoryReportOption = Annotated[
    bool, typer.Option("--memory-report", help="Print what is in the arena at its peak.")
]
MemoryJsonOption = Annotated[
    Path | None,
    typer.Option("--memory-json", metavar="FILE", help="Write the memory report to FILE, as JSON."),
]
OrderSecondsOption = Annotated[
    float | None,
    seconds_option("For chips: how long to search the order of each subgraph; by default 1."),
]
RecomputeOption = Annotated[
    str | None,
    typer.Option(
        metavar="THRESHOLDS",
        help="Recompute tensors above thresholds: 'tensor-threshold=64MiB peak-threshold=1GiB'; "
        "see select-rematerialization.",
    ),
]
IntegersOption = Annotated[
    bool,
    typer.Option(
        "--integers/--no-integers",
        help="Compute with the integers of quantized models, or with the real numbers they stand "
        "for.",
    ),
]
KernelsOption = Annotated[
    str | None,
    typer.Option(
        metavar="WHOSE",
        help="Whose kernels: those that braid generates; a vendor's library, wherever that has one "
        "(generated | library | best); or the best of both, as braid tune has measured them. By "
        "default generated, with --on-miss best. What calls the library needs it wherever it runs.",
    ),
]
OnMissOption = Annotated[
    str,
    typer.Option(
        metavar="WHAT",
        help="What a kernel gets of which braid tune has no record: the default schedule; the "
        "library's kernel, where it has one; the fastest of both and few others, which are "
        "measured and recorded (default | library | probe | tune); or what braid tune finds.",
    ),
]
OnMissSecondsOption = Annotated[
    float,
    seconds_option("With --on-miss=probe or tune, search no further kernel after so long."),
]
VerifyDecisionsOption = Annotated[
    bool,
    typer.Option(
        "--verify-decisions",
        help="Recompute by separate code what passes claim: costs, bounds, peaks, memory plans.",
    ),
]


def _stages_to_complete(incomplete: str) -> list[str]:
    """What shells offer behind `--emit`: what every target has."""
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


class SourceArguments(TypedDict):
    """What compiling, measuring and emitting a stage all take, as keywords of their functions."""

    target: str | None
    cpu: str | None
    gpu_arch: str | None
    shapes: Mapping[str, tuple[int, ...]]
    shape_buckets: Mapping[str, tuple[int, ...]]
    shape_bounds: Mapping[str, int]
    jobs: int | None


class DecisionArguments(TypedDict):
    """What bears on decisions, in compiling and in emitting a stage, as keywords of both."""

    profile: bool
    use_profile: Path | None
    unseen: float | None
    recompute: str | None
    order_seconds: float | None
    integers: bool
    partition: Any
    pin: Sequence[str]
    kernels: str | None
    on_miss: str
    on_miss_seconds: float


def is_stage(emit: str) -> bool:
    """Whether that is written without compiling all of the model."""
    return emit not in (ARTIFACT, LIBRARY)


def what_to_emit(emit: str | None, output: Path | None, target: str | None) -> str:
    """What is asked for, or follows from the suffix of the file, for this target.

    Raises:
        BraidError: models for the target have no such stage.

    """
    named = ARTIFACT if output is None else _STAGES.get(output.suffix.lower(), ARTIFACT)
    if emit == ARTIFACT or (emit is None and named == ARTIFACT):
        return ARTIFACT
    from braid.lowering.host.stages import stages_of
    from braid.targets.machines.load import HOST, load_target

    target = HOST if target is None else target
    stages = stages_of(load_target(target))
    if emit is None:
        return named if named in stages else ARTIFACT
    known = (ARTIFACT, LIBRARY, *stages)
    if emit not in known:
        raise BraidError(
            f"--emit is '{emit}', expected one of {', '.join(known)} for target '{target}'",
            hint="braid compile --help says what each is",
        )
    return emit


def default_output(model: Path, emit: str) -> Path | None:
    """The file to write without `-o`: named after the model, here; None for text on stdout."""
    suffix = _SUFFIXES.get(emit)
    return None if suffix is None else Path(model.with_suffix(suffix).name)


def files_written(output: Path | None, emit: str) -> tuple[Path | None, ...]:
    """The output, and the header that a shared object has beside it."""
    if output is None or emit != LIBRARY:
        return (output,)
    return (output, output.with_suffix(".h"))


def check_binary(output: Path | None, emit: str) -> None:
    """Raises BraidError where an artifact or a library would go to standard output."""
    from braid.tools.outputs import STANDARD_OUTPUT

    if output == STANDARD_OUTPUT and emit in {ARTIFACT, LIBRARY}:
        raise BraidError(
            "an artifact or library is not written to standard output",
            hint="name a file: -o model.braid",
        )


def given_options(context: typer.Context) -> frozenset[str]:
    """The long names of the options that stand on the command line."""
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
        BraidError: one of those `given` means nothing for what is written.

    """
    if is_stage(emit) and not given.isdisjoint(MEMORY_OPTIONS):
        raise BraidError("memory is planned for --emit=artifact and --emit=so only")
    if is_stage(emit) and "--inter-op-threads" in given:
        raise BraidError("kernels run side by side with --emit=artifact and --emit=so only")
    if {"--inter-op-threads", "--profile"} <= given:
        raise BraidError(
            "kernels that run side by side cannot be profiled",
            hint="profile without --inter-op-threads; the profile holds with it too",
        )
    if is_stage(emit) and "--measure-orders" in given:
        raise BraidError("orders are measured for --emit=artifact and --emit=so only")
