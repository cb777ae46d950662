"""Options of `braid compile` alone, and what it can write."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Emit(StrEnum):
    """What to write: the artifact, a C library, or a stage of `lowering.cpu.stages`."""

    ARTIFACT = "artifact"
    SO = "so"
    MLIR = "mlir"
    LINALG = "linalg"
    LLVM = "llvm"
    ASM = "asm"
    OBJ = "obj"


OutputOption = Annotated[
    Path | None,
    typer.Option(
        "-o", "--output", help="The file to write; by default MODEL.braid, or stdout for text."
    ),
]
ProfileOption = Annotated[
    bool, typer.Option("--profile", help="Count and time every op when the model runs.")
]
MeasureLayoutsOption = Annotated[
    float | None,
    typer.Option(
        "--measure-layouts",
        metavar="SECONDS",
        min=0,
        help="First time kernels in all layouts, for so long at most; kept for later.",
    ),
]
MeasureOrdersOption = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS",
        min=0,
        help="Time orders of ops instead of estimating them, for so long at most.",
    ),
]
UseProfileOption = Annotated[
    Path | None,
    typer.Option(help="Weigh decisions by this profile, as written by braid run --profile."),
]
BudgetOption = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE", help="Recompute what does not fit: bytes, or with a unit as in 512MiB."
    ),
]
MemoryReportOption = Annotated[
    bool, typer.Option("--memory-report", help="Print what is in the arena at its peak.")
]
MemoryJsonOption = Annotated[
    Path | None, typer.Option("--memory-json", help="Write the memory report to this file.")
]
OrderSecondsOption = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS",
        min=0,
        help="For chips: how long to search the order of each subgraph, 1 by default.",
    ),
]
EmitOption = Annotated[
    Emit,
    typer.Option(
        help="What to write: the artifact, a shared object with a C header beside it, or a "
        "stage of the lowering."
    ),
]
