"""Print the reports of `braid-opt` next to the IR: passes, diagnostics, timing and remarks."""

import inspect
import json
from collections.abc import Mapping, Sequence

from xdsl.passes import ModulePass

from braid.analysis.diagnostics.remarks import Remark
from braid.passes.infrastructure.context import DIALECTS, make_context
from braid.passes.infrastructure.instrumentation import Timing
from braid.passes.infrastructure.options import pass_options, pass_text
from braid.passes.infrastructure.registry import PassFactory, available_passes, pass_table
from braid.passes.pipelines import PIPELINES
from braid.support.diagnostics import Diagnostic
from braid.support.errors import BraidError, SourceLocation

_COLUMN = 28
"""The column where the texts begin."""


def list_passes() -> str:
    """Return all passes with their options, types, defaults and first line of documentation.

    braid's own come first, then the named pipelines, then the passes of other packages.
    """
    passes = available_passes()
    own = [_describe(name, passes[name]) for name in sorted(pass_table())]
    others = [_describe(name, passes[name]) for name in sorted(passes) if name not in pass_table()]
    pipelines = [_entry(name, ",".join(parts)) for name, parts in sorted(PIPELINES.items())]
    sections = {
        "passes of braid:": own,
        "named pipelines:": pipelines,
        "passes of xDSL and installed packages:": others,
    }
    return "\n\n".join("\n".join([title, *lines]) for title, lines in sections.items())


def list_dialects() -> str:
    """Return the names of all dialects, one a line; braid's own first."""
    names = make_context().registered_dialect_names
    return "\n".join([*DIALECTS, *sorted(set(names) - set(DIALECTS))])


def _describe(name: str, factory: PassFactory) -> str:
    try:
        pass_class = factory()
        options = pass_options(pass_class)
    except (ImportError, NameError, BraidError) as error:
        return _entry(name, f"(cannot be loaded: {error})")
    lines = [_entry(name, _first_line(pass_class))]
    return "\n".join([*lines, *(f"      {option}" for option in options)])


def _entry(name: str, text: str) -> str:
    """Return a name and what it means, in columns; below each other where the name is too long."""
    if len(name) < _COLUMN or not text:
        return f"  {name:<{_COLUMN}}{text}".rstrip()
    return f"  {name}\n  {'':<{_COLUMN}}{text}"


def _first_line(pass_class: type[ModulePass]) -> str:
    documentation = inspect.cleandoc(pass_class.__doc__ or "")
    # A dataclass without a docstring gets its signature as one, which adds nothing.
    if documentation.startswith(f"{pass_class.__name__}("):
        return ""
    return documentation.partition("\n")[0]


Sources = Mapping[str, Sequence[str]]
"""Lines of the files that are known, by name."""
_LONGEST = 400
"""Characters of a line that are shown."""


def render_diagnostic(diagnostic: Diagnostic, sources: Sources) -> str:
    """Return `diagnostic` with its notes, its hint, and the source lines that `sources` has."""
    lines = _render(diagnostic.severity, diagnostic.message, diagnostic.location, sources)
    for note in diagnostic.notes:
        lines += _render("note", note.message, note.location, sources)
    if diagnostic.hint:
        lines.append(f"hint: {diagnostic.hint}")
    return "\n".join(lines)


def _render(
    severity: str, message: str, location: SourceLocation | None, sources: Sources
) -> list[str]:
    place = "braid-opt" if location is None else str(location)
    lines = [f"{place}: {severity}: {message}"]
    if location is None or not location.line:
        return lines
    source = sources.get(location.file, ())
    if location.line <= len(source):
        text, column = _around(source[location.line - 1], location.column)
        lines.append(text)
        if column:
            # Tabs are kept, so that the caret stands below its character.
            prefix = text[: column - 1].ljust(column - 1)
            lines.append("".join("\t" if c == "\t" else " " for c in prefix) + "^")
    return lines


def _around(text: str, column: int) -> tuple[str, int]:
    """Return the part of a very long line that is around `column`, and the column in it."""
    if len(text) <= _LONGEST:
        return text, column
    begin = max(0, min(column - _LONGEST // 2, len(text) - _LONGEST))
    return text[begin : begin + _LONGEST], max(0, column - begin)


def timing_report(timing: Timing, *, longest_first: bool = False) -> str:
    """Return a table of phases and passes with wall times, like mlir-opt's `--mlir-timing`."""
    total, entries = _times(timing, longest_first)
    rule = "===" + "-" * 73 + "==="
    lines = [
        rule,
        "... Execution time report ...".center(len(rule)).rstrip(),
        rule,
        f"  Total Execution Time: {total:.4f} seconds",
        "",
        "  ----Wall Time----  ----Name----",
    ]
    for name, seconds in entries:
        lines.append(f"  {seconds:8.4f} ({100 * seconds / total:5.1f}%)  {name}")
    return "\n".join(lines)


def timing_json(timing: Timing, *, longest_first: bool = False) -> str:
    """Return the same as JSON, in the form of mlir-opt's `--mlir-output-format=json`."""
    total, entries = _times(timing, longest_first)
    rows = [
        {
            "wall": {"duration": round(seconds, 4), "percentage": round(100 * seconds / total, 1)},
            "name": name,
        }
        for name, seconds in entries
    ]
    return "[\n" + ",\n".join(map(json.dumps, rows)) + "\n]"


def _times(timing: Timing, longest_first: bool) -> tuple[float, list[tuple[str, float]]]:
    """Return the total time, and the time of each part, of the rest and of all."""
    total = timing.total()
    parts = [*timing.phases.items(), ("(rest)", total - sum(timing.phases.values()))]
    if longest_first:
        parts.sort(key=lambda part: -part[1])
    return total, [*parts, ("Total", total)]


def pipeline_report(passes: Sequence[ModulePass]) -> str:
    """Return the passes that will run, like mlir-opt's `--dump-pass-pipeline`."""
    inner = ",\n".join(f"  {pass_text(pass_)}" for pass_ in passes)
    return f"Pass Manager with {len(passes)} passes:\nbuiltin.module(\n{inner}\n)"


def remark_diagnostic(remark: Remark) -> Diagnostic:
    """Return the diagnostic that shows `remark` as `file:line:col: remark: [pass] message`."""
    return Diagnostic("remark", f"[{remark.pass_name}] {remark.message}", remark.location)


def remarks_json(remarks: Sequence[Remark]) -> str:
    """Return all `remarks` as a JSON array."""
    return json.dumps([remark.to_json() for remark in remarks], indent=2) + "\n"
