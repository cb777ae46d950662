"""`add-specializations`: functions of a model for some sizes, beside that for all."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute
from xdsl.passes import ModulePass

from braid.analysis.diagnostics.locations import source_location
from braid.dialects.braid.attribute_names import SPECIALIZE, SPECIALIZED
from braid.dialects.braid.base import extents_of
from braid.dialects.braid.decided_sizes import decides_sizes
from braid.dialects.braid.measured_times import drop_measured
from braid.dialects.braid.sizes import value_sizes
from braid.dialects.braid.state import state_of
from braid.dialects.braid.variants import (
    free_symbols,
    public_functions,
    sizes_attribute,
    sizes_in,
    specialized_sizes,
)
from braid.passes.sizes.bind_sizes import bind_functions, parse_sizes
from braid.support.errors import BraidError
from braid.support.sizes.expression import Size, Symbol, atom_alone


@dataclass(frozen=True)
class AddSpecializationsPass(ModulePass):
    """Add functions for sizes that are asked for, and for steps that append one row to a state.

    Decisions are made at likely sizes; at other frequent sizes, separate decisions pay, and code
    for fixed sizes is faster. The same holds for steps of one token, which are most runs of a
    decoder. The runtime runs the first function whose sizes the dims have, and the one for all
    elsewhere.

    In: a module with one public function. `sizes` lists sizes by name, those of one function
    separated by commas and functions by semicolons: `sizes="batch=1,sequence=128;batch=1"`; so does
    `braid.specialize`, which `select-variants` writes and which ends here. Out: copies of the
    function after it, with these numbers in place of symbols, and with `braid.specialized`; what
    has most sizes comes first. If runs append to a state (`append-in-place`), one more function has
    1 in place of the number of appended rows, if that is a separate symbol. A module with phases
    stays as it is. Raises BraidError for a name that the function has not, a number that is not
    allowed, and sizes at which an op is impossible.

    ```mlir
    func.func @main(%ids: tensor<?x?xi64, #braid.sizes<["batch", "new"]>>, …)
    func.func @main_0(%ids: tensor<?x1xi64, #braid.sizes<["batch"]>>, …)
        attributes {braid.specialized = {new = 1 : i64}}
    ```
    """

    name = "add-specializations"

    sizes: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Add the functions after the public one; raises as described for the class."""
        functions = public_functions(op)
        selected = [each for function in functions for each in _selected(function)]
        asked = [parse_sizes(self.name, text) for text in self.sizes.split(";") if text.strip()]
        if len(functions) != 1 or decides_sizes(op) or specialized_sizes(functions[0]):
            if asked:
                raise BraidError(
                    "there are several functions already, which have sizes of their own",
                    hint="specialize a model whose sizes are open, and not decided by data",
                )
            return
        (function,) = functions
        asked += selected
        symbols, values = set(_appended(function)), set(chain(*value_sizes(function)))
        if len(symbols) == 1 and not symbols & values:
            asked.append(dict.fromkeys(symbols, 1))
        fewest_first = sorted(_distinct(asked), key=len)
        for own in fewest_first:
            _specialize(op, function, own)


def _selected(function: FuncOp) -> list[dict[str, int]]:
    """Return the sizes that `select-variants` chose, whose attribute ends here.

    Raises BraidError for an attribute that has another form.
    """
    attribute = function.attributes.pop(SPECIALIZE, ArrayAttr([]))
    entries = cast("tuple[Attribute, ...]", getattr(attribute, "data", ()))
    dictionaries = [each for each in entries if isinstance(each, DictionaryAttr)]
    found = [sizes_in(each) for each in dictionaries]
    if not isinstance(attribute, ArrayAttr) or len(found) != len(entries) or None in found:
        raise BraidError(
            f"'{SPECIALIZE}' is {attribute}, expected an array of sizes by name",
            location=source_location(function),
            hint="such as [{batch = 1 : i64}]",
        )
    return [sizes for sizes in found if sizes is not None]


def _distinct(asked: Sequence[Mapping[str, int]]) -> list[Mapping[str, int]]:
    """Return sizes that are not asked for before."""
    return list({frozenset(own.items()): own for own in reversed(asked) if own}.values())[::-1]


def _appended(function: FuncOp) -> Iterator[str]:
    """Yield the symbol that is the number of rows that a run appends, for each state."""
    types = function.function_type.outputs.data
    end = function.body.block.last_op
    assert end is not None
    for port in state_of(function):
        if not port.appended or not isinstance(types[port.output], TensorType):
            continue
        before = extents_of(function.body.block.args[port.input])
        after = extents_of(end.operands[port.output])
        changed = [new - old for old, new in zip(before, after, strict=True) if new != old]
        for rows in changed:
            atom = atom_alone(rows) if isinstance(rows, Size) else None
            if isinstance(atom, Symbol):
                yield atom.name


def _specialize(module: ModuleOp, function: FuncOp, sizes: Mapping[str, int]) -> None:
    """Add a copy of a function with these sizes right after it."""
    copy = function.clone()
    copy.sym_name = StringAttr(next(free_symbols(module, f"{function.sym_name.data}_")))
    bind_functions([copy], sizes)
    copy.attributes[SPECIALIZED] = sizes_attribute(sizes)
    for op in copy.walk():
        drop_measured(op)  # a profile timed code for all sizes, at any of them
    module.body.block.insert_op_after(copy, function)
