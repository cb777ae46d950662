"""Benchmarks as commands: the arguments of a function are those of the command line.

    def main(models: Sequence[Path], *, threads: int = 2, quick: bool = False) -> list[Row]:
        ...

    if __name__ == "__main__":
        run_command(main)

is `MODEL… [--threads THREADS] [--quick] [--json FILE]`, where FILE gets the rows.
"""

import argparse
import inspect
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, NoReturn, cast, get_args, get_origin, get_type_hints

from benchmarks.arguments import output_file


class UsageError(Exception):
    """Raised by a benchmark for arguments that do not go together, or of nothing that is there."""


@dataclass(frozen=True)
class Judged:
    """Figures to keep, and whether they are as they should be."""

    figures: object
    is_right: bool


def run_command(main: Callable[..., object]) -> NoReturn:
    """Run `main` as `status_of` does, and exit."""
    sys.exit(status_of(main))


def status_of(main: Callable[..., object], arguments: Sequence[str] | None = None) -> int:
    """Call `main` with the arguments of the command line, and keep its result.

    Returns the exit status, which is 1 for figures that are `Judged` to be wrong; raises SystemExit
    for arguments that are refused.

    Parameters before `*` are positional, the others flags, `_` in their names being `-`. One of
    type bool is a flag without a value, and a `Sequence` takes several values. `Annotated` adds a
    help text, a function that reads a value, or a list of choices to a type. If the only parameter
    of `main` is a dataclass, its fields are the parameters.

    Figures are JSON values, dataclasses, or an iterator of records, which are printed as they
    arrive. A `main` with a parameter `json` writes its figures itself, and one that returns None
    has none.
    """
    made = _parameters_of(main)
    own = inspect.signature(made).parameters
    parser = _parser_of(made, main)
    given = vars(parser.parse_args(arguments))
    path: Path | None = given["json"] if "json" in own else given.pop("json", None)
    positional = [given.pop(name) for name in own if _is_positional(own[name])]
    try:
        filled = made(*positional, **given)
        figures = filled if made is main else main(filled)
        if isinstance(figures, Iterator):
            figures = list(map(_shown, cast("Iterator[dict[str, object]]", figures)))
    except UsageError as error:
        parser.error(str(error))
    judged = figures if isinstance(figures, Judged) else Judged(figures, True)
    if path is not None and judged.figures is not None:
        keep(path, judged.figures)
    return int(not judged.is_right)


def keep(path: Path, figures: object) -> None:
    """Write figures as JSON, dataclasses as their fields."""
    path.write_text(json.dumps(figures, indent=1, default=_fields_of) + "\n", encoding="utf-8")


def _parameters_of(main: Callable[..., Any]) -> Callable[..., Any]:
    """Return what has the parameters: `main`, or the dataclass that it takes."""
    hints = get_type_hints(main)
    kinds: list[Any] = [hints[name] for name in inspect.signature(main).parameters]
    takes_fields = len(kinds) == 1 and is_dataclass(kinds[0])
    return cast("Callable[..., Any]", kinds[0]) if takes_fields else main


def _parser_of(made: Callable[..., Any], main: Callable[..., Any]) -> argparse.ArgumentParser:
    """Return the parser of the parameters of `made`; the docstring of `main`'s module is its
    description."""
    parser = argparse.ArgumentParser(
        description=inspect.getdoc(inspect.getmodule(main)),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    hints = get_type_hints(made, include_extras=True)
    for name, own in inspect.signature(made).parameters.items():
        _add(parser, own, hints[name])
    if "json" not in hints and get_type_hints(main)["return"] is not NoneType:
        parser.add_argument("--json", type=output_file, metavar="FILE", help="keep the figures")
    return parser


_SETTINGS: dict[object, str] = {str: "help", list: "choices"}
"""The keyword of argparse that a note on a parameter gives, by the type of the note; notes of other
types read its values."""


def _add(parser: argparse.ArgumentParser, own: inspect.Parameter, hint: Any) -> None:
    settings: dict[str, Any] = {}
    is_needed = own.default is own.empty
    if get_origin(hint) is Annotated:
        hint, *notes = get_args(hint)
        settings = {_SETTINGS.get(cast(object, type(note)), "type"): note for note in notes}
    if get_origin(hint) is UnionType:
        (hint,) = (kind for kind in get_args(hint) if kind is not NoneType)
    if hint is bool:
        settings["action"] = "store_true"
    else:
        if get_origin(hint) is Sequence:
            settings["nargs"] = "+" if is_needed else "*"
            (hint,) = get_args(hint)
        elif not is_needed and _is_positional(own):
            settings["nargs"] = "?"
        settings.setdefault("type", hint)
    if not is_needed:
        settings["default"] = own.default
    if _is_positional(own):
        parser.add_argument(own.name, **settings)
    else:
        parser.add_argument(f"--{own.name.replace('_', '-')}", required=is_needed, **settings)


def _is_positional(own: inspect.Parameter) -> bool:
    return own.kind is not own.KEYWORD_ONLY


def _shown(record: dict[str, object]) -> dict[str, object]:
    print(*(f"{key}={value}" for key, value in record.items()), flush=True)
    return record


def _fields_of(value: Any) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    raise TypeError(f"JSON has no {type(value).__name__}")
