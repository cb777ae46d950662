"""`braid diff`: what differs between two models, artifacts, or sets of options."""

import shlex
from dataclasses import dataclass, fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from braid.driver.options import DEFAULTS, CompileOptions
from braid.support.errors import BraidError
from braid.tools.commands.option_groups import grouped, only
from braid.tools.commands.options import ARTIFACT_SUFFIX, ModelArgument
from braid.tools.terminal.answer import Answer
from braid.tools.terminal.usage import value_error

if TYPE_CHECKING:
    from braid.runtime.artifact import Artifact
    from braid.runtime.model import Model
    from braid.tools.comparison.compiled_difference import CompiledDifference
    from braid.tools.comparison.compiled_facts import CompiledFacts
    from braid.tools.explain.kernel_rows import KernelRow

_OPTIONS = (
    *("target", "cpu", "gpu_arch", "threads", "shapes", "dims", "constants", "shape_buckets"),
    *("shape_bounds", "jobs", "use_profile", "unseen", "memory_budget", "recompute"),
    *("inter_op_threads", "order_seconds", "partition", "pin", "integers", "emulate", "kernels"),
    *("numerics", "precision", "untuned", "untuned_seconds"),
)
Shared = Annotated[CompileOptions, only(*_OPTIONS)]
OtherArgument = Annotated[
    Path | None,
    typer.Argument(metavar="[B]", help="The model that it is compared with; by default MODEL."),
]


def _own_options(side: str) -> Any:
    return typer.Option(
        f"--{side}",
        metavar="OPTIONS",
        help=f"Options of compilations for {side.upper()} alone, as one argument, such as "
        "'--numerics strict'.",
    )


@dataclass(frozen=True)
class _Side:
    """A model or an artifact, and the options that it is compiled with."""

    name: str
    path: Path
    options: CompileOptions
    given: str

    @property
    def is_artifact(self) -> bool:
        """Return whether it is compiled already."""
        return self.path.suffix.lower() == ARTIFACT_SUFFIX

    def to_json(self) -> dict[str, object]:
        """Return where it comes from."""
        kind = "artifact" if self.is_artifact else "model"
        return {"path": str(self.path), "kind": kind, "options": self.given}


@grouped
def diff(
    model: ModelArgument,
    options: Shared,
    other: OtherArgument = None,
    a: Annotated[str, _own_options("a")] = "",
    b: Annotated[str, _own_options("b")] = "",
    measure: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Run both N times in turns, and each kernel, on random inputs."
        ),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw what moved, and why, on a page in FILE."),
    ] = None,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="The status is 1 if they differ, as of git diff.")
    ] = False,
) -> Answer:
    """Compare two models as compiled.

    They are models, artifacts, or one model with two sets of options: 'braid diff model.onnx --b
    "--numerics strict"'. Shown are settings, bytes and kernels that differ: their ops, layouts,
    schedules, devices and times. Times are those that decisions are made by, or measured. Of
    artifacts, kernels are not known. The page of --html has all kernels side by side, those that
    changed most first, with each side's predictions for the choice of the other one.
    """
    sides = _sides(model, other, options, a, b)
    from braid.tools.comparison.compiled_difference import CompiledDifference
    from braid.tools.terminal.outputs import check_outputs

    check_outputs(html, model=model)
    if html is not None and any(side.is_artifact for side in sides):
        raise BraidError(
            "kernels of artifacts are not known, so that there is nothing to draw",
            hint="give the models from which they are made",
        )

    with TemporaryDirectory(prefix="braid-diff-") as directory:
        artifacts = [_artifact(side, Path(directory)) for side in sides]
        known = [_facts(*pair) for pair in zip(sides, artifacts, strict=True)]
        seconds = None
        if measure is not None:
            known, seconds = _measured(sides, known, artifacts, measure)
        found = CompiledDifference.between(known[0], known[1], seconds)
        if html is not None:
            _write_page(html, sides, known, found)
    data = {side.name: side.to_json() for side in sides} | found.to_json()
    data["files"] = [] if html is None else [str(html)]
    status = 1 if exit_code and not found.is_empty else 0
    return Answer(data, lambda: _show(sides, found), status)


def _sides(
    model: Path, other: Path | None, shared: CompileOptions, a: str, b: str
) -> "tuple[_Side, _Side]":
    """Return both sides. Raises BraidError if both sides are the same."""
    if other is None and a == b:
        raise BraidError(
            f"'{model}' would be compared with itself",
            hint="give a second model, or options for one of the sides: --b '--numerics strict'",
        )
    sides = (
        _Side("a", model, _merged("a", shared, a), a),
        _Side("b", other or model, _merged("b", shared, b), b),
    )
    for side in sides:
        if side.is_artifact and side.given:
            raise BraidError(
                f"--{side.name} is for what is compiled, and '{side.path}' is compiled",
                hint="give the .onnx or .mlir file that it was compiled from",
            )
    if all(side.is_artifact for side in sides) and set(_given(shared)) - {"threads"}:
        raise BraidError(
            "both files are compiled, so that no option of compilations applies",
            hint="give the .onnx or .mlir files that they were compiled from",
        )
    return sides


