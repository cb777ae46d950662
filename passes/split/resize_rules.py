"""Which part of its operand a part of a resize needs, and the smaller resize that makes it."""

from fractions import Fraction

import numpy as np

from braid.dialects.braid.base import shape_of
from braid.dialects.braid.resampling import Dim, Taps, resampling_taps
from braid.dialects.braid.resize import ResizeOp
from braid.passes.split.tile import Part, Tile


class ResizedDim:
    """Parts along a dim that `op` resamples: resizes with the same scale of a part of the input.

    Such a resize must begin where an element of the input falls on one of the result, so it may
    begin before the part; what it makes too much is left out.
    """

    def __init__(self, op: ResizeOp, dim: int, taps: Taps) -> None:
        self.op = op
        self.taps = taps
        self.extent = shape_of(op.input)[dim]
        self.scale = Fraction(op.scales.get_values()[dim])

    def __call__(self, part: Part) -> Tile | None:
        """The tile of `part`; None where a smaller resize has other taps (aligned corners)."""
        wanted = slice(part.start, part.start + part.size)
        indices = self.taps.indices[:, wanted]
        first, last = int(indices.min()), int(indices.max())
        period = self.scale.denominator
        begin = min(first, int(part.start / self.scale)) // period * period
        start = int(begin * self.scale)
        computed = Part(part.dim, start, part.start + part.size - start)
        if not self._has_taps(begin, last + 1, computed, part):
            return None
        return Tile({0: Part(part.dim, begin, last + 1 - begin)}, computed=computed)

    def _has_taps(self, begin: int, end: int, computed: Part, part: Part) -> bool:
        """Whether the resize of the input from `begin` to `end` reads and weighs the same."""
        dim = Dim(end - begin, computed.size, float(self.scale), (0.0, 1.0))
        found = resampling_taps(dim, self.op.resampling)
        if len(found.indices) != len(self.taps.indices):
            return False
        own = slice(part.start - computed.start, computed.size)
        wanted = slice(part.start, part.start + part.size)
        return (
            np.array_equal(found.indices[:, own] + begin, self.taps.indices[:, wanted])
            and np.allclose(found.weights[:, own], self.taps.weights[:, wanted])
            and np.allclose(found.offset[own], self.taps.offset[wanted])
        )
