"""Synthetic inputs and parameters of models that run only to be timed."""

from collections.abc import Container, Iterable
from typing import Any, Protocol

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import ModuleOp

from braid.analysis.profile.loop_lengths import Lengths, lengths_of_inputs
from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.constants import ParameterOp
from braid.dialects.braid.dtypes import holds_floats, to_numpy
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.variants import public_functions


class _Spec(Protocol):
    @property
    def dtype(self) -> str: ...

    @property
    def bound(self) -> tuple[int, ...]: ...


def synthetic_array(shape: tuple[int, ...], dtype: "np.dtype[Any]", integer: int = 0) -> Array:
    """Return halves, whose products are normal numbers; integers are 0, a valid index.

    Another `integer` counts as far as `dtype` holds it.
    """
    array: Array = np.zeros(shape, dtype)
    if holds_floats(array.dtype):
        array.fill(0.5)
    elif array.dtype == np.bool_:
        array.fill(integer > 0)
    elif integer:
        array.fill(min(integer, ml_dtypes.iinfo(array.dtype).max))
    return array


def synthetic_lengths(module: ModuleOp) -> Lengths:
    """Return by the number of an input the value with which loops of the program turn as expected.

    Raises BraidError for a profile that says no number.
    """
    lengths: Lengths = {}
    for function in public_functions(module):
        for number, length in lengths_of_inputs(function).items():
            lengths[number] = max(lengths.get(number, 0), length)
    return lengths


def synthetic_inputs(specs: Iterable[_Spec], lengths: Lengths) -> list[Array]:
    """Return inputs as large as they may be; integers are their `lengths`, or 0."""
    return [
        synthetic_array(spec.bound, np.dtype(spec.dtype), lengths.get(number, 0))
        for number, spec in enumerate(specs)
    ]


def synthetic_parameters(module: ModuleOp, known: Container[str] = ()) -> dict[str, Array]:
    """Return a value for each parameter of `module` but the `known` ones."""
    return {
        op.key.data: synthetic_array(shape_of(op.output), to_numpy(element_type_of(op.output)))
        for op in module.walk()
        if isinstance(op, ParameterOp) and op.key.data not in known
    }