def _merged(side: str, shared: CompileOptions, text: str) -> CompileOptions:
    """Return the shared options, overridden by those of a side.

    Raises:
        BraidError: the text is no list of options of compilations.

    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise BraidError(
            f"--{side} is {text!r}: {error}", hint="quote it as one argument"
        ) from error
    if not words:
        return shared
    reader = typer.Typer(add_completion=False, rich_markup_mode=None)
    reader.command(add_help_option=False)(_given_options)
    own = _read_options(reader, side, words)
    return replace(shared, **_given(own))


def _given(options: CompileOptions) -> dict[str, Any]:
    """Return the options that are not as by default; none of several is as none."""
    values = {field.name: getattr(options, field.name) for field in fields(options)}
    return {
        name: value
        for name, value in values.items()
        if value != (default := getattr(DEFAULTS, name)) and (value or default)
    }


@grouped
def _given_options(options: Shared) -> CompileOptions:
    return options


def _read_options(reader: typer.Typer, side: str, words: list[str]) -> CompileOptions:
    try:
        return reader(words, prog_name=f"--{side}", standalone_mode=False)
    except BraidError:
        raise
    except Exception as error:
        say = getattr(error, "format_message", None)
        if say is None:
            raise
        wrong = value_error(error, words) or " ".join(say().split())
        raise BraidError(
            f"--{side} is {shlex.join(words)!r}: {wrong}",
            hint="it takes the options of braid compile, see braid diff --help",
        ) from error


def _artifact(side: _Side, directory: Path) -> "Artifact":
    """Return the artifact of a side, compiled if it is a model."""
    from braid.runtime.artifact import read_artifact
    from braid.tools.commands.models import compile_model

    if side.is_artifact:
        return read_artifact(side.path)
    path = directory / f"{side.name}{ARTIFACT_SUFFIX}"
    compile_model(side.path, replace(side.options, load=False)).save(path)
    return read_artifact(path)


def _facts(side: _Side, artifact: "Artifact") -> "CompiledFacts":
    from braid.tools.commands.diagnostics import compiling
    from braid.tools.comparison.compiled_facts import CompiledFacts

    if side.is_artifact:
        return CompiledFacts.of_artifact(artifact)
    with compiling(side.path, "looking at the kernels of"):
        return CompiledFacts.of_source(side.path, side.options, artifact)


def _measured(
    sides: "tuple[_Side, _Side]",
    known: "list[CompiledFacts]",
    artifacts: "list[Artifact]",
    runs: int,
) -> "tuple[list[CompiledFacts], tuple[float, float]]":
    """Return the same facts with measured times of kernels, and the seconds of one run of each."""
    from braid.runtime.model import load
    from braid.tools.commands.models import compile_model
    from braid.tools.comparison.timed_pair import kernel_seconds, timed_pair, with_measured

    loaded = [
        load(artifact.path, threads=side.options.threads, emulate=side.options.emulate)
        for side, artifact in zip(sides, artifacts, strict=True)
    ]
    first, second = (_runner(side, model) for side, model in zip(sides, loaded, strict=True))
    seconds = timed_pair(first, second, runs)
    for number, side in enumerate(sides):
        facts = known[number]
        if facts.kernels is None:
            continue
        counted = compile_model(side.path, replace(side.options, profile=True))
        found = kernel_seconds(counted, _runner(side, counted), runs)
        known[number] = replace(facts, kernels=with_measured(facts.kernels, found))
    return known, seconds


def _write_page(
    path: Path,
    sides: "tuple[_Side, _Side]",
    known: "list[CompiledFacts]",
    found: "CompiledDifference",
) -> None:
    from braid.tools.commands.diagnostics import compiling
    from braid.tools.comparison.decided_kernels import weighed_kernels
    from braid.tools.comparison.difference_page import difference_page, with_times
    from braid.tools.explain.render import render
    from braid.tools.terminal.outputs import write_files

    rows: list[tuple[KernelRow, ...]] = []
    for side, facts in zip(sides, known, strict=True):
        with compiling(side.path, "looking at the kernels of"):
            weighed = weighed_kernels(side.path, side.options)
        rows.append(with_times(weighed, facts.kernels or ()))
    labels = [f"{side.path.name} {side.given}".strip() for side in sides]
    page = difference_page((labels[0], labels[1]), (rows[0], rows[1]), found)
    write_files({path: render(page).encode()})


def _runner(side: _Side, model: "Model") -> "Any":
    """Return what runs a model on random inputs, the same for both sides."""
    from braid.runtime.binding import bind_inputs
    from braid.tools.commands.models import step_inputs

    values = step_inputs(side.path, side.options, model, None, {}, {}).values(0)
    arrays = bind_inputs(model.inputs, (), values)
    return lambda: model.run_numbers(arrays)


def _show(sides: "tuple[_Side, _Side]", found: "CompiledDifference") -> None:
    from braid.tools.terminal.tables import print_table

    for side in sides:
        given = f" with {side.given}" if side.given else ""
        print(f"{side.name.upper()}: {side.path}{given}")
    for title, table in found.tables():
        print(title)
        print_table(table)
    if found.is_empty:
        print("nothing differs")
    print(found.summary())
