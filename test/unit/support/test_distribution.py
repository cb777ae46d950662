"""Everything says the names under which braid is published; on PyPI, `braid` is another project."""

import re
import subprocess
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from braid import __version__
from braid.support.distribution import COMPILER, RUNTIME, install_command
from braid.support.toolchain import braid_version

ROOT = Path(__file__).parents[3]
_OLD_NAME = re.compile(r"pip install '?braid(?![\w-])|(?<![\w./-])braid\[[a-z-]+\](?!\()")
_EXTRA = re.compile(rf"{COMPILER}\[([\w,-]+)\]|install_command\(['\"]([\w-]+)['\"]\)")
_WRITTEN_OUT = re.compile(rf"\b{COMPILER}\b")


@cache
def _texts() -> dict[str, str]:
    """Return the project's files of text by their paths; benchmarks' results are none."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    suffixes = {".c", ".h", ".html", ".js", ".md", ".mlir", ".py", ".toml", ".txt", ".yml", ""}
    return {
        name: (ROOT / name).read_text(errors="replace")
        for name in listed.stdout.splitlines()
        if Path(name).suffix in suffixes and (ROOT / name).is_file()
    }


def _found(pattern: re.Pattern[str]) -> Iterator[tuple[str, re.Match[str]]]:
    for name, text in _texts().items():
        if ROOT / name != Path(__file__):
            yield from ((name, match) for match in pattern.finditer(text))


def _project(path: str) -> dict[str, Any]:
    return tomllib.loads((ROOT / path).read_text())["project"]


def test_the_constants_are_the_names_in_pyproject() -> None:
    assert _project("pyproject.toml")["name"] == COMPILER
    assert _project("runtime/wheel/pyproject.toml")["name"] == RUNTIME


def test_one_version_for_both() -> None:
    """Both distributions take it from the package, and so does what is installed here."""
    for path in ("pyproject.toml", "runtime/wheel/pyproject.toml"):
        assert _project(path)["dynamic"] == ["version"]
        settings = tomllib.loads((ROOT / path).read_text())["tool"]["scikit-build"]
        source = (ROOT / path).parent / settings["metadata"]["version"]["input"]
        assert source.resolve() == ROOT / "braid" / "__init__.py"
    assert braid_version() in ("", __version__)


def test_nobody_is_told_to_install_another_project() -> None:
    assert not {f"{name}: {match[0]}" for name, match in _found(_OLD_NAME)}


@pytest.mark.parametrize(
    "text", ["pip install 'braid[gpu]'", "pip install braid", "`braid[test]` has it"]
)
def test_the_old_name_would_be_found(text: str) -> None:
    assert _OLD_NAME.search(text)


def test_every_extra_that_is_named_exists() -> None:
    extras = _project("pyproject.toml")["optional-dependencies"]
    named = {
        (name, extra)
        for name, match in _found(_EXTRA)
        for extra in (match[1] or match[2]).split(",")
    }
    assert {extra for _, extra in named} >= {"gpu-check", "onednn", "postgres", "serve", "tune"}
    assert not {(name, extra) for name, extra in named if extra not in extras}


def test_hints_are_made_of_the_constant() -> None:
    """Code that users run writes the name nowhere else."""
    elsewhere = {
        name
        for name, _ in _found(_WRITTEN_OUT)
        if name.endswith(".py")
        and not name.startswith(("test/", "docs/", "benchmarks/", "release/"))
    }
    assert elsewhere == {"support/distribution.py"}


def test_commands_can_be_pasted() -> None:
    assert install_command() == f"pip install {COMPILER}"
    assert install_command("gpu-check") == f"pip install '{COMPILER}[gpu-check]'"
