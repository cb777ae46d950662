"""`select-likely-sizes`: the sizes at which decisions about open ones are made."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from braid.analysis.diagnostics.remarks import emit_remark
from braid.dialects.braid.attribute_names import SIZE_CHECKS, SYMBOLS
from braid.dialects.braid.sizes import (
    SizesAttr,
    assumptions_of,
    is_open,
    likely_sizes,
    symbols_attribute,
)
from braid.support.sizes.assumptions import Assumed
from braid.support.sizes.evaluation import evaluate
from braid.support.sizes.expression import Extent, SizeError, Symbol, terms_of

_OTHERS = (256, 512, 1024, 64, 48, 32, 16, 8, 4, 2, 1)
"""What is tried for all sizes but those of 1 where the first guess is impossible."""


@dataclass(frozen=True)
class SelectLikelySizesPass(ModulePass):
    """Write down for each symbol the value at which decisions are made.

    It is what `likely_sizes` says if all checks of the function hold there; else one of some other
    sizes at which they do. Run it after `collect-size-checks`.

    In: functions with open sizes. Out: `braid.symbols` with `likely` values.

    ```mlir
    func.func @main(…) attributes {braid.symbols = {n = #braid.symbol<{likely = array<i64: 128>}>}}
    ```
    """

    name = "select-likely-sizes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """See the class."""
        functions = [each for each in op.ops if isinstance(each, FuncOp) and is_open(each)]
        for function in functions:
            guess = likely_sizes(function)
            fixed = _fixed(function)
            candidates = ({**sizes, **fixed} for sizes in _candidates(guess))
            sizes = next((own for own in candidates if _holds(function, own)), guess)
            assumed = assumptions_of(function).by_name
            likely = {
                name: replace(assumed.get(name, Assumed()), likely=(size,))
                for name, size in sizes.items()
            }
            function.attributes[SYMBOLS] = symbols_attribute(
                dict(sorted({**assumed, **likely}.items()))
            )
            said = ", ".join(f"{name} = {size}" for name, size in sizes.items())
            emit_remark(function, self.name, f"decisions are made at {said}", **sizes)


def _candidates(guess: Mapping[str, int]) -> Iterator[Mapping[str, int]]:
    yield guess
    for other in _OTHERS:
        yield {name: size if size == 1 else other for name, size in guess.items()}
    for other in _OTHERS:
        yield dict.fromkeys(guess, other)


def _fixed(function: FuncOp) -> dict[str, int]:
    """Return the sizes of which a check says that they are a number."""
    found: dict[str, int] = {}
    for size, is_zero in _checked(function):
        terms = dict(terms_of(size))
        offset = terms.pop((), 0)
        if is_zero and len(terms) == 1:
            ((factors, slope),) = terms.items()
            if isinstance(factors[0], Symbol) and len(factors) == 1 and -offset // slope >= 0:
                found[factors[0].name] = -offset // slope
    return found


def _checked(function: FuncOp) -> Iterator[tuple[Extent, bool]]:
    """Yield the sizes that are checked, and whether they must be zero."""
    held = function.attributes.get(SIZE_CHECKS)
    for entry in cast("ArrayAttr[DictionaryAttr]", held) if isinstance(held, ArrayAttr) else ():
        size = entry.data["size"]
        assert isinstance(size, SizesAttr)
        yield size.get_values()[0], "zero" in entry.data


def _holds(function: FuncOp, sizes: Mapping[str, int]) -> bool:
    """Return whether sizes are allowed, and all checks of a function hold at them."""
    assumed = assumptions_of(function).by_name
    if not all(assumed.get(name, Assumed()).allows(size) for name, size in sizes.items()):
        return False
    for size, is_zero in _checked(function):
        try:
            value = evaluate(size, sizes)
        except SizeError:
            return False
        if value < 0 or (value > 0 and is_zero):
            return False
    return True
