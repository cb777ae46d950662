"""The command line of `braid-opt`, with the flags that users of mlir-opt know."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from braid.passes.infrastructure.registry import available_passes
from braid.passes.pipelines import PIPELINES
from braid.support.errors import BraidError, did_you_mean
from braid.tools.opt.flags import IF_BARE, build_parser, names_of_flags
from braid.tools.opt.printer import PrintFormat
from braid.tools.opt.refused import REFUSED
from braid.tools.opt.spelling import plain_arguments

_PASS_FLAG = re.compile(r"--(?P<name>[a-z0-9][\w-]*)(?:=(?P<options>.*))?", re.DOTALL)


@dataclass(frozen=True)
class OptOptions:
    """The options that the user gave `braid-opt`; one field an argument."""

    input_file: str
    output_file: Path | None
    pipeline: str
    split_marker: str
    """Empty where the input is one part."""
    output_split_marker: str
    verify_diagnostics: str
    """`all`, `only-expected`, or empty."""
    allow_unregistered_dialect: bool
    irdl_file: Path | None
    no_implicit_module: bool
    verify: bool
    verify_input: bool
    verify_each: bool
    verify_roundtrip: bool
    verify_decisions: bool
    settings: Mapping[str, str]
    print_format: PrintFormat
    print_before: tuple[str, ...]
    print_after: tuple[str, ...]
    print_before_all: bool
    print_after_all: bool
    print_after_change: bool
    print_after_failure: bool
    print_tree_dir: Path | None
    timing: bool
    timing_display: str
    timing_format: str
    statistics: bool
    statistics_display: str
    dump_pass_pipeline: bool
    print_op: bool
    no_notes: bool
    verbosity: str
    remarks: bool
    debug_only: tuple[str, ...]
    remarks_json: Path | None
    crash_reproducer: Path | None
    reproducer: Path | None
    run_reproducer: bool
    emit: str
    emit_bytecode: bool
    bytecode_version: int | None
    debug: bool


def parse_arguments(argv: Sequence[str]) -> OptOptions:
    """Return the options in `argv`; print a message and exit with status 1 for invalid ones.

    A flag that is the name of a pass, `--cse` or `--my-pass="opt=1 other=2"`, adds that pass to
    the pipeline, in the order of the flags.
    """
    parser = build_parser()
    names = names_of_flags(parser)
    known = names | available_passes().keys() | PIPELINES.keys() | REFUSED.keys()
    switches = names_of_flags(parser, switches=True)
    try:
        plain = list(plain_arguments(argv, known, switches, IF_BARE))
    except BraidError as error:
        parser.error(error.message)
    if (refused := _first_refused(plain)) is not None:
        parser.error(f"--{refused} is refused: {REFUSED[refused]}")
    flags, rest = _take_pass_flags(plain, names)
    parsed, unknown = parser.parse_known_args(rest)
    if unknown:
        parser.error(_unrecognized(unknown, known))
    namespace = vars(parsed)
    if flags and namespace["pipeline"]:
        parser.error(f"a pipeline (-p) cannot be mixed with the pass flag --{flags[0]}")
    namespace["pipeline"] = namespace["pipeline"] or ",".join(flags)
    for name in (*namespace["print_before"], *namespace["print_after"]):
        if name not in available_passes():
            parser.error(f"cannot print the IR around '{name}', which is not a pass")
    if (conflict := _conflict(namespace)) is not None:
        parser.error(conflict)
    return _options(namespace)


def _options(namespace: dict[str, Any]) -> OptOptions:
    for name in ("print_before", "print_after", "debug_only"):
        namespace[name] = tuple(namespace[name])
    namespace["print_format"] = PrintFormat(
        generic=namespace["print_generic"],
        debuginfo=namespace["print_debuginfo"] or namespace["emit_bytecode"],
        upstream=namespace["emit"] == "upstream" or namespace["emit_bytecode"],
        **{
            field.name: namespace[field.name]
            for field in fields(PrintFormat)
            if field.name in namespace
        },
    )
    return OptOptions(**{field.name: namespace[field.name] for field in fields(OptOptions)})


def _conflict(namespace: Mapping[str, Any]) -> str | None:
    """Return what is wrong with flags that each make sense, None if nothing is."""
    if namespace["run_reproducer"] and namespace["pipeline"]:
        return "--run-reproducer takes the pipeline from the file; give no other"
    if namespace["emit"] == "irdl" and (namespace["pipeline"] or namespace["input_file"] != "-"):
        return "--emit=irdl writes the dialect and takes neither input nor passes"
    if namespace["emit_bytecode"]:
        if namespace["split_marker"]:
            return "--emit-bytecode writes one module and takes no --split-input-file"
        if namespace["skip_regions"] or namespace["most_elements"] is not None:
            return "--emit-bytecode writes the whole module and takes no flag that leaves parts out"
    return None


def _unrecognized(arguments: Sequence[str], known: Collection[str]) -> str:
    """Report unknown arguments, with the flag or pass most similar to the first of them."""
    message = f"unrecognized arguments: {' '.join(arguments)}"
    name = arguments[0].lstrip("-").partition("=")[0]
    similar = did_you_mean(f"--{name}", (f"--{each}" for each in known))
    return message if similar is None else f"{message}; {similar}"


def _first_refused(arguments: Sequence[str]) -> str | None:
    names = (argument.removeprefix("--").partition("=")[0] for argument in arguments)
    given = (name for name, each in zip(names, arguments, strict=True) if each.startswith("--"))
    return next((name for name in given if name in REFUSED), None)


def _take_pass_flags(
    argv: Sequence[str], names_of_options: frozenset[str]
) -> tuple[list[str], list[str]]:
    """Split `argv` into pipeline elements from pass flags, and all other arguments."""
    elements: list[str] = []
    rest: list[str] = []
    for argument in argv:
        match = _PASS_FLAG.fullmatch(argument)
        if match is None or match["name"] in names_of_options:
            rest.append(argument)
        elif match["name"] in available_passes() or match["name"] in PIPELINES:
            options = (match["options"] or "").strip("{}")
            elements.append(match["name"] + (f"{{{options}}}" if options else ""))
        else:
            rest.append(argument)
    return elements, rest
