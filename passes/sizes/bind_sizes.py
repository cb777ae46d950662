"""`bind-sizes`: numbers in place of symbols, in types and wherever else sizes stand."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from braid.analysis.sizes.binding import Binding
from braid.dialects.braid.attribute_names import SYMBOLS
from braid.dialects.braid.sizes import (
    assumptions_of,
    likely_sizes,
    symbols_attribute,
    symbols_used,
)
from braid.support.errors import BraidError
from braid.support.sizes.assumptions import Assumed


@dataclass(frozen=True)
class BindSizesPass(ModulePass):
    """Put numbers in place of symbols.

    In: any module. `values` lists names and numbers, such as `values="batch=1,sequence=128"`.
    Out: no type, slice, padding or `braid.size_values` has these symbols; what has no symbol left
    is as in a module of fixed sizes. Raises BraidError for a name that no function has, a number
    that it does not allow, and where an op is impossible at these sizes.

    ```mlir
    func.func @main(%x: tensor<?x8xf32, #braid.sizes<["batch"]>>) -> …
    // becomes, with values="batch=4"
    func.func @main(%x: tensor<4x8xf32>) -> …
    ```
    """

    name = "bind-sizes"

    values: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Put the numbers in place of the symbols; raises as the class says."""
        bind_sizes(op, parse_sizes(self.name, self.values))


_NUMBER = re.compile(r"\d{1,18}", re.ASCII)


def parse_sizes(pass_: str, text: str) -> dict[str, int]:
    """Return names and numbers of `name=number,…`, an option of a pass.

    Raises BraidError for any other text.
    """
    found: dict[str, int] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, _, number = entry.rpartition("=")
        if not name or not _NUMBER.fullmatch(number.strip()):
            raise BraidError(
                f"{pass_}: '{entry}' is no name and number",
                hint='write "batch=1,sequence=128"',
            )
        found[name.strip()] = int(number)
    return found


def bind_sizes(module: ModuleOp, values: Mapping[str, int]) -> None:
    """Put the numbers in place of the symbols in all functions of a module.

    Raises BraidError for a name that no function has, a number that is not allowed, and where an
    op is impossible at these sizes.
    """
    bind_functions([op for op in module.walk() if isinstance(op, FuncOp)], values)


def bind_functions(functions: Sequence[FuncOp], values: Mapping[str, int]) -> None:
    """Put the numbers in place of the symbols in some functions; raises as `bind_sizes`."""
    _check(functions, values)
    _bind([(function, values) for function in functions])


def bind_likely_sizes(module: ModuleOp) -> None:
    """Put its likely sizes in place of the symbols of each function of a module.

    A symbol has another one in a function where a size that it depends on is fixed. Functions
    without bindings have those of the module. Raises BraidError where an op is impossible at these
    sizes.
    """
    functions = [op for op in module.walk() if isinstance(op, FuncOp)]
    of_module = likely_sizes(module)
    _bind(
        [
            (function, likely_sizes(function) if SYMBOLS in function.attributes else of_module)
            for function in functions
        ]
    )


def _bind(functions: Sequence[tuple[FuncOp, Mapping[str, int]]]) -> None:
    """Replace the symbols of each function by numbers, then verify all functions."""
    for function, values in functions:
        Binding.of(values).bind_all(function)
        _drop_symbols(function, values)
    for function, values in functions:
        Binding.of(values).verify(function)


def _check(functions: Iterable[FuncOp], values: Mapping[str, int]) -> None:
    """Raise BraidError for an unknown symbol, or a number that a symbol does not allow."""
    known = {name: Assumed() for f in functions for name in symbols_used(f)}
    known |= {name: own for f in functions for name, own in assumptions_of(f).symbols}
    for name, number in values.items():
        if name not in known:
            names = ", ".join(sorted(known)) or "none"
            raise BraidError(
                f"there is no size '{name}' to bind", hint=f"the open sizes are: {names}"
            )
        assumed = known[name]
        if not assumed.allows(number):
            most = "" if assumed.maximum is None else f" and at most {assumed.maximum}"
            multiple = "" if assumed.multiple_of == 1 else f", a multiple of {assumed.multiple_of}"
            raise BraidError(
                f"size '{name}' is {number}, expected at least {assumed.minimum}{most}{multiple}"
            )


def _drop_symbols(function: FuncOp, values: Mapping[str, int]) -> None:
    left = {name: own for name, own in assumptions_of(function).symbols if name not in values}
    if left:
        function.attributes[SYMBOLS] = symbols_attribute(left)
    else:
        function.attributes.pop(SYMBOLS, None)
