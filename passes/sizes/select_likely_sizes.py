"""`select-likely-sizes`: the sizes at which decisions about open ones are made."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
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
from braid.support.sizes.checks import SizeChecks
from braid.support.sizes.evaluation import evaluate
from braid.support.sizes.expression import Extent, symbols_of

_OTHERS = (256, 512, 1024, 64, 48, 32, 16, 8, 4, 2, 1)
"""These are tried for all sizes but those of 1 where the first guess is impossible."""

_MOST_REPAIRED = 4
"""Guesses from which on sizes are changed: a model that is impossible takes time by these."""


@dataclass(frozen=True)
class SelectLikelySizesPass(ModulePass):
    """Write down for each symbol the value at which decisions are made.

    It is `likely_sizes` if all checks of the function hold there and no dim computed from them is
    1; else the first of some other sizes for which that is true, or the one with fewest such dims.
    If the checks hold at none of them, these sizes are changed one after the other such that fewer
    checks fail, the likely ones of `braid.symbols` last. Run it after `collect-size-checks`.

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
            checks = size_checks_of(functions)
            tried = [{**sizes, **checks.fixed} for sizes in _candidates(guess)]
            said = {name for name, own in checks.assumed.items() if own.likely}
            pairs = product((said, ()), tried[:_MOST_REPAIRED])
            repaired = filter(None, (checks.solved(sizes, fixed) for fixed, sizes in pairs))
            possible = filter(checks.hold, tried)
            sizes = min(possible, key=_Extents.of(functions).short, default=None)
            sizes = sizes or next(repaired, guess)
            for function in functions:
                _write(function, sizes)
            text = ", ".join(f"{name} = {size}" for name, size in sizes.items())
            emit_remark(functions[0], self.name, f"decisions are made at {text}", **sizes)


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


def size_checks_of(functions: Sequence[FuncOp]) -> SizeChecks:
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
    return SizeChecks.of(found, assumed)
