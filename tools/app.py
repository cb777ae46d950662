"""The commands of `braid`, and what it says when one of them ends badly."""

import sys
import traceback
from collections.abc import Sequence
from typing import Annotated

import typer

from braid import __version__
from braid.support.collector import rare_collections
from braid.support.errors import BraidError, was_interrupted
from braid.support.option_names import naming_flags
from braid.tools.commands.bench import bench
from braid.tools.commands.cache import cache
from braid.tools.commands.compile import compile_model
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
from braid.tools.terminal.exhaustion import exhausted
from braid.tools.terminal.interrupts import INTERRUPTED
from braid.tools.terminal.standard_output import checked_output

app = typer.Typer(
    name="braid",
    help="A graph compiler for tensor programs. braid COMMAND --help explains a command.",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("import")(import_model)
app.command("compile")(compile_model)
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
        print(f"braid {__version__}")
        raise typer.Exit


@app.callback()
def _main_options(  # pyright: ignore[reportUnusedFunction]  typer calls it
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_show_version)
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the Python traceback of an error.")
    ] = False,
) -> None: ...


def run_command(arguments: Sequence[str]) -> int:
    """Run `braid` with these; returns the exit status, after a diagnostic where that is 1."""
    try:
        with checked_output(), rare_collections(), naming_flags():
            status = app(list(arguments) or ["--help"], prog_name="braid", standalone_mode=False)
        return status if isinstance(status, int) else 0
    except BraidError as error:
        _show_traceback(arguments)
        print(f"braid: {error}" if error.location is None else error, file=sys.stderr)
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except BrokenPipeError:
        pass  # the reader has seen enough
    except Exception as error:
        if was_interrupted(error):
            return INTERRUPTED
        # What typer finds wrong with the command line has this method in all its versions.
        usage = getattr(error, "format_message", None)
        if usage is not None:
            command = getattr(getattr(error, "ctx", None), "command_path", "braid")
            print(f"braid: error: {usage()}\nhint: see {command} --help", file=sys.stderr)
            return 1
        _show_traceback(arguments)
        if (limit := exhausted(error)) is not None:
            print(f"braid: {limit}", file=sys.stderr)
            return 1
        if (reproducer := getattr(error, "reproducer", None)) is not None:
            checked = " --verify-decisions" if getattr(error, "is_wrong_claim", False) else ""
            print(
                f"braid: error: internal error: {error}\nhint: this is a bug of the pass; "
                f"'braid-opt --run-reproducer{checked} {reproducer} --debug' shows it again",
                file=sys.stderr,
            )
            return 1
        print(
            f"braid: error: internal error: {type(error).__name__}: {error}\n"
            "hint: this is a bug of braid; braid --debug … shows where",
            file=sys.stderr,
        )
    return 1


def _show_traceback(arguments: Sequence[str]) -> None:
    if "--debug" in arguments:
        traceback.print_exc()
