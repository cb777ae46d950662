"""ONNX models with open dims, which can be imported at any sizes of these."""

import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import onnx

from braid.frontends.onnx import ImportedModel, import_onnx
from braid.frontends.onnx.model_file import DeclaredShape, declared_shapes, initializer_names
from braid.support.errors import BraidError

OnnxSource = str | os.PathLike[str] | onnx.ModelProto
Sizes = dict[str, int]
"""Sizes of open dims by name."""
Buckets = Mapping[str, Sequence[int]]
"""All sizes to compile for, by the name of an open dim."""
Bounds = Mapping[str, int]
"""The largest size, by the name of an open dim."""


class OpenModel:
    """A model whose open dims are named, by the model or as `x[0]` after the input."""

    def __init__(
        self, source: OnnxSource, shapes: Mapping[str, Sequence[int]] | None = None
    ) -> None:
        """Read what the inputs are; `shapes` fixes some of them.

        Raises:
            BraidError: the source is not a valid ONNX model.

        """
        self._source = source if isinstance(source, onnx.ModelProto) else Path(source)
        self._fixed = dict(shapes or {})
        self._declared = declared_shapes(self._source)
        self.name = self._source.stem if isinstance(self._source, Path) else source_name(source)

    @property
    def dims(self) -> list[str]:
        """The open dims of the inputs that are not fixed."""
        shapes = [shape for name, shape in self._declared.items() if name not in self._fixed]
        return list(dict.fromkeys(d for shape in shapes for d in shape if isinstance(d, str)))

    def initializers(self) -> frozenset[str]:
        """The keys of parameters that are the same at all sizes."""
        return initializer_names(self._source)

    def input_dims(self, name: str) -> tuple[str, ...]:
        """The names of an input's open dims, "" for its other dims; empty if it has none."""
        shape = () if name in self._fixed else self._declared.get(name, ())
        names = tuple(d if isinstance(d, str) else "" for d in shape)
        return names if any(names) else ()

    def at(self, sizes: Mapping[str, int]) -> ImportedModel:
        """The model with these sizes of its open dims.

        Raises:
            BraidError: the model is not valid at these sizes.

        """
        shapes = {
            name: _sized(shape, sizes)
            for name, shape in self._declared.items()
            if self.input_dims(name)
        }
        try:
            return import_onnx(self._source, shapes={**self._fixed, **shapes})
        except BraidError as error:
            raise type(error)(
                f"with {described(sizes)}: {error.message}",
                location=error.location,
                hint=error.hint,
                notes=error.notes,
            ) from error


def source_name(source: object) -> str:
    """The name of a model in memory."""
    return (isinstance(source, onnx.ModelProto) and source.graph.name) or "model"


def described(sizes: Mapping[str, int]) -> str:
    """Sizes as text, such as `batch=1,sequence=32`."""
    return ",".join(f"{name}={size}" for name, size in sizes.items())


def combinations(buckets: Mapping[str, Sequence[int]]) -> Iterator[Sizes]:
    """Every combination of sizes."""
    for sizes in itertools.product(*buckets.values()):
        yield dict(zip(buckets, sizes, strict=True))


def _sized(shape: DeclaredShape, sizes: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(sizes[d] if isinstance(d, str) else d for d in shape)
