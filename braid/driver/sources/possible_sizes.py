"""Find the requested sizes at which a model is valid, and the dims that are equal."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations as pick
from math import prod

from braid.dialects.braid.decided_sizes import decides_sizes
from braid.driver.sources.open_model import Buckets, OpenModel, Sizes, combinations
from braid.driver.sources.variants import Variant
from braid.support.diagnostics import Diagnostic, emit
from braid.support.errors import BraidError
from braid.support.option_names import option_text

_MOST_EQUAL = 6
"""Dims of which every set is tried."""


@dataclass(frozen=True)
class PossibleVariants:
    """The `variants` at which the model is valid, and the `sizes` that these have."""

    sizes: dict[str, list[int]]
    variants: list[Variant]

    @property
    def is_grid(self) -> bool:
        """True if every combination of the sizes has a variant."""
        return prod(map(len, self.sizes.values())) == len(self.variants)


def possible_variants(
    model: OpenModel, sizes: Mapping[str, Sequence[int]], required: Buckets
) -> PossibleVariants:
    """Import the model at each combination of sizes; where it is not valid, a remark says why.

    Raises:
        BraidError: it never is, or never at a size that is `required`; data decide its sizes.

    """
    variants: list[Variant] = []
    errors: list[tuple[Sizes, BraidError]] = []
    for chosen in combinations(sizes):
        try:
            variants.append(Variant(chosen, model.at(chosen)))
        except BraidError as error:
            errors.append((chosen, error))
    if not variants:
        _refuse_decided_sizes(model, errors)
    found = {dim: sorted({v.sizes[dim] for v in variants}) for dim in sizes}
    for dim in sizes:
        for size in sizes[dim]:
            if size not in found[dim] and (dim in required or not variants):
                raise next(error for chosen, error in errors if chosen[dim] == size)
    for _, error in errors:
        emit(Diagnostic("remark", f"no variant {error.message}", error.location))
    return PossibleVariants(found, variants)


def _refuse_decided_sizes(model: OpenModel, errors: Sequence[tuple[Sizes, BraidError]]) -> None:
    """Raise BraidError where the model is valid at all sizes, and only there: data decide some."""
    try:
        imported = model.at({}, keep_open=True)
    except BraidError:
        return
    if decides_sizes(imported.module):
        raise BraidError(
            "data decide sizes of the model, so that it has no variants for given sizes",
            location=next((error.location for _, error in errors), None),
            hint=f"leave out {option_text('shape_buckets')} and {option_text('shape_bounds')}: one "
            "code for all sizes is then compiled",
        )


def one_for_equal(
    model: OpenModel, sizes: dict[str, list[int]]
) -> tuple[OpenModel, dict[str, list[int]]]:
    """Make one dim of those that have equal sizes given, and at which the model is else not valid.

    Exporters give a name to the batch of each input. A run checks that the inputs agree.
    """
    equal: dict[str, str] = {}
    for dim, *others in _equal_dims(model, sizes):
        equal.update(dict.fromkeys(others, dim))
        listed = ", ".join(f"'{name}'" for name in (dim, *others))
        message = f"dims {listed} are equal: if they differ, and none is 1, the model is invalid"
        emit(Diagnostic("remark", message))
    left = {dim: sizes[dim] for dim in sizes if dim not in equal}
    return (model.with_equal(equal) if equal else model), left


def _equal_dims(model: OpenModel, sizes: Mapping[str, Sequence[int]]) -> Iterator[Sequence[str]]:
    """Return classes of dims that only together can be larger by one than their largest size."""
    largest = {name: max(2, *each) for name, each in sizes.items()}

    def is_valid(larger: Sequence[str]) -> bool:
        try:
            model.at(largest | {name: largest[name] + 1 for name in larger})
        except BraidError:
            return False
        return True

    if len(sizes) < 2 or not is_valid(()):
        return
    waiting = [dim for dim in sizes if not is_valid([dim])]
    while len(waiting) > 1 and len(waiting) <= _MOST_EQUAL:
        dim, *others = waiting
        others = [other for other in others if sizes[other] == sizes[dim]]
        sets = ((dim, *s) for n in range(1, len(others) + 1) for s in pick(others, n))
        found = next(filter(is_valid, sets), (dim,))
        if len(found) > 1:
            yield found
        waiting = [other for other in waiting if other not in found]
