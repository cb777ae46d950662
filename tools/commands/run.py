"""`braid run`: one run of a model on given or random inputs."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from braid.tools.commands.options import (
    InputOption,
    InterpretOption,
    JobsOption,
    ModelArgument,
    OptionalTargetOption,
    RandomOption,
    SeedOption,
    ShapeOption,
    ThreadsOption,
    parse_shapes,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from braid.runtime.native import ProfileEntry


def run(
    model: ModelArgument,
    inputs: InputOption = None,
    output_dir: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write each output to DIR/NAME.npy.")
    ] = None,
    random: RandomOption = False,
    seed: SeedOption = 0,
    interpret: InterpretOption = False,
    shape: ShapeOption = None,
    threads: ThreadsOption = 1,
    target: OptionalTargetOption = None,
    jobs: JobsOption = None,
    profile: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write to FILE how often each op ran and for how long, as JSON."
        ),
    ] = None,
    emulate: Annotated[
        bool, typer.Option("--emulate", help="Run what is for missing devices on the host.")
    ] = False,
) -> None:
    """Run a model once and show its outputs."""
    from braid.tools.commands.arrays import (
        npy_files,
        random_inputs,
        read_inputs,
        sized_inputs,
    )
    from braid.tools.commands.models import open_model
    from braid.tools.outputs import (
        check_directory,
        check_outputs,
        make_directory,
        write_files,
    )

    check_outputs(profile)
    if output_dir is not None:
        check_directory(output_dir)
    given = read_inputs(inputs)
    opened = open_model(
        model,
        interpret=interpret,
        threads=threads,
        shapes=shape,
        target=target,
        jobs=jobs,
        profile=profile is not None,
        emulate=emulate,
    )
    specs = sized_inputs(opened.inputs, parse_shapes(shape))
    values = random_inputs(specs, seed, given) if random else given
    outputs = opened.run_named(values)
    files: dict[Path, bytes | memoryview] = {}
    if profile is not None:
        files[profile] = _profile_json(model, opened.profile())
    if output_dir is not None:
        files.update(npy_files(output_dir, outputs))
        make_directory(output_dir)
    write_files(files)
    _show(outputs)
    for device, seconds in opened.device_seconds().items():
        print(f"{device} takes {1e6 * seconds:.3f} us, simulated")


def _profile_json(model: Path, entries: "Mapping[str, ProfileEntry]") -> bytes:
    from braid.support.errors import BraidError

    if not entries:
        raise BraidError(
            f"'{model}' has no profile counters",
            hint="braid compile --profile adds them; the interpreter has none",
        )
    ops = {name: {"count": e.count, "seconds": e.seconds} for name, e in entries.items()}
    return json.dumps({"model": str(model), "ops": ops}, indent=1).encode()


def _show(outputs: "Mapping[str, NDArray[Any]]") -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("output", "dtype", "shape", "min", "mean", "max")
    for name, array in outputs.items():
        numbers = array.astype("float64")
        values = (numbers.min(), numbers.mean(), numbers.max()) if array.size else ()
        summary = [f"{value:.6g}" for value in values] or ["-"] * 3
        table.add_row(name, array.dtype.name, str(list(array.shape)), *summary)
    Console().print(table)
