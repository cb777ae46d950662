"""Values for what is run for its time alone."""

from collections.abc import Container
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.constants import ParameterOp
from braid.dialects.braid.dtypes import holds_floats, to_numpy
from braid.dialects.braid.relayout import Array


def made_up_array(shape: tuple[int, ...], dtype: "np.dtype[Any]") -> Array:
    """Halves, whose products are normal numbers; integers are 0, a valid index."""
    array: Array = np.zeros(shape, dtype)
    if holds_floats(array.dtype):
        array.fill(0.5)
    return array


def made_up_parameters(module: ModuleOp, known: Container[str] = ()) -> dict[str, Array]:
    """A value for each parameter of `module` but the `known` ones."""
    return {
        op.key.data: made_up_array(shape_of(op.output), to_numpy(element_type_of(op.output)))
        for op in module.walk()
        if isinstance(op, ParameterOp) and op.key.data not in known
    }
