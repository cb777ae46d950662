"""One run of a compiled kernel on given arrays, in a worker, and the expected results."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import itemgetter

import numpy as np

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.dtypes import holds_floats
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.relayout import Array, to_storage
from braid.lowering.cpu.call import LoadedKernel
from braid.tuning.reference_operands import random_values
from braid.tuning.rounded_steps import stepped

TOLERANCES = {2: 2e-2, 4: 1e-4, 8: 1e-10}
"""Largest ‖y − ref‖∞ / ‖ref‖∞ by bytes of a float, as another order of sums may cause."""


@dataclass(frozen=True)
class RunRequest:
    """A compiled kernel, its operands as stored, and the initial contents of its results."""

    object_code: bytes
    symbol: str
    grid: int
    scratch_bytes: int
    operands: tuple[Array, ...]
    results: tuple[Array, ...]
    libraries: tuple[str, ...] = ()


def run_kernel(request: RunRequest) -> tuple[Array, ...]:
    """Return the results as stored."""
    kernel = LoadedKernel(
        request.object_code,
        request.symbol,
        request.grid,
        request.scratch_bytes,
        request.libraries,
    )
    kernel(*request.operands, *request.results)
    return request.results


@dataclass(frozen=True)
class Reference:
    """Random operands of a group and its results by the numpy semantics, both as stored.

    Values that are computed from sums by steps, such as quantized numbers, may lie between `least`
    and `most`.
    """

    operands: tuple[Array, ...]
    results: tuple[Array, ...]
    least: tuple[Array, ...]
    most: tuple[Array, ...]

    @staticmethod
    def of(group: FusedOp, choice: LayoutChoice, seed: int = 0) -> "Reference | None":
        """Return the runs; None for a group with ops without numpy semantics."""
        values = random_values(group, seed)
        if values is None:
            return None
        operands = [values[value] for value in group.body.block.args]
        ways = [values, *(stepped(group, values, TOLERANCES[4], sign) for sign in (-1, 1))]
        found = [[way[value] for way in ways] for value in group.terminator.arguments]
        results = [
            _stored([pick(arrays) for arrays in found], choice.results)
            for pick in (itemgetter(0), _least, _most)
        ]
        return Reference(_stored(operands, choice.operands), *results)

    def unwritten(self) -> tuple[Array, ...]:
        """Return the results before a kernel has run: what is not written shows."""
        return tuple(np.full_like(array, 77) for array in self.results)

    def agrees(self, results: Sequence[Array]) -> bool:
        """Return whether `results`, as stored, are right up to the order of sums."""
        return all(map(_close, results, self.results, self.least, self.most))


def _least(arrays: Sequence[Array]) -> Array:
    """Return the first value if the other one is NaN."""
    return reduce(lambda a, b: np.where(b < a, b, a), arrays)


def _most(arrays: Sequence[Array]) -> Array:
    return reduce(lambda a, b: np.where(b > a, b, a), arrays)


def _stored(arrays: Sequence[Array], layouts: Sequence[Layout]) -> tuple[Array, ...]:
    pairs = zip(arrays, layouts, strict=True)
    return tuple(np.ascontiguousarray(to_storage(a, layout)) for a, layout in pairs)


def _close(actual: Array, expected: Array, least: Array, most: Array) -> bool:
    """Return whether results differ no more than reordered sums may, and floats also by their
    type's tolerance.
    """
    if not holds_floats(expected.dtype):
        return bool(((least <= actual) & (actual <= most)).all())
    wide, reference = actual.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(reference)
    if not np.array_equal(wide[~finite], reference[~finite], equal_nan=True):
        return False
    largest = np.abs(reference[finite]).max(initial=0.0)
    below, above = (
        (sign * (bound.astype(np.float64) - wide))[finite].max(initial=0.0)
        for sign, bound in ((1, least), (-1, most))
    )
    allowed = TOLERANCES.get(expected.dtype.itemsize, 2e-2) * largest
    return bool(max(below, above) <= allowed)
