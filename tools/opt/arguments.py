"""The command line of `braid-opt`, with the flags that users of mlir-opt know."""

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NoReturn

from braid import __version__
from braid.passes.infrastructure.registry import available_passes
from braid.passes.pipelines import PIPELINES
from braid.tools.opt.reports import list_dialects, list_passes

_DESCRIPTION = (
    "Reads MLIR, runs a pipeline of passes on it and prints the result. A flag of the name of a "
    "pass adds that to the pipeline: --cse --search-order='objective=memory seed=1'."
)
_PASS_FLAG = re.compile(r"--(?P<name>[a-z0-9][\w-]*)(?:=(?P<options>.*))?", re.DOTALL)


@dataclass(frozen=True)
class OptOptions:
    """What the user asked `braid-opt` to do; one field an argument."""

    input_file: str
    output_file: Path | None
    pipeline: str
    split_input_file: bool
    verify_diagnostics: bool
    allow_unregistered_dialect: bool
    verify: bool
    verify_each: bool
    verify_decisions: bool
    settings: Mapping[str, str]
    print_generic: bool
    print_debuginfo: bool
    print_before: tuple[str, ...]
    print_after: tuple[str, ...]
    print_before_all: bool
    print_after_all: bool
    print_after_change: bool
    print_after_failure: bool
    print_tree_dir: Path | None
    timing: bool
    remarks: bool
    remarks_json: Path | None
    crash_reproducer: Path | None
    run_reproducer: bool
    emit: str
    debug: bool


def parse_arguments(argv: Sequence[str]) -> OptOptions:
    """The options in `argv`; prints a message and exits with status 1 where they make no sense.

    A flag that is the name of a pass, `--cse` or `--my-pass="opt=1 other=2"`, adds that pass to
    the pipeline, in the order of the flags.
    """
    parser = _build_parser()
    flags, rest = _take_pass_flags(argv, frozenset(_option_strings(parser)))
    namespace = vars(parser.parse_args([_normalize_boolean(argument) for argument in rest]))
    if flags and namespace["pipeline"]:
        parser.error(f"a pipeline (-p) cannot be mixed with the pass flag --{flags[0]}")
    if namespace["run_reproducer"] and (flags or namespace["pipeline"]):
        parser.error("--run-reproducer takes the pipeline from the file; give no other")
    namespace["pipeline"] = namespace["pipeline"] or ",".join(flags)
    for name in (*namespace["print_before"], *namespace["print_after"]):
        if name not in available_passes():
            parser.error(f"cannot print the IR around '{name}', which is not a pass")
    if namespace["emit"] == "irdl" and (namespace["pipeline"] or namespace["input_file"] != "-"):
        parser.error("--emit=irdl writes the dialect and takes neither input nor passes")
    return OptOptions(**{field.name: namespace[field.name] for field in fields(OptOptions)})


def _take_pass_flags(
    argv: Sequence[str], option_strings: frozenset[str]
) -> tuple[list[str], list[str]]:
    """Split `argv` into pipeline elements from pass flags, and all other arguments."""
    elements: list[str] = []
    rest: list[str] = []
    for argument in argv:
        match = _PASS_FLAG.fullmatch(argument)
        if match is None or argument.split("=")[0] in option_strings:
            rest.append(argument)
        elif match["name"] in available_passes() or match["name"] in PIPELINES:
            options = (match["options"] or "").strip("{}")
            elements.append(match["name"] + (f"{{{options}}}" if options else ""))
        else:
            rest.append(argument)
    return elements, rest


def _normalize_boolean(argument: str) -> str:
    """LLVM's `--verify-each=false` as argparse's `--no-verify-each`."""
    match = re.fullmatch(r"--verify-each=(true|1|false|0)", argument)
    if match is None:
        return argument
    return "--verify-each" if match[1] in ("true", "1") else "--no-verify-each"


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


def _option_strings(parser: argparse.ArgumentParser) -> list[str]:
    return [string for action in parser._actions for string in action.option_strings]  # pyright: ignore[reportPrivateUsage]


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _settings(text: str) -> dict[str, str]:
    """Settings by name, separated as options of passes are."""
    pairs = (part.partition("=") for part in text.strip("{}").replace(",", " ").split())
    return {name: value for name, _, value in pairs}


