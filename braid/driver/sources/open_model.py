"""ONNX models with open dims, which can be imported at any sizes of these."""

import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import onnx

from braid.frontends.onnx import ImportedModel, import_onnx
from braid.frontends.onnx.fixed_inputs import NOTHING_FIXED, Fixed, fix_inputs
from braid.frontends.onnx.model_file import DeclaredShape, ModelFile, initializer_names
from braid.support.errors import BraidError

OnnxSource = str | os.PathLike[str] | onnx.ModelProto
Sizes = dict[str, int]
"""Sizes of open dims by name."""
Ports = Mapping[str, DeclaredShape | None]
"""Shapes by the name of an input or output; None for one of which nothing is declared."""
Buckets = Mapping[str, Sequence[int]]
"""All sizes to compile for, by the name of an open dim."""
Bounds = Mapping[str, int]
"""The largest size, by the name of an open dim."""


class OpenModel:
    """A model whose open dims are named, by the model or as `x[0]` after the input."""

    def __init__(self, source: OnnxSource, fixed: Fixed = NOTHING_FIXED) -> None:
        """Read the types of the inputs; some of them, and some dims, are `fixed`.

        Raises:
            BraidError: the source is not a valid ONNX model, or lacks a fixed input or dim.

        """
        self._source = source if isinstance(source, onnx.ModelProto) else Path(source)
        self._fixed = fixed
        self._inputs = fix_inputs(ModelFile(self._source), fixed)
        self.name = self._source.stem if isinstance(self._source, Path) else source_name(source)

    @property
    def inputs(self) -> list[str]:
        """Return the names of the inputs that have no fixed value."""
        return list(self._inputs.shapes)

    @property
    def dims(self) -> list[str]:
        """Return the open dims of the inputs that are not fixed."""
        return self._inputs.open_dims

    @property
    def fixed_sizes(self) -> Mapping[str, int]:
        """Return the sizes of the dims that are fixed."""
        return self._inputs.sizes

    def with_equal(self, dims: Mapping[str, str]) -> "OpenModel":
        """Return the model in which each of `dims` always has the size of another dim."""
        return OpenModel(self._source, replace(self._fixed, dims={**dims, **self._fixed.dims}))

    def initializers(self) -> frozenset[str]:
        """Return the keys of parameters that are the same at all sizes."""
        return initializer_names(self._source)

    def input_dims(self, name: str) -> tuple[str, ...]:
        """Return the names of an input's open dims, "" for its other dims; empty if it has none."""
        shape = self._inputs.shapes.get(name)  # none of the key of random numbers
        names = tuple(d if isinstance(d, str) else "" for d in shape or ())
        return names if any(names) else ()

    def ports(self) -> tuple[Ports, Ports]:
        """Return the declared shapes of inputs and outputs, with the fixed dims."""
        return self._inputs.shapes, self._inputs.outputs

    def at(self, sizes: Mapping[str, int], *, keep_open: bool = False) -> ImportedModel:
        """Return the model with these sizes of its open dims.

        Others stay open with `keep_open`, such as those that are values of inputs.

        Raises:
            BraidError: the model is not valid at these sizes.

        """
        fixed = self._fixed
        try:
            return import_onnx(
                self._source,
                shapes=fixed.shapes,
                dims={**fixed.dims, **sizes},
                constants=fixed.constants,
                keep_open=keep_open,
            )
        except BraidError as error:
            raise type(error)(
                f"with {described(sizes)}: {error.message}",
                location=error.location,
                hint=error.hint,
                notes=error.notes,
            ) from error


def source_name(source: object) -> str:
    """Return the name of a model in memory."""
    return (isinstance(source, onnx.ModelProto) and source.graph.name) or "model"


def described(sizes: Mapping[str, int]) -> str:
    """Return sizes as text, such as `batch=1,sequence=32`."""
    return ",".join(f"{name}={size}" for name, size in sizes.items())


def combinations(buckets: Mapping[str, Sequence[int]]) -> Iterator[Sizes]:
    """Yield every combination of sizes."""
    for sizes in itertools.product(*buckets.values()):
        yield dict(zip(buckets, sizes, strict=True))
