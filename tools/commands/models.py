"""Opening the model that a command was given, whatever kind of file it is."""

import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from braid.driver.compile import compile_or_load
from braid.driver.options import CompileOptions
from braid.runtime.dtypes import numpy_dtype
from braid.runtime.manifest import TensorSpec
from braid.runtime.model import Model, load
from braid.runtime.state_session import StateSession
from braid.support.errors import BraidError
from braid.support.input_files import open_regular
from braid.support.sizes.checks import NO_CHECKS, SizeChecks
from braid.support.sizes.reading import parse_size
from braid.targets.simulator.stream_bytes import MAGIC
from braid.tools.commands.arrays import sized_inputs
from braid.tools.commands.diagnostics import compiling
from braid.tools.commands.options import ARTIFACT_SUFFIX
from braid.tools.commands.step_inputs import StepInputs

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

_OF_COMPILATIONS = ("gpu_arch", "numerics", "precision")
"""Options about parts of the model that are not compiled."""


def open_model(path: Path, options: CompileOptions, *, interpret: bool) -> Model:
    """Load an artifact, or compile (or, with `interpret`, only read) a source model.

    The shapes of `options` fix open dims of a source model; those of an artifact stay open.

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
        refuse_options(options, f"'{path}' is compiled")
        if options.constants:
            raise BraidError(
                f"--constant is for what is compiled, and '{path}' is compiled",
                hint="give the values as inputs, with --input",
            )
        if options.target is not None:
            _check_target(path, os.fspath(options.target))
        return load(path, threads=options.threads, emulate=options.emulate)
    if interpret:
        refuse_options(options, "--interpret compiles nothing")
        from braid.interpreted import interpret as interpret_model

        return interpret_model(
            path, shapes=options.shapes, dims=options.dims, constants=options.constants
        )
    return compile_model(path, options)


def open_dims(path: Path, options: CompileOptions) -> Mapping[str, int | str]:
    """Return the sizes of dims that are fixed in the artifact; those of a source model are
    options."""
    return (options.dims or {}) if path.suffix.lower() == ARTIFACT_SUFFIX else {}


def input_ranges(module: "ModuleOp") -> dict[str, tuple[float, float]]:
    """Return which integers the inputs of a model may be, by name."""
    from braid.analysis.structure.index_ranges import index_ranges
    from braid.dialects.braid.ports import input_names
    from braid.dialects.braid.variants import public_functions

    return {
        name: (found.least, found.most)
        for function in public_functions(module)[:1]
        for name, found in zip(input_names(function), index_ranges(function), strict=True)
    }


def ranges_of_inputs(
    path: Path, options: CompileOptions, specs: Sequence[TensorSpec]
) -> dict[str, tuple[float, float]]:
    """Return the same of a model in a file; nothing is read of artifacts, nor without integers."""
    integers = any(np.issubdtype(numpy_dtype(spec.dtype), np.integer) for spec in specs)
    if path.suffix.lower() == ARTIFACT_SUFFIX or not integers:
        return {}
    from braid.driver.read_source import read_to_compile
    from braid.passes.infrastructure.context import make_context

    return input_ranges(read_to_compile(make_context(), path, options).module)


def likely_values(
    path: Path, options: CompileOptions, specs: Sequence[TensorSpec]
) -> dict[str, int]:
    """Return the likely sizes of a model in a file of which elements of inputs are sizes.

    Nothing is known of artifacts, and nothing needed where no input tells sizes.
    """
    if path.suffix.lower() == ARTIFACT_SUFFIX or not any(spec.values for spec in specs):
        return {}
    from braid.driver.read_source import read_to_compile
    from braid.driver.sources.decision_sizes import decision_sizes
    from braid.passes.infrastructure.context import make_context

    context = make_context()
    return decision_sizes(context, read_to_compile(context, path, options).module)


def step_inputs(
    path: Path,
    options: CompileOptions,
    opened: Model,
    session: StateSession | None,
    given: Mapping[str, NDArray[Any]],
    at: Mapping[str, int],
) -> StepInputs:
    """Return the inputs of runs of a model in a file, or of steps of a session of it, at the sizes
    that are asked for.

    Raises:
        BraidError: an unknown dim, or two sizes of one.

    """
    specs = sized_inputs(opened.inputs, options.shapes or {}, open_dims(path, options), at)
    left = [spec for spec in specs if spec.name not in given]
    ranges = ranges_of_inputs(path, options, left)
    checks = required_sizes(path, options, opened)
    state = () if session is None else session.outputs
    likely = {**likely_values(path, options, left), **at}
    return StepInputs(specs, state, checks, given, ranges, likely)


def required_sizes(path: Path, options: CompileOptions, opened: Model) -> SizeChecks:
    """Return what runs of a model in a file check of the sizes of its open dims.

    Compiled models say it; of others the file is read.

    Raises:
        BraidError: the artifact says sizes that there are not.

    """
    if opened.size_checks is not None:
        return SizeChecks.of((parse_size(own.size), own.is_zero) for own in opened.size_checks)
    if not any(any(spec.dims) for spec in opened.inputs):
        return NO_CHECKS
    from braid.driver.read_source import read_to_compile
    from braid.driver.sources import decision_sizes
    from braid.passes.infrastructure.context import make_context

    context = make_context()
    return decision_sizes.required_sizes(context, read_to_compile(context, path, options).module)


def refuse_options(options: CompileOptions, why: str) -> None:
    """Raise BraidError with the reason where an option of what is compiled is given."""
    for name in _OF_COMPILATIONS:
        if getattr(options, name) is not None:
            flag = name.replace("_", "-")
            raise BraidError(f"--{flag} is for what is compiled, and {why}")


def compile_model(path: Path, options: CompileOptions) -> Model:
    """Compile a source model, and show that, or load one that was compiled before.

    Raises:
        BraidError: what reading or compiling finds wrong.

    """
    return compile_or_load(path, options, around=partial(compiling, path))


def _check_target(path: Path, target: str) -> None:
    """Raise BraidError for an artifact that was compiled for another target."""
    from braid.runtime.artifact import read_artifact
    from braid.targets.machines.load import load_target

    actual, asked = read_artifact(path).manifest.target, load_target(target).name
    if actual != asked:
        raise BraidError(
            f"'{path}' is compiled for target '{actual}', not for '{asked}'",
            hint=f"leave --target out, or compile the model again with --target {target}",
        )


def _refuse_stream(path: Path) -> None:
    """Raise BraidError for an instruction stream, which no processor here executes."""
    try:
        with open_regular(path) as file:
            is_stream = file.read(len(MAGIC)) == MAGIC
    except OSError:
        return  # Its reader reports the error.
    if is_stream:
        raise BraidError(
            f"'{path}' is an instruction stream, which only a chip can run",
            hint=f"braid simulate {path} says how long a chip takes for it",
        )
