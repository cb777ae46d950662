"""Writes the reference pages from docstrings when the site is built, so that they cannot be stale.

A hook of mkdocs; `pages()` serves the tests as well.
"""

import contextlib
import inspect
import io
import re
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

import typer
from typer.testing import CliRunner

import braid
import braid.extend
from braid.dialects.braid import Braid
from braid.driver.options import DEFAULTS, options_of
from braid.passes.infrastructure.options import pass_options
from braid.passes.infrastructure.registry import braid_passes
from braid.passes.pipelines import PIPELINES
from braid.tools.app import app
from braid.tools.braid_lsp import main as braid_lsp
from braid.tools.braid_opt import main as braid_opt
from braid.tools.commands.options import flag_of

HEADERS = Path(braid.__file__).resolve().parents[1] / "runtime" / "native" / "include" / "braid"
_COMMENT = re.compile(r"^/\* (.*?)\*/\n((?:BRAID_API [^;]+;\n)*)", re.DOTALL | re.MULTILINE)
_SECTION = re.compile(r"^(Raises|Options|Args|Returns):\n((?:    .+\n?)+)", re.MULTILINE)


def on_files(files: Any, config: Any) -> Any:
    """Add the pages to those that mkdocs found."""
    from mkdocs.structure.files import File

    for path, text in pages().items():
        files.append(File.generated(config, path, content=text))
    return files


def pages() -> dict[str, str]:
    """Return the text of every generated page, by its path."""
    return {
        "reference/dialect.md": dialect_page(),
        "reference/passes.md": passes_page(),
        "reference/options.md": options_page(),
        "reference/cli.md": cli_page(),
        "reference/python.md": python_page(),
        "reference/c.md": c_page(),
    }


def dialect_page() -> str:
    """Return every op and attribute of the dialect, in alphabetical order."""
    lines = [
        "# The braid dialect",
        "After this page you can look up every op and attribute. What an op means is its "
        "`evaluate`, in numpy; `braid.interpret` runs it.",
        "## Attributes",
        *(_entry(a.name, a) for a in sorted(Braid.attributes, key=lambda a: a.name)),
        "## Ops",
        *(_entry(op.name, op) for op in sorted(Braid.operations, key=lambda op: op.name)),
    ]
    return "\n\n".join(lines) + "\n"


def passes_page() -> str:
    """Return every pass with its options, then the named pipelines."""
    lines = [
        "# Passes",
        "After this page you can look up every pass, its options and the named pipelines. "
        "`select-`, `search-` and `annotate-` passes only write attributes; `apply-`, `outline-` "
        "and the like carry decisions out. Run them with `braid-opt model.mlir -p NAMES`.",
    ]
    for name, load in sorted(braid_passes().items()):
        pass_class = load()
        lines.append(_entry(name, pass_class))
        if options := pass_options(pass_class):
            table = ["| option | type | default |", "|---|---|---|"]
            for option in options:
                default = "required" if option.default is None else f"`{option.default}`"
                kind = option.type_name.replace("|", "\\|")
                table.append(f"| `{option.name}` | {kind} | {default} |")
            lines.append("\n".join(table))
    lines.append("## Pipelines")
    for name, parts in sorted(PIPELINES.items()):
        passes = "\n".join(f"1. `{part}`" for part in parts)
        lines += [f"### `{name}`", passes]
    return "\n\n".join(lines) + "\n"


def options_page() -> str:
    """Return every option of a compilation: its keyword, its flag and its default."""
    lines = [
        "# Options of a compilation",
        "After this page you can look up every option of a compilation: the keyword of "
        "`braid.compile`, and the flag of the commands.",
    ]
    table = ["| keyword | `braid compile` | default | meaning |", "|---|---|---|---|"]
    for name, option in options_of().items():
        flag = "" if option.kind is None or name == "threads" else f"`{flag_of(name)}`"
        table.append(f"| `{name}` | {flag} | `{getattr(DEFAULTS, name)!r}` | {option.meaning} |")
    return "\n\n".join([*lines, "\n".join(table)]) + "\n"


def _help_of(main: Callable[[list[str]], int]) -> str:
    """Return what a command prints for `--help`."""
    listing = io.StringIO()
    with contextlib.redirect_stdout(listing), contextlib.suppress(SystemExit):
        main(["--help"])
    return listing.getvalue()


def cli_page() -> str:
    """Return the help of `braid`, of its commands, of `braid-opt` and of `braid-lsp`."""
    runner = CliRunner(env={"COLUMNS": "90", "TERM": "dumb"})
    names = sorted(getattr(typer.main.get_command(app), "commands", {}))
    lines = [
        "# Commands",
        "After this page you can look up the options of every command. "
        "[Command line](../command-line.md) explains those that all commands share.",
        "## `braid`",
        _text(runner.invoke(app, ["--help"]).output),
    ]
    for name in names:
        output = runner.invoke(app, [name, "--help"], prog_name="braid").output
        lines += [f"## `braid {name}`", _text(output)]
    usage = _help_of(braid_opt).partition("passes of braid:")[0]
    lines += ["## `braid-opt`", _text(usage), "Its passes are [on a page of their own](passes.md)."]
    lines += ["## `braid-lsp`", _text(_help_of(braid_lsp)), "[Editors](../editors.md) start it."]
    return "\n\n".join(lines) + "\n"


