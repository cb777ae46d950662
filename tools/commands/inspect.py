"""`braid inspect`: what a model consists of."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from braid.tools.commands.options import (
    ARTIFACT_SUFFIX,
    ModelArgument,
    ShapeOption,
    parse_shapes,
)

if TYPE_CHECKING:
    from braid.runtime.manifest import Manifest
    from braid.targets.costs.model_summary import ModelSummary, OpSummary


def inspect(
    model: ModelArgument,
    ops: Annotated[
        bool, typer.Option("--ops", help="List every op, not only their kinds.")
    ] = False,
    shape: ShapeOption = None,
    json_file: Annotated[
        Path | None,
        typer.Option("--json", metavar="FILE", help="Write everything to FILE too, as JSON."),
    ] = None,
) -> None:
    """Show the inputs, outputs, ops and weights of a model.

    Operations are weighted by their cost, an addition being 1; bytes are those that every op
    reads and writes on its own. What runs several times counts as often as it is expected to.
    """
    from braid.tools.terminal.outputs import check_outputs

    check_outputs(json_file)
    if model.suffix.lower() == ARTIFACT_SUFFIX:
        manifest = _manifest(model)
        _write(json_file, asdict(manifest))
        _show_manifest(manifest)
        return
    summary = _summary(model, shape)
    totals = {"flops": summary.flops, "bytes": summary.bytes}
    _write(json_file, {"model": str(model), **asdict(summary), **totals})
    _show_summary(summary, ops)


def _write(path: Path | None, content: dict[str, object]) -> None:
    from braid.tools.terminal.outputs import write_files

    if path is not None:
        write_files({path: json.dumps(content, indent=1).encode()})


def _manifest(path: Path) -> "Manifest":
    from braid.runtime.artifact import read_artifact

    return read_artifact(path).manifest


def _summary(path: Path, shape: list[str] | None) -> "ModelSummary":
    from braid.driver.read_source import read_source
    from braid.passes.infrastructure.context import make_context
    from braid.targets.costs.model_summary import summarize

    return summarize(read_source(make_context(), path, shapes=parse_shapes(shape)).module)


def _show_manifest(manifest: "Manifest") -> None:
    from rich.console import Console
    from rich.table import Table

    ports = Table("port", "name", "dtype", "shape")
    for kind, specs in (("input", manifest.inputs), ("output", manifest.outputs)):
        for spec in specs:
            ports.add_row(kind, spec.name, spec.dtype, str(list(spec.shape)))
    console = Console()
    console.print(ports)
    weights = sum(weight.nbytes for weight in manifest.weights)
    console.print(
        f"{manifest.model}: by {manifest.builder}, for {manifest.target} ({manifest.triple})"
    )
    console.print(f"arena {manifest.arena_bytes:,} bytes, weights {weights:,} bytes")
    for device in manifest.runs_on:
        console.print(f"runs on {device.name}, by the plugin {device.plugin}", highlight=False)
    for library in manifest.libraries:
        console.print(f"calls the library {library}", highlight=False)
    for code in manifest.devices:
        console.print(f"{code.nbytes:,} bytes of {code.kind} for {code.device}")


def _show_summary(summary: "ModelSummary", every_op: bool) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    ports = Table("port", "name", "type")
    for kind, tensors in (("input", summary.inputs), ("output", summary.outputs)):
        for tensor in tensors:
            ports.add_row(kind, tensor.name, tensor.type)
    console.print(ports)
    title = "op" if every_op else "kind"
    table = Table(title, "result" if every_op else "ops", "parameters", "operations", "bytes")
    for column in table.columns[2 if every_op else 1 :]:
        column.justify = "right"
    for row in _op_rows(summary) if every_op else _kind_rows(summary):
        table.add_row(*row)
    console.print(table)
    console.print(
        f"{len(summary.ops)} ops, {summary.parameters:,} parameters "
        f"({summary.parameter_bytes:,} bytes), {summary.flops:,.0f} operations, "
        f"{summary.bytes:,.0f} bytes moved"
    )


def _op_rows(summary: "ModelSummary") -> list[tuple[str, ...]]:
    return [(op.name, " ".join(op.results), *_figures([op])) for op in summary.ops]


def _kind_rows(summary: "ModelSummary") -> list[tuple[str, ...]]:
    """A row per kind of op, what computes most first."""
    kinds: dict[str, list[OpSummary]] = {}
    for op in summary.ops:
        kinds.setdefault(op.kind, []).append(op)
    ordered = sorted(kinds.items(), key=lambda item: -_total_flops(item[1]))
    return [(kind, str(len(ops)), *_figures(ops)) for kind, ops in ordered]


def _figures(ops: "list[OpSummary]") -> tuple[str, str, str]:
    moved = sum(op.bytes * op.executions for op in ops)
    weights = sum(op.parameters for op in ops)
    return f"{weights:,}", f"{_total_flops(ops):,.0f}", f"{moved:,.0f}"


def _total_flops(ops: "list[OpSummary]") -> float:
    return sum(op.flops * op.executions for op in ops)
