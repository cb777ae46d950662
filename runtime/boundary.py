"""Convert text and mappings at the boundary of a model, whose code computes with numbers.

Each text that the model holds has a number, and text that only a call brings has the numbers after
these, for that call; a mapping is a row with a column for each of its keys.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from braid.runtime.device_arrays import Buffer
from braid.runtime.dtypes import numpy_dtype
from braid.runtime.manifest import Boundary, TensorSpec
from braid.support.errors import BraidError

Array = NDArray[Any]


def drawn_inputs(boundary: Boundary) -> frozenset[str]:
    """Return the inputs that are drawn where a call leaves them out: keys of random numbers."""
    return frozenset(name for name, kind in boundary.inputs.items() if kind.is_random)


@dataclass
class BoundaryCall:
    """One call of a model: conversion of its inputs, and then of its outputs."""

    boundary: Boundary
    texts: list[str] = field(init=False)
    _codes: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        """Begin with the texts that the model holds."""
        self.texts = list(self.boundary.texts)
        self._codes = {text: code for code, text in enumerate(self.texts)}

    def encoded(self, specs: Sequence[TensorSpec], values: Sequence[object]) -> list[Buffer]:
        """Return inputs as arrays of numbers. Raises BraidError if one has an invalid value.

        An array of integers in the place of text has the numbers of texts.
        """
        found: list[Buffer] = []
        for spec, value in zip(specs, values, strict=True):
            kind = self.boundary.inputs.get(spec.name)
            if kind is None or kind.is_random:
                found.append(cast(Buffer, value))
            elif kind.is_text:
                found.append(self._numbers(spec, value))
            else:
                found.append(_row(spec, kind.keys, value))
        return found

    def decoded(self, specs: Sequence[TensorSpec], results: Sequence[Array]) -> list[Any]:
        """Return outputs as text, and as lists of mappings by row."""
        found: list[Any] = []
        for spec, result in zip(specs, results, strict=True):
            kind = self.boundary.outputs.get(spec.name)
            if kind is None:
                found.append(result)
            elif kind.is_text:
                found.append(self._texts(spec, result))
            else:
                rows = result.reshape(-1, len(kind.keys)).tolist()
                found.append([dict(zip(kind.keys, row, strict=True)) for row in rows])
        return found

    def _texts(self, spec: TensorSpec, numbers: Array) -> Array:
        if numbers.size and not 0 <= numbers.min() <= numbers.max() < len(self.texts):
            raise BraidError(
                f"output '{spec.name}' has numbers that stand for no text",
                hint=f"numbers that are given for text are from 0 up to {len(self.texts) - 1}",
            )
        return np.array(self.texts, dtype=object)[numbers]

    def _numbers(self, spec: TensorSpec, value: object) -> Array:
        is_array = isinstance(value, np.ndarray)
        array = cast(Array, value) if is_array else np.array(value, object)
        if array.dtype.kind == "i":
            return array
        elements = array.reshape(-1).tolist()
        for element in elements:
            if not isinstance(element, str):
                raise BraidError(
                    f"input '{spec.name}' has {element!r:.80}, expected text",
                    hint="give an array or nested lists of str",
                )
        return np.array([self._code(text) for text in elements], np.int64).reshape(array.shape)

    def _code(self, text: str) -> int:
        code = self._codes.get(text)
        if code is None:
            code = self._codes[text] = len(self.texts)
            self.texts.append(text)
        return code


def _row(spec: TensorSpec, keys: Sequence[str | int], value: object) -> Array:
    """Return a mapping as a row, with 0 for missing keys; raise BraidError for other values."""
    dtype = numpy_dtype(spec.dtype)
    if isinstance(value, np.ndarray):
        return cast(Array, value)
    if not isinstance(value, Mapping):
        raise BraidError(
            f"input '{spec.name}' is a {type(value).__name__}, expected a mapping",
            hint=f"its keys are such as {keys[0]!r}",
        )
    mapping = cast(Mapping[object, Any], value)
    try:
        return np.array([[mapping.get(key, 0) for key in keys]], dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise BraidError(
            f"input '{spec.name}' has values that are no numbers of {dtype}: {error}"
        ) from error
