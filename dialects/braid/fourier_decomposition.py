"""Fourier transforms as products with small matrices.

A length r · m is a step of r-point transforms, a multiplication by roots of unity, and m-point
transforms: the decimation in frequency of J. Cooley and J. Tukey ("An algorithm for the machine
calculation of complex Fourier series", 1965), with results in natural order as in T. Stockham's
form (W. Cochran et al., "What is the fast Fourier transform?", 1967). Lengths with a large prime
factor are convolutions with a chirp (L. Bluestein, "A linear filtering approach to the computation
of discrete Fourier transform", 1970).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.builder import Builder
from xdsl.ir import Operation, SSAValue

from braid.dialects.braid.base import element_type_of, extents_of
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.dtypes import to_numpy
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.fourier_tables import (
    Complexes,
    chirp,
    chirp_filter,
    prime_factors,
    roots_of_unity,
)
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.movement import ConcatOp, ReshapeOp, TransposeOp
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.sized_ops import pad_of, slice_of
from braid.support.sizes.expression import Extent
from braid.support.sizes.operators import product_of

_MOST_RADIX = 64
"""Steps are joined up to this many points: two of them make 4096."""

_MOST_PRIME = 128
"""For larger prime factors a matrix would be more work than three transforms by powers of two."""


@dataclass(frozen=True)
class FourierDecomposition:
    """The transform of `input` of this kind along `dim`; see `FftOp`.

    It computes with tensors of shape `[batch, parts, positions]`: for each signal the real parts,
    then the imaginary parts.
    """

    builder: Builder
    input: SSAValue
    kind: str
    dim: int
    length: int

    def result(self) -> SSAValue:
        """Insert all ops; return the last one's result."""
        shape = extents_of(self.input)
        others = [dim for dim in range(len(shape) - 1) if dim != self.dim]
        order = [*others, len(shape) - 1, self.dim]
        batch = [shape[dim] for dim in others]
        x = self._reshaped(
            self._transposed(self.input, order),
            [product_of(batch), shape[-1], shape[self.dim]],
        )
        if self.kind == "irfft":
            x = self._mirrored(x)
        y = self._complex(x)
        if self.kind == "rfft":
            y = self._part(y, 2, 0, self.length // 2 + 1)
        if self.kind == "irfft":
            y = self._part(y, 1, 0, 1)
        y = self._reshaped(y, [*batch, *extents_of(y)[1:]])
        return self._transposed(y, [int(place) for place in np.argsort(order)])

    @property
    def _is_inverse(self) -> bool:
        return self.kind in ("ifft", "irfft")

    def _complex(self, x: SSAValue) -> SSAValue:
        """Transform all places, in steps or by way of a longer convolution."""
        scale = 1 / self.length if self._is_inverse else 1.0
        factors = prime_factors(self.length) or [1]
        if factors[-1] <= _MOST_PRIME:
            return self._in_steps(x, _joined(factors), scale, is_inverse=self._is_inverse)
        padded = 1 << (2 * self.length - 2).bit_length()
        radices = _joined(prime_factors(padded))
        factor, spectrum = chirp(self.length), chirp_filter(self.length, padded)
        if self._is_inverse:
            factor, spectrum = factor.conj(), spectrum.conj()
        x = self._times(x, factor)
        x = self._inserted(pad_of(x, [0, 0, 0], [0, 0, padded - self.length], 0.0))
        y = self._in_steps(x, radices, 1.0, is_inverse=False)
        y = self._in_steps(self._times(y, spectrum), radices, 1 / padded, is_inverse=True)
        return self._times(self._part(y, 2, 0, self.length), scale * factor)

    def _in_steps(
        self, x: SSAValue, radices: Sequence[int], scale: float, *, is_inverse: bool
    ) -> SSAValue:
        """Transform `scale` times x, whose length is the product of the radices."""
        batch, parts, length = extents_of(x)
        done, left = 1, math.prod(radices)
        for radix in radices:
            left //= radix
            table = roots_of_unity(np.outer(np.arange(radix), np.arange(radix)), radix)
            table = scale * (np.conj(table) if is_inverse else table)
            matrix = np.block([[table.real, -table.imag], [table.imag, table.real]])
            x = self._reshaped(x, [batch, parts * radix, left * done])
            x = self._product(matrix[None, :, : parts * radix], x)
            scale, parts = 1.0, 2
            if left > 1:
                roots = roots_of_unity(np.outer(np.arange(radix), np.arange(left)), radix * left)
                factors: Complexes = np.repeat(roots.reshape(-1), done)
                x = self._reshaped(x, [batch, 2, length])
                x = self._times(x, np.conj(factors) if is_inverse else factors)
                x = self._reshaped(x, [batch, 2, radix, left, done])
                x = self._transposed(x, [0, 1, 3, 2, 4])
            done *= radix
            x = self._reshaped(x, [batch, 2, length])
        return x

    def _mirrored(self, x: SSAValue) -> SSAValue:
        """Return the whole spectrum of real numbers: the second half is the conjugate mirror of the
        first."""
        batch = extents_of(x)[0]
        count = self.length - self.length // 2 - 1
        if count == 0:
            return x
        sizes, offsets = [batch, 2, count], [0, 0, count]
        mirror = self._inserted(slice_of(x, offsets, sizes, [1, 1, -1]))
        signs = self._constant(np.array([1.0, -1.0]).reshape(1, 2, 1))
        other = self._inserted(elementwise("mul", mirror, signs))
        return self._inserted(ConcatOp.get([x, other], 2))

    def _times(self, x: SSAValue, factors: Complexes) -> SSAValue:
        """Multiply the places of all signals by complex factors."""
        real, imaginary = (
            self._constant(part.reshape(1, 1, -1)) for part in (factors.real, factors.imag)
        )
        first = self._part(x, 1, 0, 1)
        a, b = (self._inserted(elementwise("mul", first, part)) for part in (real, imaginary))
        if extents_of(x)[1] == 2:
            second = self._part(x, 1, 1, 1)
            c, d = (self._inserted(elementwise("mul", second, part)) for part in (imaginary, real))
            a = self._inserted(elementwise("sub", a, c))
            b = self._inserted(elementwise("add", b, d))
        return self._inserted(ConcatOp.get([a, b], 1))

    def _product(self, matrix: Array, x: SSAValue) -> SSAValue:
        return self._inserted(MatmulOp.on(self._constant(matrix), x))

    def _part(self, x: SSAValue, dim: int, offset: int, size: int) -> SSAValue:
        """Return `size` entries along `dim`."""
        offsets, sizes = [0, 0, 0], list(extents_of(x))
        if (offset, size) == (0, sizes[dim]):
            return x
        offsets[dim], sizes[dim] = offset, size
        return self._inserted(slice_of(x, offsets, sizes))

    def _constant(self, array: Array) -> SSAValue:
        return self._inserted(ConstantOp.of(array, to_numpy(element_type_of(self.input))))

    def _reshaped(self, x: SSAValue, shape: Sequence[Extent]) -> SSAValue:
        return x if extents_of(x) == tuple(shape) else self._inserted(ReshapeOp.get(x, shape))

    def _transposed(self, x: SSAValue, order: Sequence[int]) -> SSAValue:
        is_kept = list(order) == sorted(order)
        return x if is_kept else self._inserted(TransposeOp.get(x, order))

    def _inserted(self, op: Operation) -> SSAValue:
        return self.builder.insert(op).results[0]


def _joined(factors: Sequence[int]) -> list[int]:
    """Return factors of which each is at most `_MOST_RADIX` or a prime, with the same product."""
    radices = [1]
    for factor in sorted(factors, reverse=True):
        place = next((i for i, own in enumerate(radices) if own * factor <= _MOST_RADIX), None)
        if place is None:
            radices.append(factor)
        else:
            radices[place] *= factor
    return [radix for radix in radices if radix > 1] or [1]