def _build_parser() -> argparse.ArgumentParser:
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
    add("-h", "--help", action=_Show, const=list_passes, help="show this text and all passes")
    add("--show-dialects", action=_Show, const=list_dialects, help="list all dialects")
    add(
        "--version",
        action="version",
        version=f"braid-opt {__version__}",
        help="show the version and exit",
    )
    _add_input_arguments(parser)
    _add_printing_arguments(parser)
    _add_report_arguments(parser)
    return parser


def _add_input_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("reading and checking")
    flag = _flag_adder(group)
    flag("--split-input-file", help="process the parts between '// -----' lines on their own")
    flag("--verify-diagnostics", help="match diagnostics against 'expected-error' comments")
    flag("--allow-unregistered-dialect", help="accept ops of unknown dialects")
    group.add_argument(
        "--verify-each",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="verify the IR after every pass",
    )
    flag(
        "--verify-decisions",
        help="recompute the costs, bounds and peaks that passes claim, by separate code; a wrong "
        "claim is a crash of the pass",
    )
    group.add_argument(
        "--settings",
        type=_settings,
        default={},
        metavar="SETTINGS",
        help="write these on the module (braid.settings), beside those that it says: "
        "'numerics=strict kernels=best'; a module that says none has those of BRAID_NUMERICS, "
        "BRAID_PRECISION and BRAID_EMULATE",
    )
    group.add_argument(
        "--no-verify",
        dest="verify",
        action="store_false",
        help="never verify the IR, nor the input",
    )


def _add_printing_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("printing", "IR around passes goes to standard error.")
    group.add_argument(
        "--emit",
        choices=("mlir", "upstream", "irdl"),
        default="mlir",
        help="mlir (default): the result; upstream: the result as mlir-opt reads it with braid's "
        "IRDL; irdl: that IRDL, for mlir-opt's --irdl-file, without any input",
    )
    flag = _flag_adder(group)
    flag("--print-op-generic", dest="print_generic", help="print ops in their generic form")
    flag("--print-debuginfo", help="print the locations of ops")
    flag("--print-ir-before-all", dest="print_before_all", help="print the IR before every pass")
    flag("--print-ir-after-all", dest="print_after_all", help="print the IR after every pass")
    flag(
        "--print-ir-after-change",
        dest="print_after_change",
        help="print the IR after every pass that changed it",
    )
    flag(
        "--print-ir-after-failure",
        dest="print_after_failure",
        help="print the IR after a pass that failed",
    )
    for when in ("before", "after"):
        group.add_argument(
            f"--print-ir-{when}",
            f"--mlir-print-ir-{when}",
            dest=f"print_{when}",
            type=_names,
            default=(),
            metavar="PASSES",
            help=f"print the IR {when} these passes, separated by commas",
        )
    group.add_argument(
        "--print-ir-tree-dir",
        "--mlir-print-ir-tree-dir",
        dest="print_tree_dir",
        type=Path,
        metavar="DIR",
        help="print the IR to files under DIR instead, after all passes unless others are chosen",
    )


def _add_report_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("reports")
    flag = _flag_adder(group)
    flag("--timing", help="print the time of every pass to standard error")
    flag("--remarks", help="print what passes decided to standard error")
    group.add_argument(
        "--remarks-json",
        type=Path,
        metavar="FILE",
        help="write what passes decided to FILE, as JSON",
    )
    group.add_argument(
        "--crash-reproducer",
        "--mlir-pass-pipeline-crash-reproducer",
        type=Path,
        metavar="FILE",
        help="where to write the reproducer of a crash (default: a temporary file)",
    )
    flag("--run-reproducer", help="run the pipeline that is stored in the input file")
    flag("--debug", help="print the Python traceback of an error")


def _flag_adder(group: argparse._ArgumentGroup) -> Any:  # pyright: ignore[reportPrivateUsage]
    """Adds a switch `--x`, and the `--mlir-x` that mlir-opt calls it."""

    def add(name: str, **kwargs: Any) -> None:
        mlir_name = name.replace("--", "--mlir-", 1)
        names = [name, mlir_name] if name.startswith(("--print", "--timing")) else [name]
        group.add_argument(*names, action="store_true", **kwargs)

    return add
