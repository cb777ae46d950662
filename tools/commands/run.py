"""`braid run`: one run of a model on given or random inputs."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from braid.driver.options import CompileOptions
from braid.tools.commands.option_groups import grouped, only
from braid.tools.commands.options import (
    AtOption,
    InputOption,
    InterpretOption,
    ModelArgument,
    RandomOption,
    SeedOption,
)
from braid.tools.terminal.answer import Answer
from braid.tools.terminal.option_values import parse_at

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from braid.runtime.model import Model
    from braid.runtime.profile_entries import ProfileEntry
    from braid.runtime.state_session import StateSession
    from braid.tools.commands.step_inputs import StepInputs


OutputDirOption = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Write each output to DIR/NAME.npy.")
]
ProfileFileOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Write to FILE how often each op ran and for how long, as JSON."
    ),
]
RunsOption = Annotated[
    int,
    typer.Option(
        metavar="N", min=1, help="Runs on the inputs; of several, one more warms up first."
    ),
]


TraceOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Write the waveforms of circuits that are simulated to FILE (VCD)."
    ),
]

TimeLimitOption = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS", min=0.001, help="End a run whose loops go on for longer, with an error."
    ),
]


@grouped
def run(
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
    inputs: InputOption = None,
    output_dir: OutputDirOption = None,
    random: RandomOption = False,
    at: AtOption = None,
    seed: SeedOption = 0,
    interpret: InterpretOption = False,
    profile: ProfileFileOption = None,
    runs: RunsOption = 1,
    trace: TraceOption = None,
    time_limit: TimeLimitOption = None,
) -> Answer:
    """Run a model and show its outputs.

    The artifact is cached, and loaded by the next run with the same options.

    A profile is of all runs but the one that warms up; waveforms are of the last one.

    Runs of a model with a state (--state, or that with which it was compiled) are steps of a
    session: each continues from the state of the previous one. The state begins empty where
    no --input gives it and --random is not given. Outputs are those of the last step, and the state
    after it.
    """
    from braid.runtime.interruption import limited_runs
    from braid.tools.commands.arrays import all_given, read_inputs
    from braid.tools.commands.models import open_model, step_inputs
    from braid.tools.commands.steps import session_of
    from braid.tools.terminal.outputs import check_directory, check_outputs

    check_outputs(profile, trace, model=model)
    if output_dir is not None:
        check_directory(output_dir)
    given, sizes = read_inputs(inputs), parse_at(at)
    options = replace(options, profile=profile is not None)
    opened = open_model(model, options, interpret=interpret)
    session = session_of(opened, options.state)
    source = step_inputs(model, options, opened, session, given, sizes)
    kept: Mapping[str, str] = {} if session is None else session.outputs
    if random:
        values = source.values(seed)
    else:
        values = all_given(source.specs, given, opened.drawn | kept.keys() | source.masks())
    if trace is not None:
        _trace_to(trace, opened)
    with limited_runs(time_limit):
        outputs = (
            _run(opened, values, runs)
            if session is None
            else _run_steps(opened, session, source, values, runs)
        )
    profiled = None if profile is None else _profile_json(model, values, opened)
    files = _write(outputs, output_dir, profile, profiled)
    return _answer(model, opened, outputs, files)


def _answer(
    model: Path, opened: "Model", outputs: "Mapping[str, NDArray[Any]]", files: Sequence[Path]
) -> Answer:
    summaries = [_summary(name, array) for name, array in outputs.items()]
    data = {
        "model": str(model),
        "outputs": summaries,
        "files": list(map(str, files)),
        "devices": _devices(opened),
    }

    def show() -> None:
        _show(summaries)
        _show_devices(opened)

    return Answer(data, show)


def _write(
    outputs: "Mapping[str, NDArray[Any]]",
    directory: Path | None,
    profile: Path | None,
    profiled: bytes | None,
) -> Sequence[Path]:
    """Write the outputs and the profile, as far as there are files for them: all or none.

    Returns the files.
    """
    from braid.tools.commands.arrays import npy_files
    from braid.tools.terminal.outputs import make_directory, write_files

    files: dict[Path, bytes | memoryview] = {}
    if profile is not None and profiled is not None:
        files[profile] = profiled
    if directory is not None:
        files.update(npy_files(directory, outputs))
        make_directory(directory)
    write_files(files)
    return list(files)


def _trace_to(path: Path, model: "Model") -> None:
    """Let circuits write waveforms. Raises BraidError if the model has none."""
    import os

    from braid.support.errors import BraidError

    devices = model.devices
    if "rtl" not in devices.values():
        named = ", ".join(devices) or "the CPU"
        raise BraidError(
            f"nothing of the model is a circuit that is simulated: it runs on {named}",
            hint="--target fpga-sim simulates circuits",
        )
    os.environ["BRAID_RTL_TRACE"] = str(path)


def _run(
    opened: "Model", values: "Mapping[str, NDArray[Any]]", runs: int
) -> "Mapping[str, NDArray[Any]]":
    """Return the outputs of the last of several runs; of more than one, one more warms up first.

    Text is represented by its numbers, which files hold.
    """
    from braid.runtime.binding import bind_inputs

    arrays = bind_inputs(opened.inputs, (), values, drawn=opened.drawn)
    if runs > 1:
        opened.run_numbers(arrays)
        opened.reset_profile()
    for _ in range(runs - 1):
        opened.run_numbers(arrays)
    names = (spec.name for spec in opened.outputs)
    return dict(zip(names, opened.run_numbers(arrays), strict=True))


def _run_steps(
    opened: "Model",
    session: "StateSession",
    source: "StepInputs",
    values: "Mapping[str, NDArray[Any]]",
    steps: int,
) -> "Mapping[str, NDArray[Any]]":
    """Return the outputs of the last of several steps; of more than one, one more warms up first.

    Each step has the same inputs, but for those that grow, and the state of the one before it,
    first what is given. Masks that are not given are ones.
    """
    kept = session.outputs
    session.reset({name: each for name, each in values.items() if name in kept})
    inputs = source.first(values, session.state)
    if steps > 1:
        session.fork()(inputs)
        opened.reset_profile()
    for _ in range(steps - 1):
        session(inputs)
        inputs = source.after(inputs, session.state)
    found = session.run_named(inputs)
    found |= {kept[name]: array for name, array in session.state.items()}
    return {spec.name: found[spec.name] for spec in opened.outputs}


def _profile_json(model: Path, inputs: "Mapping[str, NDArray[Any]]", opened: "Model") -> bytes:
    import numpy as np

    from braid.analysis.profile.profile_file import OpRecord, ProfileRecord
    from braid.support.errors import BraidError

    entries = opened.profile()
    if not entries:
        raise BraidError(
            f"'{model}' has no profile counters",
            hint="braid compile --profile adds counters; the interpreter has none",
        )

    def record(entry: "ProfileEntry") -> OpRecord:
        layouts = {choice: record(each) for choice, each in entry.layouts.items()}
        return OpRecord(entry.count, entry.seconds, layouts)

    ops = {name: record(entry) for name, entry in entries.items()}
    shapes = {name: np.shape(value) for name, value in inputs.items()}
    return ProfileRecord(str(model), shapes, ops, sizes=opened.profiled_sizes()).to_bytes()


def _devices(opened: "Model") -> "dict[str, dict[str, object]]":
    """Return what is known of each device without it: simulated time, rate and resources."""
    seconds, frames = opened.device_seconds(), opened.device_frames()
    resources = opened.device_resources()
    return {
        device: {
            "seconds": seconds.get(device),
            "frames_per_second": frames.get(device),
            "resources": {
                name: {"used": used, "available": given}
                for name, (used, given) in resources.get(device, {}).items()
            },
        }
        for device in {**seconds, **frames, **resources}
    }


def _show_devices(opened: "Model") -> None:
    """Print what devices take, as far as that is known without them."""
    for device, seconds in opened.device_seconds().items():
        print(f"{device} takes {1e6 * seconds:.3f} us, simulated")
    for device, frames in opened.device_frames().items():
        print(f"{device} takes {frames:,.0f} frames per second in a stream, at its clock")
    for device, resources in opened.device_resources().items():
        parts = [
            f"{used:,g} of {given:,g} {name} ({used / given:.1%})"
            for name, (used, given) in resources.items()
        ]
        print(f"{device}: {', '.join(parts)}, estimated")


def _summary(name: str, array: "NDArray[Any]") -> dict[str, Any]:
    """Return the summary of an output; statistics of an empty one are None."""
    numbers = array.astype("float64")
    values = (
        [float(v) for v in (numbers.min(), numbers.mean(), numbers.max())] if array.size else []
    )
    least, mean, most = values or [None] * 3
    shape = list(array.shape)
    return {
        "name": name,
        "dtype": array.dtype.name,
        "shape": shape,
        "min": least,
        "mean": mean,
        "max": most,
    }


def _show(outputs: Sequence[Mapping[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("output", "dtype", "shape", "min", "mean", "max")
    for each in outputs:
        values = (each[name] for name in ("min", "mean", "max"))
        numbers = ("-" if value is None else f"{value:.6g}" for value in values)
        table.add_row(each["name"], each["dtype"], str(each["shape"]), *numbers)
    Console().print(table)
