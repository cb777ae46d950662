"""`braid simulate`: how long an instruction stream takes on a chip, and what its units wait for."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from braid.analysis.simulator.instructions import Stream
    from braid.targets.target import Backend

StreamArgument = Annotated[
    Path, typer.Argument(metavar="STREAM", help="A stream (.bin, .txt) or a module (.mlir, .onnx)")
]


def simulate(
    stream: StreamArgument,
    target: Annotated[str, typer.Option(help="Chip: a name or a .toml file.")] = "npu-small",
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a Gantt chart to FILE.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", metavar="FILE", help="Write the stream (.bin, .txt).")
    ] = None,
) -> None:
    """Simulate an instruction stream and print the time of every unit.

    A module is lowered first, its ops in the order in which they stand; `search-order` finds
    better ones.
    """
    from braid.analysis.simulator import report
    from braid.analysis.simulator.simulate import simulate as run
    from braid.lowering.npu.lower_to_instructions import encoded
    from braid.targets.load import load_target
    from braid.tools.explain.render import render
    from braid.tools.explain.timeline_view import timeline_view
    from braid.tools.explain.views import Page
    from braid.tools.outputs import check_outputs, write_files

    check_outputs(output, html)
    backend = load_target(target).backends[0]
    loaded = _load(stream, backend)
    timeline = run(loaded, backend)
    files: dict[Path, bytes] = {}
    if output is not None:
        files[output] = encoded(loaded, output)
    if html is not None:
        view = timeline_view(report.report(timeline, loaded, backend))
        files[html] = render(Page(f"{stream.name} on {target}", (view,))).encode()
    write_files(files)
    print(report.table(timeline, backend))


def _load(path: Path, backend: "Backend") -> "Stream":
    from braid.analysis.simulator.instructions import from_bytes, from_text
    from braid.errors import BraidError, SourceLocation
    from braid.lowering.npu.lower_to_instructions import lower_module
    from braid.sources import read_source
    from braid.universe import make_context

    if path.suffix in (".mlir", ".onnx"):
        return lower_module(read_source(make_context(), path).module, backend)
    try:
        data = path.read_bytes()
        return from_text(data.decode()) if path.suffix == ".txt" else from_bytes(data)
    except (OSError, UnicodeDecodeError) as error:
        raise BraidError(
            f"cannot read the stream: {error}", location=SourceLocation(str(path))
        ) from error
