"""Options of `braid compile` alone, what it can write, and which options go together."""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypedDict

import typer

from braid.support.errors import BraidError
from braid.tools.commands.options import seconds_option


class Emit(StrEnum):
    """What to write: the artifact, a C library, or a stage of `lowering.host.stages`."""

    ARTIFACT = "artifact"
    SO = "so"
    MLIR = "mlir"
    LINALG = "linalg"
    LLVM = "llvm"
    ASM = "asm"
    OBJ = "obj"


_SUFFIXES = {Emit.ARTIFACT: ".braid", Emit.SO: ".so", Emit.OBJ: ".o"}
_CHIP_SUFFIX = ".bin"
STAGES = (Emit.MLIR, Emit.LINALG, Emit.LLVM, Emit.ASM, Emit.OBJ)
MEMORY_OPTIONS = ("--memory-budget", "--memory-report", "--memory-json")
NOT_FOR_CHIPS = (
    "--emit",
    "--shape-buckets",
    "--shape-bound",
    "--profile",
    "--use-profile",
    "--measure-layouts",
    "--measure-orders",
    "--inter-op-threads",
    *MEMORY_OPTIONS,
)


OutputOption = Annotated[
    Path | None,
    typer.Option(
        "-o",
        "--output",
        metavar="FILE",
        help="The file to write; by default the name of MODEL, in this directory, with .braid, "
        ".so, .o, or .bin for a chip. Text is printed.",
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
EmitOption = Annotated[
    Emit,
    typer.Option(
        help="What to write: the artifact, a shared object with a C header beside it (so), or a "
        "stage of the lowering, as text or as an object file (obj)."
    ),
]


class SourceArguments(TypedDict):
    """What compiling, measuring and emitting a stage all take, as keywords of their functions."""

    target: str
    shapes: Mapping[str, tuple[int, ...]]
    shape_buckets: Mapping[str, tuple[int, ...]]
    shape_bounds: Mapping[str, int]
    jobs: int | None


def default_output(model: Path, emit: Emit, is_chip: bool) -> Path | None:
    """The file to write without `-o`: named after the model, here; None for text on stdout."""
    suffix = _CHIP_SUFFIX if is_chip else _SUFFIXES.get(emit)
    return None if suffix is None else Path(model.with_suffix(suffix).name)


def files_written(output: Path | None, emit: Emit) -> tuple[Path | None, ...]:
    """The output, and the header that a shared object has beside it."""
    if output is None or emit is not Emit.SO:
        return (output,)
    return (output, output.with_suffix(".h"))


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


def check_options(given: frozenset[str], emit: Emit, target: str, is_chip: bool) -> None:
    """Refuse options that do not go together.

    Raises:
        BraidError: one of those `given` means nothing for this target or for what is written.

    """
    if is_chip:
        for option in NOT_FOR_CHIPS:
            if option in given:
                raise BraidError(f"{option} is not for chips such as '{target}'")
    elif "--order-seconds" in given:
        raise BraidError(f"--order-seconds is for chips; '{target}' is not one")
    elif emit in STAGES and not given.isdisjoint(MEMORY_OPTIONS):
        raise BraidError("memory is planned for --emit=artifact and --emit=so only")
    elif emit in STAGES and "--inter-op-threads" in given:
        raise BraidError("kernels run side by side with --emit=artifact and --emit=so only")
    elif {"--inter-op-threads", "--profile"} <= given:
        raise BraidError(
            "kernels that run side by side cannot be profiled",
            hint="profile without --inter-op-threads; the profile holds with it too",
        )
    elif emit in STAGES and "--measure-orders" in given:
        raise BraidError("orders are measured for --emit=artifact and --emit=so only")
