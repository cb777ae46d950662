"""Opening the model that a command was given, whatever kind of file it is."""

from pathlib import Path

from braid.model import Model, load
from braid.support.errors import BraidError
from braid.support.input_files import open_regular
from braid.targets.simulator.stream_bytes import MAGIC
from braid.tools.commands.diagnostics import compiling
from braid.tools.commands.options import ARTIFACT_SUFFIX, parse_shapes


def open_model(
    path: Path,
    *,
    interpret: bool,
    threads: int,
    shapes: list[str] | None = None,
    target: str | None = None,
    jobs: int | None = None,
    profile: bool = False,
    emulate: bool = False,
) -> Model:
    """Load an artifact, or compile (or, with `interpret`, only read) a source model.

    `shapes` fixes open dims of a source model; those of an artifact stay open. `target` is what a
    source model is compiled for, by default the host.

    Raises:
        BraidError: what reading or compiling finds wrong, or options that do not fit the file.

    """
    _refuse_stream(path)
    if path.suffix.lower() == ARTIFACT_SUFFIX:
        if interpret:
            raise BraidError(
                f"'{path}' is compiled code, which cannot be interpreted",
                hint="give the .onnx or .mlir file that it was compiled from",
            )
        if target is not None:
            _check_target(path, target)
        return load(path, threads=threads, emulate=emulate)
    fixed = parse_shapes(shapes)
    if interpret:
        from braid.interpreted import interpret as interpret_model

        return interpret_model(path, shapes=fixed)
    from braid.compiler import compile

    with compiling(path):
        return compile(
            path,
            target=target,
            threads=threads,
            shapes=fixed,
            jobs=jobs,
            profile=profile,
            emulate=emulate,
        )


def _check_target(path: Path, target: str) -> None:
    """Raises BraidError for an artifact that was compiled for another target."""
    from braid.runtime.artifact import read_artifact
    from braid.targets.machines.load import load_target

    actual, asked = read_artifact(path).manifest.target, load_target(target).name
    if actual != asked:
        raise BraidError(
            f"'{path}' is compiled for target '{actual}', not for '{asked}'",
            hint=f"leave --target out, or compile the model again with --target {target}",
        )


def _refuse_stream(path: Path) -> None:
    """Raises BraidError for an instruction stream, which no processor here executes."""
    try:
        with open_regular(path) as file:
            is_stream = file.read(len(MAGIC)) == MAGIC
    except OSError:
        return  # Whoever reads it says what is wrong.
    if is_stream:
        raise BraidError(
            f"'{path}' is an instruction stream, which only a chip can run",
            hint=f"braid simulate {path} says how long a chip takes for it",
        )
