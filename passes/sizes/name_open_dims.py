"""`name-open-dims`: give each open dim that a function takes a size."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from braid.dialects.braid.attribute_names import SYMBOLS
from braid.dialects.braid.base import AnyTensor, tensor_type
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.ports import input_names
from braid.dialects.braid.sizes import (
    assumptions_of,
    extents_of_type,
    symbols_attribute,
    symbols_used,
)
from braid.dialects.stablehlo import TypeExtensionsAttr
from braid.passes.sizes.infer_sizes import infer_sizes
from braid.support.sizes.assumptions import Assumed
from braid.support.sizes.expression import Extent, symbol


@dataclass(frozen=True)
class NameOpenDimsPass(ModulePass):
    """Give each open dim of a function's arguments a size of its own, named after the argument.

    MLIR says `?` of dims that may differ. Those that an op takes for equal are compared when the
    model runs: `collect-size-checks`. A bound of StableHLO is assumed of the size.

    In: any module. Out: the types of arguments have all sizes, and so have values that ops of braid
    and `scf` compute from them; the passes that convert other ops rely on that. Types with sizes do
    not change. Raises BraidError for an op that is impossible at all sizes, and UnsupportedError
    for branches of different shapes and values of loops that change theirs.

    ```mlir
    func.func @main(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
      %y = braid.exp %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
    // becomes, with n for "input0[0]"
    func.func @main(%x: tensor<?x8xf32, #braid.sizes<["n"]>>) -> tensor<?x8xf32, …> {
      %y = braid.exp %x : (tensor<?x8xf32, …>) -> tensor<?x8xf32, #braid.sizes<["n"]>>
    ```
    """

    name = "name-open-dims"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Name the open dims of every function."""
        for function in op.walk():
            if isinstance(function, FuncOp) and not function.is_declaration:
                _name_dims(function)
        infer_sizes(op)


def _name_dims(function: FuncOp) -> None:
    taken = symbols_used(function)
    symbols = dict(assumptions_of(function).symbols)
    for argument, name in zip(function.args, input_names(function), strict=True):
        held: Attribute = argument.type
        if not isinstance(held, TensorType):
            continue
        type = cast(AnyTensor, held)
        extents = list(extents_of_type(type))
        if DYNAMIC not in extents:
            continue
        for dim, most in enumerate(_bounds(type)):
            if extents[dim] == DYNAMIC:
                extents[dim], own = _new_symbol(f"{name}[{dim}]", taken)
                if most is not None:
                    symbols[own] = Assumed(maximum=most)
        Rewriter.replace_value_with_new_type(argument, tensor_type(type.element_type, extents))
    if symbols:
        function.attributes[SYMBOLS] = symbols_attribute(symbols)


def _new_symbol(name: str, taken: set[str]) -> tuple[Extent, str]:
    """Return a size of this name, with a number after it where the name is taken."""
    unique, count = name, 1
    while unique in taken:
        count += 1
        unique = f"{name}#{count}"
    taken.add(unique)
    return symbol(unique), unique


def _bounds(type: AnyTensor) -> Iterator[int | None]:
    """Yield the bound of StableHLO for each dim, None without one."""
    held = type.encoding
    bounds = held.bounds() if isinstance(held, TypeExtensionsAttr) else ()
    for dim in range(type.get_num_dims()):
        yield bounds[dim] if dim < len(bounds) else None
