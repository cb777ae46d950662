"""`braid simulate`: the time of an instruction stream on a chip, and the waits of its units."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from braid.driver.options import CompileOptions
from braid.tools.commands.option_groups import grouped, only
from braid.tools.terminal.answer import Answer

if TYPE_CHECKING:
    from braid.targets.machines.target import Target
    from braid.targets.simulator.instructions import Stream

StreamArgument = Annotated[
    Path,
    typer.Argument(metavar="STREAM", help="A stream (.bin or .txt) or a model (.onnx or .mlir)."),
]


@grouped
def simulate(
    stream: StreamArgument,
    options: Annotated[CompileOptions, only("shapes", "dims", "constants")],
    target: Annotated[
        str, typer.Option(metavar="TARGET", help="The chip: a name or a .toml file.")
    ] = "npu-small",
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a Gantt chart to FILE.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Write the stream to FILE: text if that ends in .txt, otherwise binary.",
        ),
    ] = None,
) -> Answer:
    """Simulate an instruction stream and print the time of every unit.

    A model is lowered first, with its ops in the given order; braid compile for a chip finds better
    orders.
    """
    from braid.lowering.npu.lower_to_instructions import encoded
    from braid.targets.machines.load import load_target
    from braid.targets.simulator import report
    from braid.targets.simulator.simulate import simulate as run
    from braid.tools.explain.document import page_data
    from braid.tools.explain.render import render
    from braid.tools.explain.timeline_view import timeline_view
    from braid.tools.terminal.outputs import check_outputs, write_files

    check_outputs(output, html, model=stream)
    machine = load_target(target)
    backend = machine.default_backend
    loaded = _load(stream, machine, options)
    loaded.require_target(machine.name)
    timeline = run(loaded, backend)
    files: dict[Path, bytes] = {}
    if output is not None:
        files[output] = encoded(loaded, output)
    if html is not None:
        view = timeline_view(report.report(timeline, loaded, backend))
        title = f"{stream.name} on {target}"
        files[html] = render(page_data(title, timelines=(view,))).encode()
    write_files(files)
    data = {
        "stream": str(stream),
        "target": machine.name,
        "seconds": timeline.seconds,
        "peak_bytes": timeline.peak_bytes,
        "units": [asdict(unit) for unit in report.unit_times(timeline, backend)],
        "files": list(map(str, files)),
    }
    return Answer(data, lambda: print(report.table(timeline, backend)))


def _load(path: Path, target: "Target", options: CompileOptions) -> "Stream":
    from braid.driver.read_source import read_source
    from braid.lowering.npu.lower_to_instructions import lower_module
    from braid.passes.infrastructure.context import make_context
    from braid.support.errors import BraidError, SourceLocation
    from braid.support.input_files import read_regular, reason
    from braid.support.option_names import flag_of
    from braid.targets.simulator.instructions import from_text
    from braid.targets.simulator.stream_bytes import from_bytes

    if path.suffix.lower() in (".mlir", ".onnx"):
        source = read_source(
            make_context(),
            path,
            shapes=options.shapes,
            dims=options.dims,
            constants=options.constants,
        )
        module = source.module
        return replace(lower_module(module, target.default_backend), target=target.name)
    for name in ("shapes", "dims", "constants"):
        if getattr(options, name):
            raise BraidError(
                f"'{path}' is a stream, which has no open dims; leave out {flag_of(name)}"
            )
    try:
        data = read_regular(path)
        return from_text(data.decode()) if path.suffix.lower() == ".txt" else from_bytes(data)
    except (OSError, UnicodeDecodeError) as error:
        raise BraidError(
            f"cannot read the stream: {reason(error)}", location=SourceLocation(str(path))
        ) from error
    except BraidError as error:
        if error.location is not None:
            raise
        raise BraidError(
            error.message, location=SourceLocation(str(path)), hint=error.hint
        ) from error
