"""Opening the model that a command was given, whatever kind of file it is."""

from functools import partial
from pathlib import Path

from braid.driver.compile import compile_or_load
from braid.driver.options import CompileOptions
from braid.runtime.model import Model, load
from braid.support.diagnostics import handle_diagnostics
from braid.support.errors import BraidError
from braid.support.input_files import open_regular
from braid.targets.simulator.stream_bytes import MAGIC
from braid.tools.commands.diagnostics import compiling, show_diagnostic
from braid.tools.commands.options import ARTIFACT_SUFFIX, parse_shapes
from braid.tools.commands.result_options import ResultOptions, refuse_option

_AS_EVER = ResultOptions()


def open_model(
    path: Path,
    *,
    interpret: bool,
    threads: int,
    shapes: list[str] | None = None,
    target: str | None = None,
    gpu_arch: str | None = None,
    jobs: int | None = None,
    profile: bool = False,
    emulate: bool = False,
    cache: bool = False,
    results: ResultOptions = _AS_EVER,
) -> Model:
    """Load an artifact, or compile (or, with `interpret`, only read) a source model.

    `shapes` fixes open dims of a source model; those of an artifact stay open. `target` is what a
    source model is compiled for, by default the host, and `gpu_arch` the architecture of its GPUs,
    by default what it says. With `cache`, a source model that was
    compiled before is loaded, without the compiler, and one that was not is kept. `results` say
    what may be done to these.

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
        results.refuse(f"'{path}' is compiled")
        refuse_option("--gpu-arch", gpu_arch, f"'{path}' is compiled")
        if target is not None:
            _check_target(path, target)
        return load(path, threads=threads, emulate=emulate)
    fixed = parse_shapes(shapes)
    if interpret:
        results.refuse("--interpret compiles nothing")
        refuse_option("--gpu-arch", gpu_arch, "--interpret compiles nothing")
        from braid.interpreted import interpret as interpret_model

        return interpret_model(path, shapes=fixed)
    options = CompileOptions(
        target=target,
        gpu_arch=gpu_arch,
        threads=threads,
        shapes=fixed,
        jobs=jobs,
        profile=profile,
        emulate=emulate,
        numerics=results.numerics,
        precision=results.precision,
    )
    return compile_model(path, options, cache=cache)


def compile_model(path: Path, options: CompileOptions, *, cache: bool) -> Model:
    """Compile a source model, and show that; with `cache`, load one that was compiled before.

    Raises:
        BraidError: what reading or compiling finds wrong.

    """
    with handle_diagnostics(show_diagnostic):
        return compile_or_load(path, options, cache=cache, around=partial(compiling, path))


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
