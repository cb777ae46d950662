"""The dims of a model's state in the order of the model, and in that in which code has them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from braid.runtime.manifest import Manifest, StateSpec, TensorSpec

_T = TypeVar("_T")
Array = NDArray[Any]


def orders(state: Sequence[StateSpec]) -> dict[str, tuple[int, ...]]:
    """Return the dim order of each input and output whose order in code differs."""
    return {name: own.order for own in state if own.order for name in (own.input, own.output)}


def in_model_order(
    specs: Sequence[TensorSpec], state: Sequence[StateSpec]
) -> tuple[TensorSpec, ...]:
    """Return specs as users see them: with dims as the model has them."""
    known = orders(state)
    return tuple(
        _reordered(spec, known[spec.name]) if spec.name in known else spec for spec in specs
    )


def shown_sizes(manifest: Manifest) -> tuple[tuple[str, ...], ...]:
    """Return the texts of the sizes of outputs in this order; empty where no size is open."""
    known = orders(manifest.state)
    pairs = zip(manifest.outputs, manifest.output_shapes, strict=False)
    return tuple(_placed(own, known.get(spec.name, ())) for spec, own in pairs)


def _reordered(spec: TensorSpec, order: tuple[int, ...]) -> TensorSpec:
    dims = _placed(spec.dims, order) if spec.dims else ()
    shape, bound = _placed(spec.shape, order), _placed(spec.bound, order)
    return replace(spec, shape=shape, bound=bound, dims=dims)


def _placed(values: Sequence[_T], order: Sequence[int]) -> tuple[_T, ...]:
    """Return values by dim of code as values by dim of the model."""
    of_dim: Mapping[int, _T] = dict(zip(order or range(len(values)), values, strict=True))
    return tuple(of_dim[dim] for dim in range(len(values)))


def as_in_code(value: Array, order: Sequence[int]) -> Array:
    """Return a view with the dims in the order that code has."""
    return value.transpose(order) if order else value


def as_in_model(value: Array, order: Sequence[int]) -> Array:
    """Return a view with the dims in the order that the model has."""
    return value.transpose([int(dim) for dim in np.argsort(order)]) if order else value
