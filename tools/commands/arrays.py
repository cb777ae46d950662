"""Inputs and outputs of a run: `.npy` files and random values."""

import io
import math
import os
import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from braid.runtime.buffers import describe_shape
from braid.runtime.dtypes import numpy_dtype
from braid.runtime.manifest import UNBOUNDED, TensorSpec
from braid.support.errors import BraidError
from braid.support.input_files import open_regular
from braid.support.likely_sizes import likely_size
from braid.support.option_names import option_text
from braid.support.sizes.checks import NO_CHECKS, SizeChecks
from braid.tools.terminal.option_values import parse_constants, split_pair

Array = NDArray[Any]
Shapes = Mapping[str, Sequence[int]]
_ZIP = b"PK\x03\x04"
_LARGEST_RANDOM_INTEGER = 7
_MASK = re.compile(r"mask[\W\d_]*$", re.IGNORECASE)
Range = tuple[float, float]
"""The least and the largest number."""
NO_RANGES: Mapping[str, Range] = MappingProxyType({})


def read_inputs(texts: Sequence[str] | None) -> dict[str, Array]:
    """Read the values of `--input`, by the name of the input.

    Raises:
        BraidError: a malformed value, a name given twice, or a file that is not a `.npy` file.

    """
    inputs: dict[str, Array] = {}
    for text in texts or ():
        name, file = split_pair("inputs", text)
        if name in inputs:
            raise BraidError(
                f"{option_text('inputs')} is given twice for '{name}'", hint="omit one of them"
            )
        inputs[name] = read_npy(Path(file))
    return inputs


def read_constants(texts: Sequence[str] | None) -> dict[str, object]:
    """Read the values of `--constant`: numbers, lists of them as in JSON, or a `.npy` file.

    Raises:
        BraidError: one is not `name=value`, an input comes twice, or a file cannot be read.

    """
    return parse_constants(texts, read_npy)


def read_npy(path: Path) -> Array:
    """Read one array.

    Raises:
        BraidError: there is no such file, or it is not a `.npy` file or truncated.

    """
    try:
        with open_regular(path) as file:
            if file.read(len(_ZIP)) == _ZIP:
                raise BraidError(f"'{path}' holds several arrays, expected a .npy file with one")
            file.seek(0)
            _check_length(file)
            return np.lib.format.read_array(file, allow_pickle=False)
    except OSError as error:
        raise BraidError(f"cannot read '{path}': {error.strerror or error}") from error
    except (ValueError, EOFError, ArithmeticError, RecursionError, MemoryError) as error:
        raise BraidError(
            f"'{path}' is not a .npy file: {error}", hint="write it with numpy.save"
        ) from error


def _check_length(file: IO[bytes]) -> None:
    """Raise ValueError for a file that is too short for its array, before memory is allocated."""
    version = np.lib.format.read_magic(file)
    read = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    if version in read:  # later versions are for names of fields, which no tensor has
        shape, _, dtype = read[version](file)
        needed, there = math.prod(shape) * dtype.itemsize, os.fstat(file.fileno()).st_size
        if min(shape, default=0) < 0 or needed > there:
            raise ValueError(f"shape {shape} takes {needed} bytes, the file has {there}")
    file.seek(0)


def sized_inputs(
    specs: Sequence[TensorSpec],
    shapes: Shapes,
    dims: Mapping[str, int | str],
    at: Mapping[str, int],
) -> list[TensorSpec]:
    """Return the inputs with the sizes of `--shape`, `--dim` and `--at` for their open dims.

    Dims of which no size is asked for stay open.

    Raises:
        BraidError: an unknown input or dim, two sizes of a dim, or a shape that an input cannot
            have.

    """
    known = {name for spec in specs for name in (*spec.dims, *spec.values) if name}
    for option, sizes in (("--dim", dims), ("--at", at)):
        for name, size in sizes.items():
            if name not in known or not isinstance(size, int):
                listed = ", ".join(f"'{dim}'" for dim in sorted(known)) or "none"
                raise BraidError(
                    f"{option} {name}={size} names no open dim of the model",
                    hint=f"its open dims are {listed}",
                )
            if dims.get(name, size) != size:
                raise BraidError(
                    f"dim '{name}' is {dims[name]} by --dim, and {size} by --at",
                    hint="leave one of them out",
                )
    dims = {**dims, **at}
    names = [spec.name for spec in specs]
    for name in shapes:
        if name not in names:
            raise BraidError(
                f"the model has no input '{name}'", hint=f"the inputs are {', '.join(names)}"
            )
    return [_sized(spec, _shape(spec, shapes, dims)) for spec in specs]


