"""`braid inspect`: what a model consists of."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from braid.driver.options import CompileOptions
from braid.tools.commands.option_groups import grouped, only
from braid.tools.commands.options import ARTIFACT_SUFFIX, ModelArgument
from braid.tools.terminal.answer import Answer

if TYPE_CHECKING:
    from braid.driver.sources.open_model import OpenModel
    from braid.frontends.onnx.model_file import DeclaredShape
    from braid.runtime.manifest import Manifest
    from braid.targets.costs.model_summary import ModelSummary, OpSummary


@grouped
def inspect(
    model: ModelArgument,
    options: Annotated[CompileOptions, only("shapes", "dims", "constants")],
    ops: Annotated[
        bool, typer.Option("--ops", help="List every op, not only their kinds.")
    ] = False,
) -> Answer:
    """Show the inputs, outputs, ops and weights of a model.

    Operations are weighted by their cost, an addition being 1; bytes are those that every op reads
    and writes on its own. Ops that run several times count as often as they are expected to run.
    If dims are open, ops are shown at their likely sizes; --dim gives others.
    """
    if model.suffix.lower() == ARTIFACT_SUFFIX:
        manifest = _manifest(model)
        data = {"kind": "artifact", "path": str(model), **asdict(manifest)}
        return Answer(data, lambda: _show_manifest(manifest))
    opened = _open_model(model, options)
    sizes = _sizes(opened)
    if opened is not None and sizes is None:
        dims = {"inputs": opened.ports()[0], "outputs": opened.ports()[1]}
        data = {"kind": "open model", "path": str(model), "dims": dims}
        return Answer(data, lambda: _show_open(opened))
    summary = _summary(model, options, sizes or {})
    totals = {"flops": summary.flops, "bytes": summary.bytes}
    data = {"kind": "model", "path": str(model), **asdict(summary), **totals, "sizes": sizes or {}}
    return Answer(data, lambda: _show_summary(summary, ops, opened, sizes or {}))


def _manifest(path: Path) -> "Manifest":
    from braid.runtime.artifact import read_artifact

    return read_artifact(path).manifest


def _open_model(path: Path, options: CompileOptions) -> "OpenModel | None":
    """Return the model if dims of its inputs are open, in which case it is an ONNX model."""
    from braid.driver.sources.open_model import OpenModel
    from braid.frontends.onnx.fixed_inputs import Fixed

    if path.suffix.lower() != ".onnx":
        return None
    fixed = Fixed(options.shapes or {}, options.dims or {}, options.constants or {})
    model = OpenModel(path, fixed)
    return model if model.dims else None


def _sizes(model: "OpenModel | None") -> Mapping[str, int] | None:
    from braid.driver.sources.likely_sizes import valid_sizes

    return None if model is None else valid_sizes(model)


def _summary(path: Path, options: CompileOptions, sizes: Mapping[str, int]) -> "ModelSummary":
    from braid.driver.read_source import read_source
    from braid.passes.infrastructure.context import make_context
    from braid.targets.costs.model_summary import summarize

    source = read_source(
        make_context(),
        path,
        shapes=options.shapes,
        dims={**(options.dims or {}), **sizes},
        constants=options.constants,
    )
    return summarize(source.module)


def _show_manifest(manifest: "Manifest") -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from braid.runtime.buffers import describe_shape

    ports = Table("port", "name", "dtype", "shape")
    texts = manifest.output_shapes or ((),) * len(manifest.outputs)
    for spec in manifest.inputs:
        ports.add_row("input", spec.name, spec.dtype, escape(f"[{describe_shape(spec)}]"))
    for spec, sizes in zip(manifest.outputs, texts, strict=True):
        ports.add_row("output", spec.name, spec.dtype, escape(f"[{describe_shape(spec, sizes)}]"))
    console = Console()
    console.print(ports)
    weights = sum(weight.nbytes for weight in manifest.weights)
    console.print(
        f"{manifest.model}: by {manifest.builder}, for {manifest.target} ({manifest.triple})"
    )
    arena = "as the sizes need" if manifest.output_shapes else f"{manifest.arena_bytes:,} bytes"
    expanded = f", {manifest.expanded_bytes:,} made at load" if manifest.expanded_bytes else ""
    console.print(f"arena {arena}, weights {weights:,} bytes{expanded}")
    for own in manifest.state:
        kept = "is appended to in place" if own.appended else "is handed on"
        console.print(f"state {own.input} is {own.output} in the next run, and {kept}")
    for device in manifest.runs_on:
        console.print(f"runs on {device.name}, by the plugin {device.plugin}", highlight=False)
    for library in manifest.libraries:
        console.print(f"calls the library {library}", highlight=False)
    for code in manifest.devices:
        console.print(f"{code.nbytes:,} bytes of {code.kind} for {code.device}")


def _show_open(model: "OpenModel") -> None:
    """Return the ports of a model of which no valid sizes are known."""
    from rich.console import Console
    from rich.table import Table

    ports = Table("port", "name", "dims")
    for kind, shapes in zip(("input", "output"), model.ports(), strict=True):
        for name, shape in shapes.items():
            ports.add_row(kind, name, _dims_text(shape, model.dims))
    console = Console()
    console.print(ports)
    console.print("no sizes are known at which the model is valid; --dim gives some")


def _dims_text(shape: "DeclaredShape | None", known: Sequence[str]) -> str:
    """Return sizes and names of dims; those of outputs that nothing has named are `?`."""
    names = ("?" if str(d).endswith("]") and d not in known else str(d) for d in shape or ())
    return "?" if shape is None else ", ".join(names).replace("[", r"\[")


def _show_summary(
    summary: "ModelSummary", every_op: bool, model: "OpenModel | None", sizes: Mapping[str, int]
) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    ports = Table("port", "name", "type", *(["dims"] if model else []))
    for index, tensors in enumerate((summary.inputs, summary.outputs)):
        for tensor in tensors:
            shape = None if model is None else model.ports()[index].get(tensor.name)
            dims = [_dims_text(shape, model.dims)] if model else []
            ports.add_row(("input", "output")[index], tensor.name, tensor.type, *dims)
    console.print(ports)
    if sizes:
        listed = ", ".join(f"{name}={size}" for name, size in sizes.items())
        console.print(f"types and ops are those at {listed}", markup=False, highlight=False)
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
    """Return a row per kind of op, the one that computes most first."""
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
