"""Compiled models with inputs and expected results, kept in a folder for another machine to run.

A case is an artifact `NAME.braid` and the arrays `NAME.npz`: `input0`, …, `result0`, …, each as
bytes, and `share`, the allowed difference from the expected results relative to the largest number
of each; 0 means equal. Reading them needs numpy and `braid-runtime`.
"""

import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import braid
from braid.runtime.dtypes import numpy_dtype
from braid.support.errors import BraidError

Array = NDArray[Any]


def keep_case(
    folder: Path,
    name: str,
    model: "braid.Model",
    inputs: Sequence[Array],
    results: Sequence[Array],
    shares: Sequence[float],
) -> None:
    """Write a case."""
    folder.mkdir(parents=True, exist_ok=True)
    arrays = {f"input{n}": _bytes(array) for n, array in enumerate(inputs)}
    arrays |= {f"result{n}": _bytes(array) for n, array in enumerate(results)}
    arrays["share"] = np.asarray(shares, np.float64)
    np.savez(folder / f"{name}.npz", **arrays)
    model.save(folder / f"{name}.braid")


def kept_names(folder: Path) -> list[str]:
    """Return the names of all cases, in order."""
    return sorted(path.stem for path in folder.glob("*.braid"))


def read_arrays(path: Path) -> dict[str, Array]:
    """Return the arrays of an `.npz` by name. Raises BraidError where it is not there, or
    damaged."""
    try:
        with np.load(path) as kept:
            return dict(kept)
    except OSError as error:
        raise BraidError(f"cannot open '{path}': {error.strerror}") from None
    except (ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise BraidError(f"'{path}' is damaged: {error}") from None


def _bytes(array: Array) -> NDArray[np.uint8]:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


@dataclass(frozen=True)
class KeptCase:
    """A case that was read."""

    model: "braid.Model"
    inputs: list[Array]
    results: list[Array]
    shares: list[float]

    @staticmethod
    def of(folder: Path, name: str) -> "KeptCase":
        """Load the case. Raises BraidError where that cannot be."""
        model = braid.load(folder / f"{name}.braid")
        path = folder / f"{name}.npz"
        kept = read_arrays(path)
        try:
            found = [
                [
                    kept[f"{kind}{n}"].view(numpy_dtype(spec.dtype)).reshape(spec.shape)
                    for n, spec in enumerate(specs)
                ]
                for kind, specs in (("input", model.inputs), ("result", model.outputs))
            ]
            return KeptCase(model, *found, kept["share"].tolist())
        except (KeyError, ValueError) as error:
            raise BraidError(f"'{path}' is not of '{name}.braid': {error}") from None

    def others(self) -> list[Array]:
        """Return inputs with their floats permuted; integers may be indices, and stay."""
        return [a if a.dtype.kind in "iub" else np.roll(a, 1) for a in self.inputs]

    def difference(self, results: Sequence[Array]) -> "Difference":
        """Return the largest difference among the results for `inputs`."""
        found = [
            _difference(n, actual, expected, share)
            for n, (actual, expected, share) in enumerate(
                zip(results, self.results, self.shares, strict=True)
            )
        ]
        return max(found, key=lambda own: own.of_allowed, default=Difference())


@dataclass(frozen=True)
class Difference:
    """The largest error of a result, the tolerance, and the number of elements that exceed it.

    The first of these is at index `place`. Both are infinite for NaN or a wrong infinity.
    """

    result: int = 0
    error: float = 0.0
    allowed: float = 0.0
    wrong: int = 0
    of: int = 0
    place: tuple[int, ...] = ()
    text: str = ""

    def __str__(self) -> str:
        return (
            f"result {self.result}: error {self.error:.3g}, allowed {self.allowed:.3g}, "
            f"{self.wrong} of {self.of}, first at {list(self.place)}: {self.text}"
        )

    @property
    def of_allowed(self) -> float:
        """The error as a fraction of the tolerance."""
        if self.error <= self.allowed:
            return self.error / self.allowed if self.allowed else 0.0
        return self.error / self.allowed if self.allowed else float("inf")


def _difference(number: int, actual: Array, expected: Array, share: float) -> Difference:
    if actual.dtype.kind in "iub":
        errors = np.abs(actual.astype(np.float64) - expected.astype(np.float64))
        errors = np.where(actual == expected, 0.0, np.maximum(errors, 1.0))
        allowed = 0.0
    else:
        a, b = (array.astype(np.float64) for array in (actual, expected))
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        with np.errstate(invalid="ignore"):
            errors = np.where(same, 0.0, np.abs(a - b))
        errors = np.where(np.isnan(errors), np.inf, errors)
        allowed = share * float(np.abs(b[np.isfinite(b)]).max(initial=0.0))
    wrong = np.argwhere(errors > allowed)
    place = tuple(int(n) for n in wrong[0]) if len(wrong) else ()
    text = f"{actual[place]} for {expected[place]}" if len(wrong) else ""
    largest = float(errors.max(initial=0.0))
    return Difference(number, largest, allowed, len(wrong), errors.size, place, text)
