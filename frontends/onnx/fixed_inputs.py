"""Fix a caller's inputs of a model: shapes, sizes of open dims by name, values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from onnx import ValueInfoProto

from braid.dialects.braid.relayout import Array
from braid.frontends.onnx.model_file import DeclaredShape, ModelFile, declared_shape, tensor_type_of
from braid.support.errors import BraidError, UnsupportedError, did_you_mean
from braid.support.option_names import option_text


@dataclass(frozen=True)
class Fixed:
    """The fixed inputs: `shapes` by input, `dims` by the name of an open dim, values by input.

    A dim is fixed at a size, or at the name of another dim that it equals. Values are arrays, or
    numbers and nested lists of them, which take the element type of the input.
    """

    shapes: Mapping[str, Sequence[int]] = field(default_factory=dict[str, Sequence[int]])
    dims: Mapping[str, int | str] = field(default_factory=dict[str, int | str])
    constants: Mapping[str, object] = field(default_factory=dict[str, object])


NOTHING_FIXED = Fixed()


@dataclass(frozen=True)
class FixedInputs:
    """The inputs of a model that are left, with their shapes, and the values of the others.

    An open dim has the name of the dim that it equals; a shape is None if it is unknown.
    """

    declared: Mapping[str, ValueInfoProto]
    shapes: Mapping[str, DeclaredShape | None]
    constants: Mapping[str, Array]
    sizes: Mapping[str, int]
    """The sizes of dims that are fixed, by the names in the model."""
    outputs: Mapping[str, DeclaredShape | None]
    """The shapes that the model declares of its outputs, in the names and sizes of the inputs."""

    @property
    def open_dims(self) -> list[str]:
        """Return the names of the dims that are open, once each."""
        shapes = [shape for shape in self.shapes.values() if shape is not None]
        return list(dict.fromkeys(d for shape in shapes for d in shape if isinstance(d, str)))


def fix_inputs(file: ModelFile, fixed: Fixed) -> FixedInputs:
    """Return the inputs of a model with this fixed.

    Raises:
        BraidError: there is no such input or dim, a shape or value does not fit its input, or two
            sizes are given for one dim.

    """
    graph = file.proto.graph
    initialized = {tensor.name for tensor in graph.initializer}
    values = {v.name: v for v in graph.input if v.name not in initialized}
    _check_names(file, values, fixed)
    shapes = {name: _shape(value) for name, value in values.items()}
    names = _names(file, shapes, fixed.dims)
    shapes = {name: _renamed(shape, names) for name, shape in shapes.items()}
    constants = {
        name: constant_value(file, values[name], given) for name, given in fixed.constants.items()
    }
    sizes = _Sizes(file)
    for dim, size in fixed.dims.items():
        if not isinstance(size, str):
            sizes.give(names[dim], size)
    given = {**fixed.shapes, **{name: array.shape for name, array in constants.items()}}
    for name, shape in given.items():
        declared = shapes[name]
        if declared is not None:
            _check_shape(file, name, shape, declared, is_constant=name in constants)
            sizes.read(name, shape, declared)
    left = {
        name: tuple(given[name]) if name in given else sizes.applied(shape)
        for name, shape in shapes.items()
        if name not in constants
    }
    known = {dim: sizes.known[name] for dim, name in names.items() if name in sizes.known}
    outputs = {value.name: sizes.applied(_renamed(_shape(value), names)) for value in graph.output}
    return FixedInputs({name: values[name] for name in left}, left, constants, known, outputs)


class _Sizes:
    """Sizes of dims, and the inputs from which they come."""

    def __init__(self, file: ModelFile) -> None:
        self._file = file
        self.known: dict[str, int] = {}
        self._given: set[str] = set()

    def give(self, dim: str, size: int) -> None:
        if self.known.setdefault(dim, size) != size:
            raise BraidError(
                f"dim '{dim}' is given as {self.known[dim]} and as {size}",
                location=self._file.location,
            )
        self._given.add(dim)

    def read(self, name: str, shape: Sequence[int], declared: DeclaredShape) -> None:
        """Take the sizes of an input; given shapes may disagree about one name."""
        for dim, size in zip(declared, shape, strict=True):
            if isinstance(dim, str) and self.known.setdefault(dim, size) != size:
                if dim in self._given:
                    raise BraidError(
                        f"dim '{dim}' is given as {self.known[dim]}, but it is {size} in input "
                        f"'{name}'",
                        location=self._file.location,
                        hint=f"leave one out: {option_text('dims', {dim: self.known[dim]})}, or "
                        f"the shape or value of '{name}'",
                    )
                self.known[dim] = -1
        self.known = {dim: size for dim, size in self.known.items() if size >= 0}

    def applied(self, shape: DeclaredShape | None) -> DeclaredShape | None:
        if shape is None:
            return None
        return tuple(self.known.get(d, d) if isinstance(d, str) else d for d in shape)


def _check_names(file: ModelFile, values: Mapping[str, object], fixed: Fixed) -> None:
    for what, given in (("a shape", fixed.shapes), ("a value", fixed.constants)):
        for name in given:
            if name not in values:
                raise BraidError(
                    f"there is no input '{name}' to give {what} to",
                    location=file.location,
                    hint=did_you_mean(name, values) or f"the inputs are {', '.join(values)}",
                )
    if both := [name for name in fixed.shapes if name in fixed.constants]:
        raise BraidError(
            f"input '{both[0]}' is given both a shape and a value",
            location=file.location,
            hint="its value has a shape already",
        )


def _names(
    file: ModelFile, shapes: Mapping[str, DeclaredShape | None], dims: Mapping[str, int | str]
) -> dict[str, str]:
    """Return the dim to which each open dim of the model is equal, itself or another one."""
    known = list(
        dict.fromkeys(d for shape in shapes.values() for d in shape or () if isinstance(d, str))
    )
    for name in (*dims, *(other for other in dims.values() if isinstance(other, str))):
        if name not in known:
            similar = did_you_mean(name, known)
            listed = ", ".join(f"'{dim}'" for dim in known) or "none"
            raise BraidError(
                f"the model has no open dim '{name}'",
                location=file.location,
                hint=f"{similar + ' ' if similar else ''}its open dims are {listed}",
            )
    names: dict[str, str] = {}
    for dim in known:
        name, seen = dim, {dim}
        while isinstance(other := dims.get(name), str):
            if other in seen:
                raise BraidError(
                    f"dim '{dim}' is said to equal itself",
                    location=file.location,
                    hint="give one of the dims that are equal no name of another",
                )
            seen.add(other)
            name = other
        names[dim] = name
    return names


def _renamed(shape: DeclaredShape | None, names: Mapping[str, str]) -> DeclaredShape | None:
    if shape is None:
        return None
    return tuple(names.get(d, d) if isinstance(d, str) else d for d in shape)


def _shape(value: ValueInfoProto) -> DeclaredShape | None:
    """Return the declared shape of an input, which must be a tensor or an optional one."""
    has_shape = tensor_type_of(value).HasField("shape")
    return declared_shape(value) if has_shape else None


def _check_shape(
    file: ModelFile,
    name: str,
    shape: Sequence[int],
    declared: DeclaredShape,
    *,
    is_constant: bool,
) -> None:
    if len(shape) == len(declared) and all(
        isinstance(d, str) or d == s for d, s in zip(declared, shape, strict=True)
    ):
        return
    expected = shape_text(declared)
    if is_constant:
        raise BraidError(
            f"the value of input '{name}' has shape {list(shape)}, expected {expected}",
            location=file.location,
            hint=f"give {option_text('constants')} an array of the input's shape; one number fits "
            "inputs of one element",
        )
    raise BraidError(
        f"input '{name}' was given shape {list(shape)}, expected {expected}",
        location=file.location,
        hint="the model fixes the sizes that are numbers; only those with names can be given",
    )


def shape_text(shape: DeclaredShape) -> str:
    """Return a shape as text, such as `[batch, ?, 3]`, where `?` is an open dim without a name."""
    dims = ("?" if isinstance(d, str) and d.endswith("]") else str(d) for d in shape)
    return f"[{', '.join(dims)}]"


def constant_value(file: ModelFile, value: ValueInfoProto, given: object) -> Array:
    """Return the value that is given to an input, with its element type.

    One number fits every input of one element.

    Raises:
        BraidError: it has another element type or shape, or is not numeric.

    """
    if not value.type.HasField("tensor_type"):
        raise UnsupportedError(
            f"input '{value.name}' is not a tensor, so that no value can be given to it",
            location=file.location,
        )
    dtype = file.tensors.dtype(value.type.tensor_type.elem_type, value.name)
    found = _as_array(file, value.name, given)
    if dtype == np.bool_ and found.dtype.kind in "iu" and not _holds(dtype, found):
        raise BraidError(
            f"the value of input '{value.name}' is {given!r:.200}, expected true, false, 1 or 0",
            location=file.location,
        )
    if found.dtype != dtype and (isinstance(given, np.ndarray) or not _holds(dtype, found)):
        raise BraidError(
            f"the value of input '{value.name}' has element type {found.dtype}, expected {dtype}",
            location=file.location,
            hint=f"convert it, as np.asarray(…, '{dtype}') does",
        )
    try:
        array = found if found.dtype == dtype else np.asarray(given, dtype)
    except (OverflowError, ValueError, TypeError) as error:
        raise BraidError(
            f"the value of input '{value.name}' is {given!r:.200}, expected {dtype}: {error}",
            location=file.location,
        ) from error
    shape = _shape(value)
    if shape is None or array.ndim == len(shape) or array.size != 1:
        return array
    if any(d != 1 and not isinstance(d, str) for d in shape):
        return array
    return array.reshape([1] * len(shape))


def _as_array(file: ModelFile, name: str, given: object) -> Array:
    try:
        found = np.asarray(given)
    except ValueError as error:
        raise BraidError(
            f"the value of input '{name}' is {given!r:.200}, expected numbers: {error}",
            location=file.location,
        ) from error
    if found.dtype.kind in "OSUMm":
        raise BraidError(
            f"the value of input '{name}' is {given!r:.200}, expected numbers",
            location=file.location,
            hint="give a number, or an array of the input's shape",
        )
    return found


def _holds(dtype: "np.dtype[np.generic]", found: Array) -> bool:
    """Return whether numbers without a type can have this one; 0 and 1 can be truth values."""
    if dtype.kind == "b" and found.dtype.kind in "iu":
        return bool(np.isin(found, (0, 1)).all())
    if found.dtype.kind == "b" or dtype.kind == "b":
        return found.dtype.kind == dtype.kind
    return found.dtype.kind in "iu" or dtype.kind not in "iu"
