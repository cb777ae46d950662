"""`simplify-sizes`: shorter expressions of sizes, by what each run checks."""

from dataclasses import dataclass
from functools import cache
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute
from xdsl.passes import ModulePass

from braid.analysis.sizes.binding import Binding
from braid.dialects.braid.attribute_names import SIZE_CHECKS
from braid.dialects.braid.sizes import SizesAttr, assumptions_of, is_open
from braid.support.sizes.simplification import Simplification


@dataclass(frozen=True)
class SimplifySizesPass(ModulePass):
    """Simplify the sizes in types and attributes by assumptions about symbols and by checks.

    A run ends with an error where a check of the function does not hold, so that all code after the
    checks may rely on them: `min(n, 1)` is 1 where a window needs n to be at least 1. Equal sizes
    are then often written equally, and slices of whole tensors are recognized. If a check says that
    two sizes are equal, one is replaced by the other: an image that was halved, enlarged and added
    to itself has an even height.

    In: functions with `braid.size_checks`, which do not change; other functions are ignored. Out:
    the same ops, with sizes that have the same values wherever the checks hold.

    ```mlir
    // braid.size_checks = [{size = #braid.sizes<["n - 1"]>, message = "..."}]
    %y = braid.sized_slice %x {offsets = #braid.sizes<["min(n, 1) - 1"]>, ...}
    // becomes
    %y = braid.sized_slice %x {offsets = #braid.sizes<["0"]>, ...}
    ```
    """

    name = "simplify-sizes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Simplify the sizes of every function whose checks were collected."""
        for function in (each for each in op.ops if isinstance(each, FuncOp)):
            if is_open(function) and SIZE_CHECKS in function.attributes:
                Binding(cache(_simplification(function).of)).bind_all(function)


def _simplification(function: FuncOp) -> Simplification:
    """Return the function that simplifies a size by the checks that a run of the function has
    passed."""
    found = Simplification(assumptions_of(function))
    checks = cast("ArrayAttr[Attribute]", function.attributes[SIZE_CHECKS])
    for entry in cast("ArrayAttr[DictionaryAttr]", checks):
        size = entry.data["size"]
        assert isinstance(size, SizesAttr)
        (value,) = size.get_values()
        found.add(value, is_zero="zero" in entry.data)
    return found
