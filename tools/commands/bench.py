"""`braid bench`: latency and memory of a model on random inputs."""

import json
from pathlib import Path
from typing import Annotated

import typer

from braid.tools.commands.options import (
    EmulateOption,
    InputOption,
    InterpretOption,
    JobsOption,
    ModelArgument,
    OptionalTargetOption,
    SeedOption,
    ShapeOption,
    ThreadsOption,
    parse_shapes,
)


def bench(
    model: ModelArgument,
    runs: Annotated[int, typer.Option(metavar="N", min=1, help="Runs that are measured.")] = 50,
    warmup: Annotated[int, typer.Option(metavar="N", min=0, help="Runs before these.")] = 5,
    inputs: InputOption = None,
    seed: SeedOption = 0,
    interpret: InterpretOption = False,
    shape: ShapeOption = None,
    threads: ThreadsOption = 1,
    target: OptionalTargetOption = None,
    jobs: JobsOption = None,
    emulate: EmulateOption = False,
    json_file: Annotated[
        Path | None,
        typer.Option("--json", metavar="FILE", help="Write the figures to FILE too, as JSON."),
    ] = None,
) -> None:
    """Measure the latency and the memory of a model.

    Inputs that are not given are random. Shown are the median and p90 latency, the size of the
    arena, and by how much the resident memory grew. What grows beside the arena, the outputs and
    pages of files (weights that are read for the first time) is shown as "anything else".
    """
    from braid.dynamic_shapes.binding import bind_inputs
    from braid.tools.commands.arrays import random_inputs, read_inputs, sized_inputs
    from braid.tools.commands.measuring import measure_runs
    from braid.tools.commands.models import open_model
    from braid.tools.outputs import check_outputs, write_files

    check_outputs(json_file)
    given = read_inputs(inputs)
    opened = open_model(
        model,
        interpret=interpret,
        threads=threads,
        shapes=shape,
        target=target,
        jobs=jobs,
        emulate=emulate,
    )
    specs = sized_inputs(opened.inputs, parse_shapes(shape))
    arrays = bind_inputs(specs, (), random_inputs(specs, seed, given))
    figures = measure_runs(lambda: opened.run(arrays), runs, warmup)
    if json_file is not None:
        content = {"model": str(model), "threads": threads}
        content |= figures.to_json(opened.arena_bytes)
        write_files({json_file: json.dumps(content, indent=1).encode()})
    print(f"{model.name}: {figures.describe(opened.arena_bytes)}")