def python_page() -> str:
    """Return the public Python API: what `braid` and `braid.extend` export."""
    lines = [
        "# Python API",
        "After this page you can look up every name that braid promises to keep "
        "([Compatibility](../compatibility.md)). [Models in Python](../models-in-python.md) shows "
        "how they are used. Other modules are internal.",
        "## braid",
        *_module_entries(braid),
        "## braid.extend",
        "What packages import that add ops, importers, passes, kernel families, targets or "
        "backends; [Extending](../extending/add-an-op.md) shows how.",
        *_module_entries(braid.extend),
    ]
    return "\n\n".join(lines) + "\n"


def _module_entries(module: ModuleType) -> Iterator[str]:
    for name in sorted(module.__all__, key=str.lower):
        yield from _api_entries(name, getattr(module, name))


def _api_entries(name: str, value: Any) -> Iterator[str]:
    """Yield a heading, the signature and the docstring; of a class, its public methods as well."""
    yield f"### `{name}`"
    home = getattr(value, "__module__", "braid")
    if not callable(value):
        yield f"The value is `{value!r}`."
    elif not home.startswith("braid"):
        yield f"An alias of `{home}.{getattr(value, '__qualname__', value)}`."
    else:
        yield f"```text\n{name}{_signature(value)}\n```"
        yield _SECTION.sub(_listed, inspect.getdoc(value) or "It has no documentation.")
    if inspect.isclass(value) and home.startswith("braid"):
        yield from _method_entries(value)


def _method_entries(owner: type) -> Iterator[str]:
    for name, each in vars(owner).items():
        member = getattr(each, "__func__", each)
        documented = inspect.isroutine(member) or isinstance(member, property | cached_property)
        if documented and (not name.startswith("_") or name == "__call__"):
            shown = _signature(member, 10_000) if inspect.isfunction(member) else ""
            summary = " ".join((inspect.getdoc(member) or "").partition("\n\n")[0].split())
            yield f"- `{name}{shown}`: {summary}"


def _listed(section: re.Match[str]) -> str:
    """Return a section of a docstring, such as Raises, as a list."""
    entries = re.split(r"\n(?=\S)", inspect.cleandoc(section[2]))
    items = (" ".join(entry.split()).partition(": ") for entry in entries)
    listed = "\n".join(f"- `{name}`: {text}" for name, _, text in items)
    return f"{section[1]}:\n\n{listed}\n"


def _signature(value: Any, width: int = 88) -> str:
    """Return the parameters of a function or class, without modules of types.

    They stand one a line if they are wide.
    """
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    named = [each for name, each in found.parameters.items() if name != "self"]
    text = _plain(found.replace(parameters=named))
    if len(text) <= width:
        return text
    lines: list[str] = []
    for each in named:
        if each.kind is each.KEYWORD_ONLY and "    *," not in lines:
            lines.append("    *,")
        lines.append(f"    {_plain(each)},")
    returned = _plain(found.replace(parameters=[])).removeprefix("()")
    return "(\n" + "\n".join(lines) + f"\n){returned}"


def _plain(value: Any) -> str:
    text = re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(value))
    return re.sub(r"(?:[a-z_]+\.)+([A-Za-z])", r"\1", text)


def c_page() -> str:
    """Return the C API: functions of the headers, with their comments."""
    lines = [
        "# C API",
        "After this page you can look up every function that C programs call. The headers are "
        "`braid/runtime.h`, `braid/trace.h` and `braid/device.h`, and "
        "[Embedding](../embedding.md#from-c) shows a program. What `--emit=so` makes has a header "
        "of its own beside the library.",
    ]
    for name in ("runtime.h", "trace.h", "device.h"):
        lines.append(f"## braid/{name}")
        for comment, functions in _COMMENT.findall((HEADERS / name).read_text(encoding="utf-8")):
            text = re.sub(r"\n ?\*? ?", "\n", comment).strip()
            if functions:
                declared = functions.replace("BRAID_API ", "").strip()
                names = re.findall(r"(braid_\w+)\(", declared)
                lines += [f"### `{'`, `'.join(names)}`", f"```c\n{declared}\n```", text]
            elif text.startswith("---- What a program") or text.startswith("---- Streams"):
                lines.append(text.partition("\n")[2].strip())
    return "\n\n".join(lines) + "\n"


def _entry(name: str, documented: type) -> str:
    return f"### `{name}`\n\n{inspect.cleandoc(documented.__doc__ or '')}"


def _text(output: str) -> str:
    return f"```text\n{output.strip()}\n```"
