"""`tosa.resize`: result position o reads at `(o · denominator + offset) / numerator`.

Source: the TOSA specification, "RESIZE". All positions are known, so rows and columns are gathered
at constant indices; for integers, bilinear weights stay numerators, and the result is that much
larger.
"""

from dataclasses import dataclass

import numpy as np
from xdsl.ir import SSAValue

from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.dtypes import is_float, to_numpy
from braid.dialects.braid.indexing import GatherOp
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.size_limits import require_table
from braid.passes.tosa.node import TosaNode, converter


@dataclass(frozen=True)
class _Positions:
    """Along one dim: the element before each position, and the rest of the way in numerators."""

    before: Array
    remainder: Array
    numerator: int
    extent: int

    def clipped(self, positions: Array) -> Array:
        """Return positions; those outside are those of the nearest element."""
        return np.clip(positions, 0, self.extent - 1)


@converter("resize")
def resize(t: TosaNode) -> SSAValue:
    """Resize along height, then width."""
    mode = t.text("mode", "NEAREST_NEIGHBOR")
    numbers = t.known_integers(1)
    offsets = t.known_integers(2)
    value = t.value(0)
    if mode == "BILINEAR":
        value = t.cast(value, t.element_type)
    for dim in (1, 2):
        numerator, denominator = numbers[2 * dim - 2 : 2 * dim]
        results = [None if axis in (1, 2) else n for axis, n in enumerate(t.extents(value))]
        count = t.fixed(t.declared_extents(0, results)[dim])
        require_table(count, f"dim {dim}, where outputs are read")
        reached = np.arange(count) * denominator + offsets[dim - 1]
        extent = t.fixed(t.extents(value)[dim])
        positions = _Positions(reached // numerator, reached % numerator, numerator, extent)
        interpolate = _bilinear if mode == "BILINEAR" else _nearest
        value = interpolate(t, value, dim, positions)
    return value


def _nearest(t: TosaNode, value: SSAValue, dim: int, at: _Positions) -> SSAValue:
    nearest = at.before + (2 * at.remainder >= at.numerator)
    return _gathered(t, value, dim, at.clipped(nearest))


def _bilinear(t: TosaNode, value: SSAValue, dim: int, at: _Positions) -> SSAValue:
    before = _gathered(t, value, dim, at.clipped(at.before))
    after = _gathered(t, value, dim, at.clipped(at.before + 1))
    second, whole = at.remainder, at.numerator
    if is_float(element_type_of(value)):
        second, whole = second / whole, 1
    return t.apply(
        "add",
        t.apply("mul", before, _weights(t, value, dim, whole - second)),
        t.apply("mul", after, _weights(t, value, dim, second)),
    )


def _gathered(t: TosaNode, value: SSAValue, dim: int, positions: Array) -> SSAValue:
    return t.emit(GatherOp.get(value, t.constant(positions.astype(np.int64)), dim))


def _weights(t: TosaNode, value: SSAValue, dim: int, weights: Array) -> SSAValue:
    shape = [1] * len(shape_of(value))
    shape[dim] = -1
    return t.constant(weights.reshape(shape).astype(to_numpy(element_type_of(value))))
