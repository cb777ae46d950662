"""One run of a compiled kernel on given arrays, in a worker; and what it should have computed."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import ml_dtypes
import numpy as np
from xdsl.ir import Operation, SSAValue

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.base import TensorOp, element_type_of, shape_of
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.dtypes import holds_floats, is_float, to_numpy
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.relayout import Array, to_storage
from braid.lowering.cpu.call import LoadedKernel
from braid.targets.costs.op_amounts import amounts_of

TOLERANCES = {2: 2e-2, 4: 1e-4, 8: 1e-10}
"""Largest ‖y − ref‖∞ / ‖ref‖∞ by bytes of a float: what another order of sums may change."""

_SMALL, _WIDE = 7, 1000
"""The largest divisors, exponents and counts of bits, and integers of more than 8 bits otherwise,
of which products and sums stay within 32 bits."""
_OF_SMALL_INTEGERS = {"div", "rem", "pow", "shift_left", "shift_right"}


@dataclass(frozen=True)
class RunRequest:
    """A compiled kernel, its operands as stored, and its results as they are before it runs."""

    object_code: bytes
    symbol: str
    grid: int
    scratch_bytes: int
    operands: tuple[Array, ...]
    results: tuple[Array, ...]
    libraries: tuple[str, ...] = ()


def run_kernel(request: RunRequest) -> tuple[Array, ...]:
    """The results as stored."""
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
    """Random operands of a group and its results by the numpy semantics, both as stored."""

    operands: tuple[Array, ...]
    results: tuple[Array, ...]

    @staticmethod
    def of(group: FusedOp, choice: LayoutChoice, seed: int = 0) -> "Reference | None":
        """None for a group with ops that say no numpy semantics."""
        generator = np.random.default_rng(seed)
        scales, places, is_small = _scales(group), _places(group), _wants_small(group)
        logical: list[Array] = []
        for value in group.body.block.args:
            if value in places:
                logical.append(np.zeros(shape_of(value), to_numpy(element_type_of(value))))
            elif is_float(element_type_of(value)):
                logical.append(_floats(value, generator, scales.get(value, 1.0)))
            else:
                logical.append(_integers(value, generator, is_small))
        values: dict[SSAValue, Array] = dict(zip(group.body.block.args, logical, strict=True))
        _clear_zeros(group, values)
        for op in group.body.block.ops:
            if op is group.terminator:
                continue
            if not isinstance(op, TensorOp):
                return None
            results = op.evaluate(*(values[operand] for operand in op.operands))
            values.update(zip(op.results, results, strict=True))
        results = [values[value] for value in group.terminator.arguments]
        return Reference(_stored(logical, choice.operands), _stored(results, choice.results))

    def unwritten(self) -> tuple[Array, ...]:
        """Results before a kernel has run: what is not written shows."""
        return tuple(np.full_like(array, 77) for array in self.results)

    def agrees(self, results: Sequence[Array]) -> bool:
        """Whether `results`, as stored, are right up to the order of sums."""
        return all(map(_close, results, self.results))


def _clear_zeros(group: FusedOp, values: Mapping[SSAValue, Array]) -> None:
    """Makes the elements zeros of which convolutions of `group` say that they are."""
    for op in group.body.block.ops:
        if isinstance(op, ConvOp) and op.input in values:
            array, pairs = values[op.input], zip(*op.zeros, strict=True)
            for dim, (low, high) in enumerate(pairs, 2):
                along = np.moveaxis(array, dim, 0)
                along[:low] = 0
                along[max(len(along) - high, 0) :] = 0


def _scales(group: FusedOp) -> dict[SSAValue, float]:
    """What operands of products are at most, where one product stands behind the other.

    Sums then stay as large as what they are of (He et al., "Delving deep into rectifiers", 2015),
    and do not leave the numbers of a type however many there are.
    """
    terms: dict[Operation, float] = {}
    for op in group.body.block.ops:
        if isinstance(op, TensorOp) and op.results:
            multiplied = amounts_of(op, static=True).by_resource.get("matrix", 0)
            terms[op] = multiplied / max(2 * math.prod(shape_of(op.results[0])), 1)
    products = [op for op, count in terms.items() if count > 0]
    if len(products) < 2:
        return {}
    return {value: (6 / terms[op]) ** 0.5 for op in products for value in op.operands}


def _places(group: FusedOp) -> set[SSAValue]:
    """Values that indices are computed of: where these are 0, they are valid for any shape."""
    places: set[SSAValue] = set()
    for op in reversed(group.body.block.ops):
        is_place = any(result in places for result in op.results)
        indices = getattr(op, "indices", None)
        places.update(v for v in op.operands if is_place or v is indices)
    return places


def _wants_small(group: FusedOp) -> bool:
    """Whether integers are divisors, exponents or counts of bits, few of which are valid."""
    names = (op.name.removeprefix("braid.") for op in group.body.block.ops)
    return not _OF_SMALL_INTEGERS.isdisjoint(names)


def _floats(value: SSAValue, generator: np.random.Generator, scale: float) -> Array:
    dtype = to_numpy(element_type_of(value))
    return generator.uniform(-scale, scale, shape_of(value)).astype(dtype)


def _integers(value: SSAValue, generator: np.random.Generator, is_small: bool) -> Array:
    """All that a type of up to 8 bits holds; of wider ones as many as `_WIDE` on either side."""
    dtype, shape = np.dtype(to_numpy(element_type_of(value))), shape_of(value)
    if dtype == np.bool_:
        return generator.integers(0, 2, shape).astype(dtype)
    limits = ml_dtypes.iinfo(dtype)
    low, high = max(int(limits.min), -_WIDE), min(int(limits.max), _WIDE)
    if is_small:
        low, high = 1, min(high, _SMALL)
    return generator.integers(low, high, shape, endpoint=True).astype(dtype)


def _stored(arrays: Sequence[Array], layouts: Sequence[Layout]) -> tuple[Array, ...]:
    pairs = zip(arrays, layouts, strict=True)
    return tuple(np.ascontiguousarray(to_storage(a, layout)) for a, layout in pairs)


def _close(actual: Array, expected: Array) -> bool:
    if not holds_floats(expected.dtype):
        return np.array_equal(actual, expected)
    wide, reference = actual.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(reference)
    if not np.array_equal(wide[~finite], reference[~finite], equal_nan=True):
        return False
    largest = np.abs(reference[finite]).max(initial=0.0)
    error = np.abs(wide[finite] - reference[finite]).max(initial=0.0)
    return bool(error <= TOLERANCES.get(expected.dtype.itemsize, 2e-2) * largest)
