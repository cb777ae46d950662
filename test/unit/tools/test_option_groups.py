"""Groups of options are one parameter of a command, and options each on the command line."""

from dataclasses import dataclass
from typing import Annotated

import typer
from typer.testing import CliRunner

from braid.tools.commands.option_groups import grouped


@dataclass(frozen=True)
class Sizes:
    rows: Annotated[int, typer.Option(min=1)]
    columns: int = 2


@grouped
def show(name: Annotated[str, typer.Argument()], sizes: Sizes, loud: bool = False) -> None:
    """Say what was given."""
    print(name, sizes.rows, sizes.columns, loud)


def run(*words: str) -> tuple[int, str]:
    app = typer.Typer(add_completion=False)
    app.command()(show)
    result = CliRunner().invoke(app, words)
    return result.exit_code, result.output


def test_fields_are_options() -> None:
    assert run("x", "--rows", "3") == (0, "x 3 2 False\n")
    assert run("x", "--rows", "3", "--columns", "5", "--loud") == (0, "x 3 5 True\n")


def test_fields_are_checked_as_options_are() -> None:
    assert run("x")[0] == 2  # one without a default is required
    assert run("x", "--rows", "0")[0] == 2
    assert run("x", "--rows", "many")[0] == 2


def test_help_lists_them() -> None:
    status, text = run("--help")
    assert status == 0 and "Say what was given." in text
    assert all(option in text for option in ("--rows", "--columns", "--loud"))
