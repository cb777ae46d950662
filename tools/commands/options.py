"""Options that several commands have, and the reading of their values."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from braid.driver.options import options_of
from braid.support.errors import BraidError
from braid.support.option_names import flag_of, option_text

ARTIFACT_SUFFIX = ".braid"

_END = 2**63 - 1
"""Sizes of dims are below it: it is the bound of a dim that may have any size."""


def seconds_option(help: str) -> Any:
    """An option that takes a time."""
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
        flag_of(name),
        metavar=option.metavar,
        min=option.least,
        max=option.most,
        help=f"{option.meaning} Repeatable." if option.repeats else option.meaning,
    )


def split_pair(option: str, text: str) -> tuple[str, str]:
    """Split `name=value` of an option at its last `=`, since names may hold one.

    Raises:
        BraidError: there is no `=`, or nothing before it.

    """
    name, separator, value = text.rpartition("=")
    if not separator or not name:
        raise BraidError(
            f"{option_text(option)} is '{text}', expected NAME=VALUE",
            hint=f"such as {option_text(option, {'x': text or '8'})}",
        )
    return name, value


def _given_twice(option: str, name: str) -> BraidError:
    return BraidError(
        f"{option_text(option)} is given twice for '{name}'", hint="leave one of them out"
    )


def _parse_size(option: str, name: str, text: str) -> int | None:
    """Return the size that `text` is, None if it is no number.

    Raises:
        BraidError: no tensor has such a large size.

    """
    if not (text.isascii() and text.isdecimal()):
        return None
    if len(text) > len(str(_END)) or int(text) >= _END:
        raise BraidError(
            f"{option_text(option)} for '{name}' is '{text:.30}', expected a size below {_END}"
        )
    return int(text)


def parse_shapes(texts: Sequence[str] | None) -> dict[str, tuple[int, ...]]:
    """Read the values of `--shape`.

    Raises:
        BraidError: one is not `name=d0,d1,…` with sizes of at least 0, or a name comes twice.

    """
    shapes: dict[str, tuple[int, ...]] = {}
    for text in texts or ():
        name, dims = split_pair("shapes", text)
        if name in shapes:
            raise _given_twice("shapes", name)
        shapes[name] = _parse_list("shapes", name, dims, (1, 3, 224, 224)) if dims else ()
    return shapes


def parse_dims(texts: Sequence[str] | None) -> dict[str, int | str]:
    """Read the values of `--dim`: a size, or the name of another dim.

    Raises:
        BraidError: one is not `dim=size`, or a dim comes twice.

    """
    dims: dict[str, int | str] = {}
    for text in texts or ():
        name, size = split_pair("dims", text)
        if name in dims:
            raise _given_twice("dims", name)
        number = _parse_size("dims", name, size)
        if number is None and size[:1] in tuple("+-.0123456789"):
            raise BraidError(
                f"{option_text('dims')} for '{name}' is '{size}', expected a size or a dim",
                hint=f"such as {option_text('dims', {name: 8})}",
            )
        dims[name] = size if number is None else number
    return dims


def parse_at(texts: Sequence[str] | None) -> dict[str, int]:
    """Read the values of `--at`, each of one or more dims separated by commas.

    Raises:
        BraidError: one is not `dim=size`, or a dim comes twice.

    """
    sizes: dict[str, int] = {}
    for text in (part.strip() for each in texts or () for part in each.split(",")):
        name, size = split_pair("at", text)
        if name in sizes:
            raise _given_twice("at", name)
        number = _parse_size("at", name, size)
        if number is None:
            raise BraidError(
                f"{option_text('at')} for '{name}' is '{size}', expected a size",
                hint=f"such as {option_text('at', {name: 8})}",
            )
        sizes[name] = number
    return sizes


def parse_buckets(texts: Sequence[str] | None) -> dict[str, tuple[int, ...]]:
    """Read the values of `--shape-buckets`, each of one or more dims separated by `;`.

    Raises:
        BraidError: one is not `dim=size,size,…`, or a dim comes twice.

    """
    return _parse_sizes("shape_buckets", [p for t in texts or () for p in t.split(";")])


def parse_bounds(texts: Sequence[str] | None) -> dict[str, int]:
    """Read the values of `--shape-bound`.

    Raises:
        BraidError: one is not `dim=size`, or a dim comes twice.

    """
    bounds = _parse_sizes("shape_bounds", texts or ())
    for name, sizes in bounds.items():
        if len(sizes) != 1:
            raise BraidError(
                f"{option_text('shape_bounds')} for '{name}' has {len(sizes)} sizes, expected one",
                hint=f"several sizes are given with {option_text('shape_buckets')}",
            )
    return {name: sizes[0] for name, sizes in bounds.items()}


def _parse_sizes(option: str, texts: Sequence[str]) -> dict[str, tuple[int, ...]]:
    result: dict[str, tuple[int, ...]] = {}
    for text in texts:
        name, sizes = split_pair(option, text.strip())
        if name in result:
            raise _given_twice(option, name)
        result[name] = _parse_list(option, name, sizes, (1, 2, 4))
    return result


def _parse_list(option: str, name: str, text: str, example: Sequence[int]) -> tuple[int, ...]:
    """Return sizes that commas separate.

    Raises:
        BraidError: one is no number, or too large.

    """
    sizes = [_parse_size(option, name, part.strip()) for part in text.split(",")]
    found = tuple(size for size in sizes if size is not None)
    if len(found) != len(sizes):
        raise BraidError(
            f"{option_text(option)} for '{name}' is '{text}', expected sizes separated by commas",
            hint=f"such as {option_text(option, {name: example})}",
        )
    return found
