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
from braid.support.sizes.expression import SizeError

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
            sizes = next(filter(lambda own: _holds(function, own), _candidates(guess)), guess)
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


def _holds(function: FuncOp, sizes: Mapping[str, int]) -> bool:
    """Return whether sizes are allowed, and all checks of a function hold at them."""
    assumed = assumptions_of(function).by_name
    if not all(assumed.get(name, Assumed()).allows(size) for name, size in sizes.items()):
        return False
    held = function.attributes.get(SIZE_CHECKS)
    for entry in cast("ArrayAttr[DictionaryAttr]", held) if isinstance(held, ArrayAttr) else ():
        size = entry.data["size"]
        assert isinstance(size, SizesAttr)
        try:
            value = evaluate(size.get_values()[0], sizes)
        except SizeError:
            return False
        if value < 0 or (value > 0 and "zero" in entry.data):
            return False
    return True
