"""`add-specializations`: functions of a model for some sizes, beside that for all."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from braid.analysis.sizes.binding import Binding
from braid.dialects.braid.attribute_names import SPECIALIZED, SYMBOLS
from braid.dialects.braid.base import extents_of
from braid.dialects.braid.decided_sizes import decides_sizes
from braid.dialects.braid.sizes import assumptions_of, symbols_attribute, value_sizes
from braid.dialects.braid.state import state_of
from braid.dialects.braid.variants import (
    free_symbols,
    public_functions,
    sizes_attribute,
    specialized_sizes,
)
from braid.support.sizes.expression import Size, Symbol, atom_alone


@dataclass(frozen=True)
class AddSpecializationsPass(ModulePass):
    """Add a function for steps that append one row to the state of a model.

    Decisions at the length of a prompt are poor for steps of one token, which are most of what a
    decoder runs: the function for these has the size 1 in place of a symbol, and decisions of its
    own. The runtime runs it where the dim has that size, and the function for all sizes elsewhere.

    In: a module with one public function, whose state is appended to (`append-in-place`). Out: a
    copy of it after it, with 1 in place of the number of rows that each run appends, and with
    `braid.specialized`. A module with phases stays as it is, and one where that number is no symbol
    of its own.

    ```mlir
    func.func @main(%ids: tensor<?x?xi64, #braid.sizes<["batch", "new"]>>, …)
    func.func @main_0(%ids: tensor<?x1xi64, #braid.sizes<["batch"]>>, …)
        attributes {braid.specialized = {new = 1 : i64}}
    ```
    """

    name = "add-specializations"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Add the function after the public one."""
        functions = public_functions(op)
        if len(functions) == 1 and not decides_sizes(op) and not specialized_sizes(functions[0]):
            (function,) = functions
            symbols = set(_appended(function))
            values = {name for names in value_sizes(function) for name in names}
            if len(symbols) == 1 and not symbols & values:
                _specialize(op, function, dict.fromkeys(symbols, 1))


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
    """Add a copy of a function with these sizes."""
    copy = function.clone()
    copy.sym_name = StringAttr(next(free_symbols(module, f"{function.sym_name.data}_")))
    binding = Binding.of(sizes)
    binding.bind_all(copy)
    left = {name: own for name, own in assumptions_of(copy).symbols if name not in sizes}
    if left:
        copy.attributes[SYMBOLS] = symbols_attribute(left)
    else:
        copy.attributes.pop(SYMBOLS, None)
    copy.attributes[SPECIALIZED] = sizes_attribute(sizes)
    module.body.block.insert_op_after(copy, function)
    binding.verify(copy)
