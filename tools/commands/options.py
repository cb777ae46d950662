"""Options that several commands have, and the reading of their values."""

from pathlib import Path
from typing import Annotated, Any

import typer

from braid.driver.options import options_of
from braid.support.option_names import flag_of, former_keywords

ARTIFACT_SUFFIX = ".braid"


def seconds_option(help: str) -> Any:
    """Return an option that takes a time."""
    return typer.Option(metavar="SECONDS", min=0, help=help)


ModelArgument = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A model: .onnx, .mlir or .braid.")
]
SourceArgument = Annotated[Path, typer.Argument(metavar="MODEL", help="A model: .onnx or .mlir.")]
InputOption = Annotated[
    list[str] | None,
    typer.Option(
        "--input", metavar="NAME=FILE", help="Value of an input, such as x=x.npy. Repeatable."
    ),
]
RandomOption = Annotated[
    bool, typer.Option("--random", help="Take random values for inputs that are not given.")
]
SeedOption = Annotated[int, typer.Option(metavar="N", min=0, help="Seed of the random values.")]
AtOption = Annotated[
    list[str] | None,
    typer.Option(
        "--at",
        metavar="DIM=SIZE,…",
        help="Sizes of open dims for this command, such as batch=3,sequence=77; the compiled code "
        "still takes any. Likely ones by default. Repeatable.",
    ),
]
InterpretOption = Annotated[
    bool, typer.Option("--interpret", help="Run the numpy interpreter instead of compiled code.")
]


def option_of(name: str) -> Any:
    """Return the option of commands for an option of compilations, see `CompileOptions`."""
    option = options_of()[name]
    return typer.Option(
        *map(flag_of, (name, *former_keywords(name))),
        metavar=option.metavar,
        min=option.least,
        max=option.most,
        help=f"{option.meaning} Repeatable." if option.repeats else option.meaning,
    )