def _shape(spec: TensorSpec, shapes: Shapes, dims: Mapping[str, int | str]) -> tuple[int, ...]:
    """Return the shape that is asked for, else the bound; raise BraidError for two sizes."""
    names = spec.dims or ("",) * len(spec.bound)
    sizes = [dims.get(name, bound) for name, bound in zip(names, spec.bound, strict=True)]
    given = tuple(shapes.get(spec.name, [int(size) for size in sizes]))
    for name, size in zip(names, given, strict=False):
        if dims.get(name, size) != size:
            raise BraidError(
                f"--shape for '{spec.name}' is {list(given)}, but dim '{name}' is given as "
                f"{dims[name]}",
                hint="leave one of them out",
            )
    return given


def _sized(spec: TensorSpec, shape: tuple[int, ...]) -> TensorSpec:
    if len(shape) != len(spec.shape) or any(
        size != wanted and (wanted >= 0 or size > bound)
        for size, wanted, bound in zip(shape, spec.shape, spec.bound, strict=True)
    ):
        raise BraidError(
            f"input '{spec.name}' cannot have shape {list(shape)}: the model takes "
            f"[{describe_shape(spec)}]",
            hint="code for some shapes does not run with others",
        )
    return replace(
        spec, shape=tuple(-1 if size == UNBOUNDED else size for size in shape), bound=shape
    )


def all_given(
    specs: Sequence[TensorSpec], given: Mapping[str, Array], optional: Container[str]
) -> Mapping[str, Array]:
    """Return `given`.

    Raises BraidError where an input that is not `optional` has no value, and all names are known.
    """
    names = [spec.name for spec in specs]
    missing = [name for name in names if name not in given and name not in optional]
    if missing and set(given) <= set(names):
        raise BraidError(
            f"no value for {'input' if len(missing) == 1 else 'inputs'} "
            + ", ".join(f"'{name}'" for name in missing),
            hint=f"--input {missing[0]}=FILE gives one, --random takes random ones",
        )
    return given


def random_inputs(
    specs: Sequence[TensorSpec],
    seed: int,
    given: Mapping[str, Array] | None = None,
    ranges: Mapping[str, Range] = NO_RANGES,
    likely: Mapping[str, int] | None = None,
    checks: SizeChecks = NO_CHECKS,
) -> dict[str, Array]:
    """Return `given` with random values for the inputs that it lacks.

    Floats are normally distributed, booleans are even odds. Integers are eight numbers from 0 on
    (so that they are valid trip counts), or those of `ranges` that are next to these: what they
    look up is then there. Masks of integers, by their names, are ones. The same seed gives the same
    values. Open dims, and elements that are sizes, are as `likely_sizes` says.
    """
    given = given or {}
    sizes = likely_sizes(specs, given, likely or {}, checks)
    sized = [_at_sizes(spec, given, sizes) for spec in specs]
    generator = np.random.default_rng(seed)
    values = {spec.name: random_array(spec, generator, ranges.get(spec.name)) for spec in sized}
    for spec in specs:
        for number, name in enumerate(spec.values):
            if name in (likely or {}):
                values[spec.name].reshape(-1)[number] = sizes[name]
    return values | dict(given)


