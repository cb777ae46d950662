"""`braid bench`: latency and memory of a model on random inputs."""

from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
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
KernelsOption = Annotated[
    bool,
    typer.Option("--by-kernel", help="Show the slowest kernels, and the time between kernels."),
]
TraceEventsOption = Annotated[
    Path | None,
    typer.Option(
        "--trace",
        metavar="FILE",
        help="Write what a run (with --stream, a stream) did when, for Perfetto and Chrome.",
    ),
]


@grouped
def bench(
    model: ModelArgument,
    options: Annotated[
        CompileOptions,
        only(
            *(
                "threads",
                "shapes",
                "dims",
                "constants",
                "state",
                "target",
                "gpu_arch",
                "jobs",
                "emulate",
            ),
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
    kernels: KernelsOption = False,
    trace: TraceEventsOption = None,
) -> Answer:
    """Measure the latency and the memory of a model.

    Inputs that are not given are random. Shown are the median and p90 latency, the size of the
    arena, and by how much the resident memory grew. Growth of memory besides the arena, the outputs
    and pages of files (weights that are read for the first time) is shown as "anything else". With
    --stream, N requests run as a stream too: it shows requests per second and, for each stage, its
    runs, their measured and expected time, and the fraction of time in which it was busy. With
    --by-kernel, the model is compiled with counters, and the ten kernels that take most are shown:
    their times and what is between kernels add up to that of a run. A run of a model with a state
    (--state, or that with which it was compiled) is a step: one new element is appended to a state
    of 1,024, or of the sizes of --at. Requests of a stream are steps that go on from each other.
    """
    import numpy as np

    from braid.tools.commands.arrays import read_inputs
    from braid.tools.commands.measuring import measure_runs
    from braid.tools.commands.models import open_model, step_inputs
    from braid.tools.commands.observing import trace_events
    from braid.tools.commands.recording import kernel_rows, profile_of, record_runs, table_of
    from braid.tools.commands.steps import runs_of, session_of
    from braid.tools.commands.streaming import measure_stream
    from braid.tools.terminal.outputs import check_outputs, write_files
    from braid.tools.terminal.tables import print_table

    check_outputs(trace, model=model)
    given, sizes = read_inputs(inputs), parse_at(at)
    opened = open_model(model, replace(options, cache=False, profile=kernels), interpret=interpret)
    session = session_of(opened, options.state)
    inputs_of_runs = step_inputs(model, options, opened, session, given, sizes)
    values = inputs_of_runs.values(seed)
    own = runs_of(opened, inputs_of_runs, session, values, runs + warmup if stream else 0)
    figures = measure_runs(own.run, runs, warmup, own.begin)
    own.begin()
    streamed = partial(measure_stream, own.streamed, own.requests(), runs)
    flow = streamed(warmup) if stream else None
    profile = None
    if kernels:
        shapes = {name: np.shape(value) for name, value in values.items()}
        found = record_runs(opened, own.run, runs, 0, own.begin)
        profile = profile_of(model, shapes, found)
    if trace is not None:
        own.begin()
        watched = partial(streamed, 0) if stream else own.run
        write_files({trace: trace_events(opened, watched)})
    data = {"model": str(model), "threads": options.threads}
    data |= figures.to_json(opened.arena_bytes)
    data |= {} if flow is None else {"stream": asdict(flow)}
    data["trace"] = None if trace is None else str(trace)
    data |= {} if profile is None else {"kernels": kernel_rows(profile)}
    lines = [f"{model.name}: {figures.describe(opened.arena_bytes)}"]
    lines += [] if flow is None else [flow.describe()]

    def show() -> None:
        print("\n".join(lines))
        if profile is not None:
            print_table(table_of(profile))

    return Answer(data, show)
