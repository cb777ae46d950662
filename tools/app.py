"""The commands of `braid`, and the diagnostics if one of them fails."""

import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated

import typer

from braid import __version__
from braid.support.collector import rare_collections
from braid.support.diagnostics import Diagnostic
from braid.support.errors import BraidError, was_interrupted
from braid.support.option_names import naming_flags
from braid.tools.commands.bench import bench
from braid.tools.commands.cache import cache
from braid.tools.commands.compile import compile_model
from braid.tools.commands.diff import diff
from braid.tools.commands.explain import explain
from braid.tools.commands.import_model import import_model
from braid.tools.commands.inspect import inspect
from braid.tools.commands.profile import profile
from braid.tools.commands.records import records
from braid.tools.commands.reduce import reduce
from braid.tools.commands.run import run
from braid.tools.commands.serve import serve
from braid.tools.commands.simulate import simulate
from braid.tools.commands.targets import targets
from braid.tools.commands.tune import tune
from braid.tools.commands.verify import verify
from braid.tools.terminal.command_group import CommandGroup
from braid.tools.terminal.exhaustion import exhausted
from braid.tools.terminal.hints import with_way_out
from braid.tools.terminal.interrupts import INTERRUPTED
from braid.tools.terminal.reporter import Reporter, reporter, reporting
from braid.tools.terminal.standard_output import checked_output
from braid.tools.terminal.usage import usage_error

app = CommandGroup(
    name="braid",
    help="A graph compiler for tensor programs. braid COMMAND --help explains a command.",
    pretty_exceptions_enable=False,
)
app.command("import")(import_model)
app.command("compile")(compile_model)
app.command("diff")(diff)
app.command("explain")(explain)
app.command("inspect")(inspect)
app.command("reduce")(reduce)
app.command("run")(run)
app.command("bench")(bench)
app.command("simulate")(simulate)
app.command("tune")(tune)
app.command("verify")(verify)
app.add_typer(cache)
app.add_typer(profile)
app.add_typer(records)
app.add_typer(serve)
app.add_typer(targets)


def _show_version(wanted: bool) -> None:
    if wanted:
        if reporter().is_json:
            reporter().print_document({"version": __version__}, 0)
        else:
            print(f"braid {__version__}")
        raise typer.Exit


@app.callback()
def _main_options(  # pyright: ignore[reportUnusedFunction]  typer calls it
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_show_version)
    ] = False,
) -> None: ...


def run_command(arguments: Sequence[str]) -> int:
    """Run `braid` with these; returns the exit status, after a diagnostic where that is 1."""
    to = Reporter.for_arguments(arguments)
    try:
        return _run(arguments, to)
    except KeyboardInterrupt:
        return _interrupted(to)


def _run(arguments: Sequence[str], to: Reporter) -> int:
    try:
        with checked_output(), rare_collections(), naming_flags(), reporting(to):
            status = app(list(arguments) or ["--help"], prog_name="braid", standalone_mode=False)
        if status == INTERRUPTED:  # the status that some versions of typer return for Ctrl-C
            return _interrupted(to)
        return status if isinstance(status, int) else 0
    except typer.Abort:  # the exception of other versions
        return _interrupted(to)
    except BrokenPipeError:
        return 1  # the reader has seen enough
    except Exception as error:
        return _interrupted(to) if was_interrupted(error) else _fail(error, arguments, to)


def _interrupted(to: Reporter) -> int:
    """Say it in the document of `--json` that Ctrl-C has ended a command; returns the status."""
    if to.said_status is not None:
        return to.said_status  # it came too late
    if to.is_json:
        to.diagnostics.append(Diagnostic("error", "interrupted"))
        with suppress(BraidError, BrokenPipeError), checked_output():
            to.print_document(None, INTERRUPTED)
    return INTERRUPTED


def _fail(error: Exception, arguments: Sequence[str], to: Reporter) -> int:
    """Say why a command has failed; returns the exit status."""
    said = usage_error(error, arguments)
    if said is None and to.shows_tracebacks:
        traceback.print_exception(error)
    if said is None:
        said = exhausted(error) or (
            with_way_out(error) if isinstance(error, BraidError) else _internal(error)
        )
    if path := getattr(getattr(error, "ctx", None), "command_path", ""):
        to.command = path.partition(" ")[2]
    if to.is_json:
        to.diagnostics.append(Diagnostic.from_error(said))
        try:
            with checked_output():
                to.print_document(None, 1)
            return 1
        except (BraidError, BrokenPipeError):
            pass  # standard output takes nothing
    _print_error(said)
    return 1


def _print_error(error: BraidError) -> None:
    print(f"braid: {error}" if error.location is None else error, file=sys.stderr)


def _internal(error: Exception) -> BraidError:
    """Return the diagnostic of a mistake of braid itself."""
    reproducer = getattr(error, "reproducer", None)
    if reproducer is None:
        return BraidError(
            f"internal error: {type(error).__name__}: {error}",
            hint="this is a bug of braid; braid --debug … shows where",
        )
    checked = " --verify-decisions" if getattr(error, "is_wrong_claim", False) else ""
    return BraidError(
        f"internal error: {error}",
        hint=f"this is a bug of the pass; 'braid-opt --run-reproducer{checked} {reproducer} "
        "--debug' shows it again",
    )