def likely_sizes(
    specs: Sequence[TensorSpec],
    given: Mapping[str, Array],
    likely: Mapping[str, int],
    checks: SizeChecks = NO_CHECKS,
) -> dict[str, int]:
    """Return the sizes of all open dims by name, at which the `checks` hold if such are found.

    Inputs in `given` keep their sizes, and bounds are taken. Other dims have the sizes in `likely`,
    by name. By default the first of two or more dims is a batch of 1, the last two of four dims are
    image sides of 224, and other dims are sequences of 128. If the checks do not hold there, the
    defaults change first.
    """
    known: dict[str, int] = {}
    guess: dict[str, int] = {}
    for spec in specs:
        own = given[spec.name].shape if spec.name in given else spec.bound
        names = _dim_names(spec)
        known |= {n: size for n, size in zip(names, own, strict=False) if size < UNBOUNDED}
        guess |= {n: likely_size(dim, len(names)) for dim, n in enumerate(names) if n not in guess}
    guess |= {**likely, **known}
    needed = checks.among(guess)
    for fixed in ({*likely, *known}, known):
        solved = needed.solved(guess, fixed)
        if solved is not None:
            return dict(solved)
    return guess  # the run says which check fails


def _at_sizes(spec: TensorSpec, given: Mapping[str, Array], sizes: Mapping[str, int]) -> TensorSpec:
    if spec.name in given:
        return replace(spec, bound=given[spec.name].shape)
    pairs = zip(spec.bound, _dim_names(spec), strict=True)
    shape = tuple(bound if bound < UNBOUNDED else sizes[name] for bound, name in pairs)
    return replace(spec, bound=shape)


def is_mask(spec: TensorSpec) -> bool:
    """Return whether an input says by its name that it is a mask, of integers."""
    return np.issubdtype(numpy_dtype(spec.dtype), np.integer) and bool(_MASK.search(spec.name))


def _dim_names(spec: TensorSpec) -> list[str]:
    names = spec.dims or ("",) * len(spec.bound)
    return [name or f"{spec.name}[{dim}]" for dim, name in enumerate(names)]


def random_array(
    spec: TensorSpec, generator: np.random.Generator, within: Range | None = None
) -> Array:
    """Return a random value for an input; see `random_inputs`.

    Raises BraidError if there is not enough memory for it.
    """
    dtype = numpy_dtype(spec.dtype)
    try:
        if is_mask(spec):
            return np.ones(spec.bound, dtype)
        return _random_array(spec.bound, dtype, generator, within)
    except (MemoryError, ValueError) as error:  # numpy raises the latter for what no memory holds
        raise BraidError(
            f"input '{spec.name}' of shape {list(spec.bound)} does not fit in memory",
            hint="give smaller sizes of open dims, --dim NAME=SIZE or --shape, or export the model "
            "with smaller ones",
        ) from error


def _random_array(
    shape: Sequence[int], dtype: np.dtype[Any], generator: np.random.Generator, within: Range | None
) -> Array:
    if dtype == np.bool_:
        return np.asarray(generator.integers(0, 2, shape), dtype)
    if np.issubdtype(dtype, np.integer):
        least, most = (-math.inf, math.inf) if within is None else within
        first = min(max(0, least), most)
        last = max(min(first + _LARGEST_RANDOM_INTEGER, most), first)
        return np.asarray(generator.integers(int(first), int(last) + 1, shape), dtype)
    return np.asarray(generator.standard_normal(shape), dtype)


def npy_files(directory: Path, outputs: Mapping[str, Array]) -> dict[Path, memoryview]:
    """Return the contents of one `.npy` file for each output, named after it.

    Raises:
        BraidError: two outputs have one name there.

    """
    files: dict[Path, memoryview] = {}
    for name, array in outputs.items():
        path = directory / f"{file_stem(name)}.npy"
        if path in files:
            raise BraidError(
                f"two outputs would be written to '{path}', '{name}' and one of a similar name",
                hint="use braid.load or braid.compile in Python, which gives both",
            )
        data = io.BytesIO()
        np.save(data, _portable(array), allow_pickle=False)
        files[path] = data.getbuffer()
    return files


def file_stem(name: str) -> str:
    """Return a name that is safe in a file system: other characters become `_`."""
    return re.sub(r"[^\w.\-]", "_", name).lstrip(".") or "_"


def _portable(array: Array) -> Array:
    """Return bfloat16 as float32, since `.npy` files know numpy's own types only."""
    return array.astype(np.float32) if array.dtype == ml_dtypes.bfloat16 else array
