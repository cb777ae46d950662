"""The help of every command says what its options take, in the same words everywhere."""

from collections import defaultdict
from typing import Any

import pytest
import typer

from braid.tools.app import app

COMMANDS: dict[str, Any] = getattr(typer.main.get_command(app), "commands", {})
LONGEST_SUMMARY = 68
"""Characters for which there is room in the list of commands of an 80 column terminal."""


def options(command: str) -> list[Any]:
    return [p for p in COMMANDS[command].params if p.param_type_name == "option"]


@pytest.mark.parametrize("command", COMMANDS)
def test_summaries_are_not_cut(command: str) -> None:
    summary = COMMANDS[command].help.partition("\n")[0]
    assert summary.endswith(".") and len(summary) <= LONGEST_SUMMARY


@pytest.mark.parametrize("command", COMMANDS)
def test_every_parameter_is_explained(command: str) -> None:
    for parameter in COMMANDS[command].params:
        assert parameter.help and parameter.help.endswith("."), parameter.name


@pytest.mark.parametrize("command", COMMANDS)
def test_values_have_names(command: str) -> None:
    for option in options(command):
        if not (option.is_flag or option.count) and option.name != "emit":
            assert option.metavar and option.metavar.isupper(), option.name


def test_an_option_takes_the_same_in_all_commands() -> None:
    values: dict[str, set[object]] = defaultdict(set)
    for command in COMMANDS:
        for option in options(command):
            if option.name != "profile":  # counting is compiled in, and what was counted written
                values[option.opts[-1]].add((option.metavar, option.is_flag))
    assert {name: kinds for name, kinds in values.items() if len(kinds) > 1} == {}
    assert {"--output", "--shape", "--target", "--use-profile"} <= set(values)
