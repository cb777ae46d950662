"""Checks of sizes: what runs require of the sizes of open dims, and sizes that meet it.

checks = SizeChecks.of([(parse_size("past + new - total"), True)])
checks.solved({"past": 1024, "new": 1, "total": 128}, fixed={"past", "new"})
# {"past": 1024, "new": 1, "total": 1025}
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import starmap

from braid.support.sizes.assumptions import Assumed
from braid.support.sizes.evaluation import evaluate
from braid.support.sizes.expression import Extent, SizeError, Symbol, symbols_of, terms_of
from braid.support.sizes.program import is_int64

_FIRST = (256, 512, 1024, 64, 48, 32, 16, 8, 4, 2, 1)
_NUMBERS = (*_FIRST, *(number for number in range(65) if number not in _FIRST))
"""These are tried for one size where a check does not hold."""

_MOST_STEPS = 16
"""How many sizes are changed one after the other."""

_NO_VALUE = 1 << 62
"""The number of missing facts if a size has no value."""


@dataclass(frozen=True)
class SizeChecks:
    """Sizes that must be 0, or else must not be negative, and what is assumed of symbols."""

    checked: tuple[tuple[Extent, bool], ...] = ()
    """Each size, and whether it must be 0."""
    assumed: Mapping[str, Assumed] = field(default_factory=dict[str, Assumed])

    @staticmethod
    def of(
        checked: Iterable[tuple[Extent, bool]], assumed: Mapping[str, Assumed] | None = None
    ) -> "SizeChecks":
        """Return the checks of these sizes, each of which is 0 (true) or not negative."""
        return SizeChecks(tuple(dict.fromkeys(checked)), assumed or {})

    def among(self, names: Collection[str]) -> "SizeChecks":
        """Return the checks that are of these symbols alone."""
        kept = (own for own in self.checked if symbols_of(own[0]) <= set(names))
        return SizeChecks(tuple(kept), self.assumed)

    @property
    def fixed(self) -> dict[str, int]:
        """Return the sizes for which a check states a number."""
        found: dict[str, int] = {}
        for size, is_zero in self.checked:
            terms = dict(terms_of(size))
            offset = terms.pop((), 0)
            if is_zero and len(terms) == 1:
                ((factors, slope),) = terms.items()
                if isinstance(factors[0], Symbol) and len(factors) == 1 and -offset // slope >= 0:
                    found[factors[0].name] = -offset // slope
        return found

    def sums_of(self, parts: Collection[str]) -> set[str]:
        """Return the symbols that are sums with one of `parts`, as `total` is where it must be
        `past + new`.
        """
        found: set[str] = set()
        for size, is_zero in self.checked:
            slopes = {
                factors[0].name: slope
                for factors, slope in terms_of(size)
                if len(factors) == 1 and isinstance(factors[0], Symbol)
            }
            signs = {slopes[name] > 0 for name in slopes.keys() & set(parts)}
            if is_zero and len(signs) == 1:
                found |= {name for name, slope in slopes.items() if (slope > 0) not in signs}
        return found

    def hold(self, sizes: Mapping[str, int]) -> bool:
        """Return whether sizes are allowed, and all checks hold."""
        return self._allow(sizes) and not self._failing(sizes)

    def solved(
        self, sizes: Mapping[str, int], fixed: Collection[str] = ()
    ) -> Mapping[str, int] | None:
        """Return sizes at which all checks hold, found from `sizes` on; None if none are found.

        Each step changes one size of the first check that does not hold, to the number at which the
        fewest checks fail, a size that was changed least often changes, the fewest sizes are 0, and
        the least is lacking, in this order. Parts that add up to what they are cut from take
        several steps. The sizes of `fixed` stay as they are.
        """
        times = Counter[str]()
        for _ in range(_MOST_STEPS):
            failing = self._failing(sizes)
            if not failing:
                return sizes
            size = failing[0][0]
            changes = [
                (name, number)
                for name in sorted(symbols_of(size) & sizes.keys() - set(fixed))
                for number in (*_roots(size, name, sizes), *_NUMBERS)
                if self._allows(name, number)
            ]
            if not changes:
                return None
            name, number = min(changes, key=lambda own: self._rank(sizes, *own, times[own[0]]))
            times[name] += 1
            sizes = {**sizes, name: number}
        return None

    def _rank(
        self, sizes: Mapping[str, int], name: str, number: int, times: int
    ) -> tuple[int, int, int, int]:
        """Return the rank of a size that becomes this number, and was changed that often."""
        changed = {**sizes, name: number}
        lacks = [(_lacks(*own, sizes), _lacks(*own, changed)) for own in self._by_name[name]]
        failing = sum((after > 0) - (before > 0) for before, after in lacks)
        zeros = (number == 0) - (sizes[name] == 0)
        return failing, times, zeros, sum(after - before for before, after in lacks)

    @cached_property
    def _by_name(self) -> Mapping[str, Sequence[tuple[Extent, bool]]]:
        """The checks that have a size."""
        found: dict[str, list[tuple[Extent, bool]]] = defaultdict(list)
        for check in self.checked:
            for name in symbols_of(check[0]):
                found[name].append(check)
        return found

    def _allows(self, name: str, number: int) -> bool:
        return self.assumed.get(name, Assumed()).allows(number)

    def _allow(self, sizes: Mapping[str, int]) -> bool:
        return all(starmap(self._allows, sizes.items()))

    def _failing(self, sizes: Mapping[str, int]) -> list[tuple[Extent, bool]]:
        return [check for check in self.checked if _lacks(*check, sizes) > 0]


def _roots(size: Extent, name: str, sizes: Mapping[str, int]) -> Iterator[int]:
    """Yield the value of a symbol at which a size is 0, if it is linear in the symbol there."""
    try:
        offset, first = (evaluate(size, {**sizes, name: number}) for number in (0, 1))
    except SizeError:
        return
    slope = first - offset
    if slope != 0 and -offset % slope == 0 and -offset // slope >= 0:
        root = -offset // slope
        if is_int64(root):
            yield root


def _lacks(size: Extent, is_zero: bool, sizes: Mapping[str, int]) -> int:
    """Return how far a size is from 0, or from not being negative; very far if it has no value."""
    try:
        value = evaluate(size, sizes)
    except SizeError:
        return _NO_VALUE
    return abs(value) if is_zero else max(0, -value)


NO_CHECKS = SizeChecks()
