"""Nests of Fourier transforms: signals along one dim."""

import math
from dataclasses import dataclass
from typing import cast

from braid.analysis.nests.dims import has_elements
from braid.analysis.nests.lines import Lines, single_op
from braid.analysis.nests.pointwise import ExtentsOf
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.fourier import FftOp
from braid.dialects.braid.regions import FusedOp
from braid.support.sizes.expression import Extent


@dataclass(frozen=True)
class Signal:
    """A transform of `length` points of this kind (see `FftOp`), on real or complex numbers.

    `is_real` means that the operand has only a real part.
    """

    kind: str
    length: int
    is_real: bool

    @property
    def is_inverse(self) -> bool:
        """Return whether it goes from a spectrum to a signal."""
        return self.kind in ("ifft", "irfft")

    @property
    def is_halved(self) -> bool:
        """Return whether it is a complex transform of half the length: even ones of real
        signals.
        """
        is_real = self.kind == "irfft" or (self.is_real and self.kind != "ifft")
        return is_real and self.length % 2 == 0

    @property
    def core_length(self) -> int:
        """Return the length of the complex transform."""
        return self.length // 2 if self.is_halved else self.length

    @property
    def half_scale(self) -> float:
        """Return the factor of sums and differences where the transform is halved."""
        return 0.5 / self.core_length if self.is_inverse else 0.5

    @property
    def read_extent(self) -> int:
        """Return the extent of the operand."""
        return self.length // 2 + 1 if self.kind == "irfft" else self.length

    @property
    def written_extent(self) -> int:
        """Return the extent of the result."""
        return self.length // 2 + 1 if self.kind == "rfft" else self.length

    @property
    def read_numbers(self) -> int:
        """Return the number of f32 or f64 values of one signal."""
        return self.read_extent * (1 if self.is_real else 2)

    @property
    def written_numbers(self) -> int:
        """Return the number of f32 or f64 values of one result."""
        return self.written_extent * (1 if self.kind == "irfft" else 2)


@dataclass(frozen=True)
class FourierNest:
    """Signals along `lines` of complex or real numbers."""

    lines: Lines[Extent]
    signal: Signal


def fourier_nest(group: FusedOp, extents_of: ExtentsOf = shape_of) -> FourierNest | None:
    """Return the transforms that a group of one op is; None if the group is no
    transform or has no signals."""
    op = single_op(group, FftOp)
    if op is None or len(group.results) != 1:
        return None
    shape, dim = extents_of(op.input), op.dim.value.data
    if not has_elements(shape):
        return None
    known = cast(tuple[int, ...], shape)  # or sizes: products of either
    lines = Lines[Extent](math.prod(known[:dim]), shape[dim], math.prod(known[dim + 1 : -1]))
    is_real = shape_of(op.input)[-1] == 1
    return FourierNest(lines, Signal(op.kind.data, op.length.value.data, is_real))
