"""`braid profile`: what to do with profiles."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from braid.driver.options import CompileOptions
from braid.tools.commands.bench import RunsOption, TraceEventsOption, WarmupOption
from braid.tools.commands.option_groups import grouped, only
from braid.tools.commands.options import AtOption, InputOption, ModelArgument, SeedOption
from braid.tools.terminal.answer import Answer
from braid.tools.terminal.command_group import CommandGroup
from braid.tools.terminal.option_values import parse_at

profile = CommandGroup(name="profile", help="Record and merge profiles.")


@profile.command()
@grouped
def record(
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
            *("numerics", "precision", "cache"),
        ),
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="Where to write the profile.")
    ],
    trace: TraceEventsOption = None,
    runs: RunsOption = 20,
    warmup: WarmupOption = 3,
    inputs: InputOption = None,
    at: AtOption = None,
    seed: SeedOption = 0,
) -> Answer:
    """Run a model, and write what each kernel took.

    Inputs that are not given are random. The file has the number of runs of each kernel, its total
    time, and the quartiles over the runs. It has the same for the whole model, by the clock, which
    includes the time between kernels. Later runs are observed: the file has the times and threads
    of the kernels of one of them, and hardware counters if this machine permits it. --use-profile
    of braid compile and braid explain takes the file. A run of a model with a state is a step, as
    in braid bench.
    """
    import numpy as np

    from braid.tools.commands.arrays import read_inputs
    from braid.tools.commands.models import open_model, step_inputs
    from braid.tools.commands.observing import observe, trace_events
    from braid.tools.commands.recording import lines_of, profile_of, record_runs, table_of
    from braid.tools.commands.steps import runs_of, session_of
    from braid.tools.terminal.outputs import check_outputs, write_files
    from braid.tools.terminal.tables import print_table

    check_outputs(output, trace, model=model)
    given, sizes = read_inputs(inputs), parse_at(at)
    opened = open_model(model, replace(options, profile=True), interpret=False)
    session = session_of(opened, options.state)
    inputs_of_runs = step_inputs(model, options, opened, session, given, sizes)
    values = inputs_of_runs.values(seed)
    own = runs_of(opened, inputs_of_runs, session, values)
    found = record_runs(opened, own.run, runs, warmup, own.begin)
    made = profile_of(model, {name: np.shape(value) for name, value in values.items()}, found)
    assert made.runs is not None
    measured = made.runs
    counted = [replace(each, count=int(measured.count)) for each in opened.profiled_sizes()]
    made = replace(made, sizes=counted)  # every run had the sizes of the last one
    made = observe(opened, own.run, own.begin).added_to(made)
    files = {output: made.to_bytes()}
    if trace is not None:
        own.begin()
        files[trace] = trace_events(opened, own.run)
    write_files(files)
    data = {
        "model": str(model),
        "output": str(output),
        "runs": int(measured.count),
        "seconds": measured.seconds,
        "ops": len(made.ops),
        "left_out": runs - int(measured.count),
        "trace": None if trace is None else str(trace),
        "missing_counters": dict(made.counted.missing),
    }

    def show() -> None:
        print_table(table_of(made))
        if data["left_out"]:
            print(f"{data['left_out']} of {runs} runs are left out: something disturbed them")
        for line in lines_of(made):
            print(line)

    return Answer(data, show)


@profile.command()
def merge(
    profiles: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Files of braid run --profile.")
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="Where to write the sum.")
    ],
) -> Answer:
    """Merge several profiles into one.

    Counts and seconds of an op add up. Profiles of runs on other shapes, or of a model that was
    compiled in another way, are refused.
    """
    from braid.analysis.profile.profile_file import merge_records
    from braid.tools.terminal.outputs import check_outputs, write_files

    check_outputs(output)
    merged = merge_records(profiles)
    write_files({output: merged.to_bytes()})
    data = {"output": str(output), "profiles": len(profiles), "ops": len(merged.ops)}
    return Answer(data, lambda: print(f"{len(profiles)} profiles, {len(merged.ops)} ops"))
