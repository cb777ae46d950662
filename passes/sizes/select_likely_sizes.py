"""`select-likely-sizes`: the sizes at which decisions about open ones are made."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import starmap
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation
from xdsl.passes import ModulePass

from braid.analysis.diagnostics.remarks import emit_remark
from braid.dialects.braid.attribute_names import BRANCH_SIZE_CHECKS, SIZE_CHECKS, SYMBOLS
from braid.dialects.braid.base import extents_of
from braid.dialects.braid.decided_sizes import phases_of
from braid.dialects.braid.sizes import (
    SizesAttr,
    assumptions_of,
    is_open,
    likely_sizes,
    symbols_attribute,
    symbols_used,
)
from braid.support.sizes.assumptions import Assumed
from braid.support.sizes.evaluation import evaluate
from braid.support.sizes.expression import Extent, SizeError, Symbol, symbols_of, terms_of
from braid.support.sizes.program import is_int64

_OTHERS = (256, 512, 1024, 64, 48, 32, 16, 8, 4, 2, 1)
"""These are tried for all sizes but those of 1 where the first guess is impossible."""

_NUMBERS = (*_OTHERS, *(number for number in range(65) if number not in _OTHERS))
"""These are tried for one size where a check does not hold."""

_MOST_STEPS = 16
"""How many sizes are changed one after the other."""

_NO_VALUE = 1 << 62
"""The number of missing facts if a size has no value."""

_MOST_REPAIRED = 4
"""Guesses from which on sizes are changed: a model that is impossible takes time by these."""


@dataclass(frozen=True)
class SelectLikelySizesPass(ModulePass):
    """Write down for each symbol the value at which decisions are made.

    It is `likely_sizes` if all checks of the function hold there and no dim computed from them is
    1; else the first of some other sizes for which that is true, or the one with fewest such dims.
    If the checks hold at none of them, these sizes are changed one after the other such that fewer
    checks fail. Run it after `collect-size-checks`.

    In: functions with open sizes. Out: `braid.symbols` with `likely` values.

    ```mlir
    func.func @main(…) attributes {braid.symbols = {n = #braid.symbol<{likely = array<i64: 128>}>}}
    ```
    """

    name = "select-likely-sizes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Write the likely sizes of every function with open ones."""
        phases = phases_of(op)
        functions = [each for each in op.ops if isinstance(each, FuncOp) and is_open(each)]
        if phases:  # a size has one likely value in all of them
            self._select(op, phases)
            return
        for function in functions:
            self._select(function, [function])

    def _select(self, root: Operation, functions: Sequence[FuncOp]) -> None:
        """Write the likely sizes of functions, which are all that `root` is or has."""
        guess = likely_sizes(root)
        if guess:
            checks = _Checks.of(functions)
            tried = [{**sizes, **checks.fixed} for sizes in _candidates(guess)]
            repaired = filter(None, map(checks.repaired, tried[:_MOST_REPAIRED]))
            possible = filter(checks.hold, tried)
            sizes = min(possible, key=_Extents.of(functions).short, default=None)
            sizes = sizes or next(repaired, guess)
            for function in functions:
                _write(function, sizes)
            said = ", ".join(f"{name} = {size}" for name, size in sizes.items())
            emit_remark(functions[0], self.name, f"decisions are made at {said}", **sizes)


def _write(function: FuncOp, sizes: Mapping[str, int]) -> None:
    """Write the likely sizes of the symbols that a function uses."""
    assumed = assumptions_of(function).by_name
    likely = {
        name: replace(assumed.get(name, Assumed()), likely=(sizes[name],))
        for name in symbols_used(function) & sizes.keys()
    }
    if likely:
        function.attributes[SYMBOLS] = symbols_attribute(
            dict(sorted({**assumed, **likely}.items()))
        )


def _candidates(guess: Mapping[str, int]) -> Iterator[Mapping[str, int]]:
    yield guess
    for other in _OTHERS:
        yield {name: size if size == 1 else other for name, size in guess.items()}
    for other in _OTHERS:
        yield dict.fromkeys(guess, other)


@dataclass(frozen=True)
class _Extents:
    """The different sizes that dims of a function's tensors have."""

    sizes: tuple[Extent, ...]

    @staticmethod
    def of(functions: Sequence[FuncOp]) -> "_Extents":
        """Return the sizes in the types of all results, but not of those in inner regions."""
        ops = (op for function in functions for op in function.body.block.ops)
        results = (result for op in ops for result in op.results)
        tensors = (result for result in results if isinstance(result.type, TensorType))
        sizes = (size for value in tensors for size in extents_of(value))
        return _Extents(tuple(dict.fromkeys(size for size in sizes if not isinstance(size, int))))

    def short(self, values: Mapping[str, int]) -> int:
        """Return how many sizes are 1 or 0 though no symbol of theirs is.

        With an extent of 1 any layout and any tile is free, so decisions there say little about
        larger extents.
        """
        return sum(
            evaluate(size, values) <= 1
            for size in self.sizes
            if all(values[name] > 1 for name in symbols_of(size))
        )


@dataclass(frozen=True)
class _Checks:
    """The checks of a function: sizes that must be 0, or else must not be negative."""

    checked: tuple[tuple[Extent, bool], ...]
    assumed: Mapping[str, Assumed]

    @staticmethod
    def of(functions: Sequence[FuncOp]) -> "_Checks":
        """Return the checks of functions and of their branches."""
        held: list[Attribute] = []
        for function in functions:
            held.append(function.attributes.get(SIZE_CHECKS, ArrayAttr([])))
            for op in function.walk():
                held += cast("ArrayAttr[Attribute]", op.attributes.get(BRANCH_SIZE_CHECKS, ()))
        found: list[tuple[Extent, bool]] = []
        for entry in (entry for each in held for entry in cast("ArrayAttr[DictionaryAttr]", each)):
            size = entry.data["size"]
            assert isinstance(size, SizesAttr)
            found.append((size.get_values()[0], "zero" in entry.data))
        assumed = {name: own for f in functions for name, own in assumptions_of(f).symbols}
        return _Checks(tuple(dict.fromkeys(found)), assumed)

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

    def hold(self, sizes: Mapping[str, int]) -> bool:
        """Return whether sizes are allowed, and all checks hold."""
        return self._allow(sizes) and not self._failing(sizes)

    def repaired(self, sizes: Mapping[str, int]) -> Mapping[str, int] | None:
        """Return sizes at which all checks hold, found from `sizes` on; None if none are found.

        Each step changes one size of the first check that does not hold, to the number at which the
        fewest checks fail, a size that was changed least often changes, the fewest sizes are 0, and
        the least is lacking, in this order. Parts that add up to what they are cut from take
        several steps.
        """
        times = Counter[str]()
        for _ in range(_MOST_STEPS):
            failing = self._failing(sizes)
            if not failing:
                return sizes
            size = failing[0][0]
            changes = [
                (name, number)
                for name in sorted(symbols_of(size) & sizes.keys())
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
