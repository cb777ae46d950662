"""The flags of `braid-opt`: those that users of mlir-opt know, and braid's own."""

import argparse
import sys
from pathlib import Path
from typing import Any, NoReturn

from braid import __version__
from braid.tools.opt.files import SPLIT_MARKER
from braid.tools.opt.input_flags import (
    add_flags_of_checks,
    add_flags_of_errors,
    add_flags_of_input,
)
from braid.tools.opt.output_flags import (
    add_flags_of_dumps,
    add_flags_of_printing,
    add_flags_of_reports,
    add_flags_of_result,
)
from braid.tools.opt.reports import list_dialects, list_passes

IF_BARE = {"split-input-file": SPLIT_MARKER, "verify-diagnostics": "all"}
"""The default values of flags whose value may be omitted."""

_DESCRIPTION = (
    "Reads MLIR, runs a pipeline of passes on it and prints the result. A flag of the name of a "
    "pass adds that to the pipeline: --cse --search-order='objective=memory seed=1'. Flags are as "
    "those of mlir-opt: one dash or two, and =true or =false behind a switch."
)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        print(f"{self.prog}: error: {message} (see --help)", file=sys.stderr)
        raise SystemExit(1)


class _Show(argparse.Action):
    """A flag that prints `text()` after the usage, if `usage`, and exits."""

    def __init__(self, *args: Any, const: Any, **kwargs: Any) -> None:
        super().__init__(*args, nargs=0, const=const, default=argparse.SUPPRESS, **kwargs)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        if self.dest == "help":
            parser.print_help()
            print()
        print(self.const())
        raise SystemExit(0)


def names_of_flags(parser: argparse.ArgumentParser, *, switches: bool = False) -> frozenset[str]:
    """Return the names of all long flags, or of those that take no value, without dashes."""
    return frozenset(
        string.removeprefix("--")
        for action in parser._actions  # pyright: ignore[reportPrivateUsage]
        for string in action.option_strings
        if string.startswith("--") and (not switches or action.nargs == 0)
    )


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of a command line whose flags are spelled with two dashes."""
    parser = _Parser(prog="braid-opt", description=_DESCRIPTION, add_help=False, allow_abbrev=False)
    add = parser.add_argument
    add(
        "input_file",
        nargs="?",
        default="-",
        help="the .mlir file; '-', the default, is standard input",
    )
    add(
        "-o",
        dest="output_file",
        type=Path,
        metavar="FILE",
        help="write to FILE instead of standard output",
    )
    add(
        "-p",
        "--pass-pipeline",
        "--passes",
        dest="pipeline",
        default="",
        metavar="PIPELINE",
        help="passes to run: 'a,b{opt=1}' or 'builtin.module(func.func(a),b)'",
    )
    add(
        *("-h", "--help", "--help-hidden", "--help-list"),
        action=_Show,
        const=list_passes,
        help="show this text and all passes",
    )
    add("--list-passes", action=_Show, const=list_passes, help="list all passes")
    add("--show-dialects", action=_Show, const=list_dialects, help="list all dialects")
    add(
        "--version",
        action="version",
        version=f"braid-opt {__version__}",
        help="show the version and exit",
    )
    for add_flags in (
        add_flags_of_input,
        add_flags_of_checks,
        add_flags_of_result,
        add_flags_of_printing,
        add_flags_of_dumps,
        add_flags_of_reports,
        add_flags_of_errors,
    ):
        add_flags(parser)
    return parser
