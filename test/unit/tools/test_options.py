"""The keywords of `braid.compile`, the options of commands and the reference are the same."""

import inspect
from dataclasses import fields
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
import typer

import braid
from braid.driver.options import DEFAULTS, CompileOptions, options_of
from braid.support.option_names import flag_of
from braid.tools.app import app

ROOT = Path(__file__).parents[3]


def commands() -> dict[str, Any]:
    return getattr(typer.main.get_command(app), "commands", {})


def test_keywords_are_the_options() -> None:
    source, *keywords = inspect.signature(braid.compile).parameters.values()
    assert source.name == "source"
    assert {each.name: each.default for each in keywords} == vars(DEFAULTS)
    assert all(each.kind is inspect.Parameter.KEYWORD_ONLY for each in keywords)
    said = inspect.getdoc(braid.compile) or ""
    assert all(f"{name}: {option.meaning}" in said for name, option in options_of().items())


def test_other_keywords_are_errors() -> None:
    with pytest.raises(TypeError, match=r"braid\.compile has no option 'kernel'"):
        braid.compile(b"", kernel="best")  # pyright: ignore[reportCallIssue]


@pytest.mark.parametrize("name", [each.name for each in fields(CompileOptions)])
def test_commands_say_the_same(name: str) -> None:
    """Wherever a command has the option, with the same help, and the same default."""
    option, found = options_of()[name], list[str]()
    for command, each in commands().items():
        for parameter in each.params:
            if parameter.opts[:1] != [flag_of(name).partition("/")[0]] or not option.kind:
                continue
            if parameter.help != option.meaning + (" Repeatable." if option.repeats else ""):
                continue  # an option of that name which is another's: braid run --profile FILE
            found.append(command)
            default = None if option.repeats else getattr(DEFAULTS, name)
            assert parameter.default == default
            assert parameter.metavar == option.metavar
    assert ("compile" in found) == (option.kind is not None and name != "threads")
    assert ("run" in found) == (name in RUN)


RUN = {
    *("threads", "shapes", "target", "gpu_arch", "jobs", "emulate", "numerics", "precision"),
    *("cache", "dims", "constants", "state"),
}


def test_the_reference_has_them_all() -> None:
    path = ROOT / "docs" / "hooks" / "reference.py"
    spec = spec_from_file_location("reference", path)
    assert spec is not None and spec.loader is not None
    hook = module_from_spec(spec)
    spec.loader.exec_module(hook)
    page = hook.options_page()
    for name, option in options_of().items():
        flag = f"`{flag_of(name)}`" if option.kind is not None and name != "threads" else ""
        assert f"| `{name}` | {flag} | `{getattr(DEFAULTS, name)!r}` | {option.meaning} |" in page
