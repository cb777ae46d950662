"""`braid bench`: latency and memory of a model on random inputs."""

from dataclasses import asdict, replace
from typing import Annotated

import typer

from braid.driver.options import CompileOptions
from braid.tools.commands.option_groups import grouped, only
from braid.tools.commands.options import (
    AtOption,
    InputOption,
    InterpretOption,
    ModelArgument,
    SeedOption,
)
from braid.tools.terminal.answer import Answer
from braid.tools.terminal.option_values import parse_at

RunsOption = Annotated[int, typer.Option(metavar="N", min=1, help="Runs that are measured.")]
WarmupOption = Annotated[int, typer.Option(metavar="N", min=0, help="Runs before these.")]
StreamOption = Annotated[
    bool, typer.Option("--stream", help="Measure requests that follow each other, too.")
]


@grouped
def bench(
    model: ModelArgument,
    options: Annotated[
        CompileOptions,
        only(
            *("threads", "shapes", "dims", "constants", "target", "gpu_arch", "jobs", "emulate"),
            *("numerics", "precision"),
        ),
    ],
    runs: RunsOption = 50,
    warmup: WarmupOption = 5,
    inputs: InputOption = None,
    at: AtOption = None,
    seed: SeedOption = 0,
    interpret: InterpretOption = False,
    stream: StreamOption = False,
) -> Answer:
    """Measure the latency and the memory of a model.

    Inputs that are not given are random. Shown are the median and p90 latency, the size of the
    arena, and by how much the resident memory grew. What grows beside the arena, the outputs and
    pages of files (weights that are read for the first time) is shown as "anything else". With
    --stream, N requests run as a stream too: shown are requests per second, and for each stage how
    often it ran, how long that took, what was expected, and which part of the time it was busy.
    """
    from braid.runtime.binding import bind_inputs
    from braid.tools.commands.arrays import random_inputs, read_inputs, sized_inputs
    from braid.tools.commands.measuring import measure_runs
    from braid.tools.commands.models import likely_values, open_dims, open_model, ranges_of_inputs
    from braid.tools.commands.streaming import measure_stream

    given, sizes = read_inputs(inputs), parse_at(at)
    opened = open_model(model, replace(options, cache=False), interpret=interpret)
    specs = sized_inputs(opened.inputs, options.shapes or {}, open_dims(model, options), sizes)
    left = [spec for spec in specs if spec.name not in given]
    ranges = ranges_of_inputs(model, options, left)
    likely = {**likely_values(model, options, left), **sizes}
    arrays = bind_inputs(specs, (), random_inputs(specs, seed, given, ranges, likely))
    figures = measure_runs(lambda: opened.run_numbers(arrays), runs, warmup)
    flow = measure_stream(opened, arrays, runs, warmup) if stream else None
    data = {"model": str(model), "threads": options.threads}
    data |= figures.to_json(opened.arena_bytes)
    data |= {} if flow is None else {"stream": asdict(flow)}
    lines = [f"{model.name}: {figures.describe(opened.arena_bytes)}"]
    lines += [] if flow is None else [flow.describe()]
    return Answer(data, lambda: print("\n".join(lines)))
