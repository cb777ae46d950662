"""Opening the model that a command was given, whatever kind of file it is."""

from pathlib import Path

from braid.errors import BraidError
from braid.model import Model, load
from braid.tools.commands.diagnostics import compiling
from braid.tools.commands.options import ARTIFACT_SUFFIX, parse_shapes


def open_model(
    path: Path,
    *,
    interpret: bool,
    threads: int,
    shapes: list[str] | None = None,
    target: str = "host",
    jobs: int | None = None,
    profile: bool = False,
) -> Model:
    """Load an artifact, or compile (or, with `interpret`, only read) a source model.

    `shapes` fixes open dims of a source model; those of an artifact stay open.

    Raises:
        BraidError: what reading or compiling finds wrong, or options that do not fit the file.

    """
    if path.suffix == ARTIFACT_SUFFIX:
        if interpret:
            raise BraidError(
                f"'{path}' is compiled code, which cannot be interpreted",
                hint="give the .onnx or .mlir file that it was compiled from",
            )
        return load(path, threads=threads)
    fixed = parse_shapes(shapes)
    if interpret:
        from braid.interpreted import interpret as interpret_model

        return interpret_model(path, shapes=fixed)
    from braid.compiler import compile

    with compiling(path):
        return compile(
            path, target=target, threads=threads, shapes=fixed, jobs=jobs, profile=profile
        )
