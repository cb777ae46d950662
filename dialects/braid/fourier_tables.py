"""Roots of unity, and the numbers that transforms of lengths with large prime factors need."""

import numpy as np
import numpy.typing as npt

Complexes = npt.NDArray[np.complex128]


def roots_of_unity(exponents: npt.ArrayLike, order: int) -> Complexes:
    """Return exp(-2πi e / order) for each integer e, in double precision.

    Exponents are first reduced to one turn, so that large ones lose no precision.
    """
    reduced = np.asarray(exponents, np.int64) % order
    angles = (-2 * np.pi / order) * np.where(2 * reduced > order, reduced - order, reduced)
    return np.cos(angles) + 1j * np.sin(angles)


def chirp(length: int) -> Complexes:
    """Return exp(-πi j² / length) for j below `length`."""
    places = np.arange(length, dtype=np.int64)
    return roots_of_unity(places * places % (2 * length), 2 * length)


def chirp_filter(length: int, padded: int) -> Complexes:
    """Return the spectrum of the sequence with which chirps are convolved, of `padded` ≥ 2 · length
    - 1 elements.

    It is the transform of the conjugate chirp, which goes round the end to negative places.
    """
    factors = np.conj(chirp(length))
    around = np.zeros(padded, np.complex128)
    around[:length] = factors
    around[padded - length + 1 :] = factors[:0:-1]
    return np.fft.fft(around)


def prime_factors(number: int) -> list[int]:
    """Return the prime factors of a positive number, in ascending order."""
    found: list[int] = []
    divisor = 2
    while divisor * divisor <= number:
        while number % divisor == 0:
            found.append(divisor)
            number //= divisor
        divisor += 1
    return [*found, number] if number > 1 else found
