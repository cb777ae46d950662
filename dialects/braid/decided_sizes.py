"""An op that makes sizes of data, and the phases of a model whose data decide sizes.

If data decide the number of a result's elements (`NonZero`, `Compress`, `Range` of a computed
limit), shapes are unknown until the model runs. Such a model runs in *phases*: functions that run
in sequence, each an ordinary model with open dims. Results of one phase are arguments of later
ones, by name. An argument with `braid.value_sizes` has sizes as its elements.

```mlir
module attributes {braid.phase_outputs = [["y", "picked"]]} {
  func.func @main_0(%x: tensor<6xf32> {braid.name = "x"})
      -> (tensor<6xf32> {braid.name = "sorted"}, tensor<1xi64> {braid.name = "count"})
      attributes {braid.phase = 0 : i64} { … }
  func.func @main_1(%sorted: tensor<6xf32> {braid.name = "sorted"},
      %count: tensor<1xi64> {braid.name = "count", braid.value_sizes = #braid.sizes<["n"]>})
      -> (tensor<?xf32, #braid.sizes<["n"]>> {braid.name = "picked"})
      attributes {braid.phase = 1 : i64} { … }
}
```
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any, cast

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr, TensorType, i32, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, ParametrizedAttribute, SSAValue
from xdsl.irdl import IRDLOperation, attr_def, irdl_op_definition, operand_def
from xdsl.utils.exceptions import VerifyException

from braid.dialects.braid.attribute_names import PHASE, PHASE_OUTPUTS
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.sizes import SizedLayoutAttr, SizesAttr
from braid.support.sizes.expression import Size, Symbol, atom_alone, symbol, symbols_of


@irdl_op_definition
class DecideSizesOp(IRDLOperation):
    """The elements of a tensor are sizes from here on, each with a name of its own.

    Operand: a tensor of i32 or i64 of a fixed shape. `sizes` has a symbol for each element,
    row-major. Types and attributes after the op may use these symbols; no other op or argument
    defines them. A run fails where an element is negative. Fails verification for another number of
    sizes, and for sizes that are no symbols.

    ```mlir
    func.func @main(%count: tensor<1xi64>) -> tensor<1xi64> {
      braid.decide_sizes %count {sizes = #braid.sizes<["n"]>} : tensor<1xi64>
      %n = braid.size_values {values = #braid.sizes<["n"]>} : tensor<1xi64>
      return %n : tensor<1xi64>
    }
    ```
    """

    name = "braid.decide_sizes"

    values = operand_def(TensorType)
    sizes = attr_def(SizesAttr)

    assembly_format = "$values attr-dict `:` type($values)"

    @staticmethod
    def of(values: SSAValue, names: Sequence[str]) -> "DecideSizesOp":
        """Build the op that names the elements of `values`."""
        sizes = SizesAttr.of([symbol(name) for name in names])
        return DecideSizesOp(operands=[values], attributes={"sizes": sizes})

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the symbols; fewer than sizes where the op is invalid."""
        sizes = (size for size in self.sizes.get_values() if isinstance(size, Size))
        atoms = (atom_alone(size) for size in sizes)
        return tuple(atom.name for atom in atoms if isinstance(atom, Symbol))

    def verify_(self) -> None:
        """Fail for operands that are no sizes, and for names that do not fit."""
        type = cast("TensorType[Any]", self.values.type)
        shape = type.get_shape()
        if type.element_type not in (i32, i64) or DYNAMIC in shape:
            raise VerifyException(f"operand has type {type}, expected a fixed shape of i32 or i64")
        names = self.names
        if len(self.sizes.texts) != math.prod(shape) or len(set(names)) != math.prod(shape):
            raise VerifyException(
                f"sizes are {self.sizes}, expected a symbol for each element of {type}, all "
                "different"
            )


def decides_sizes(module: Operation) -> bool:
    """Return whether data decide sizes in a module: by an op, or in phases that were split."""
    return any(isinstance(op, DecideSizesOp) or PHASE in op.attributes for op in module.walk())


def phases_of(module: ModuleOp) -> list[FuncOp]:
    """Return the functions that are the phases of a model, in their order; empty for none."""
    return [op for op in module.ops if isinstance(op, FuncOp) and PHASE in op.attributes]


def phase_outputs(module: ModuleOp) -> list[tuple[str, str]]:
    """Return the name of each output of the model, and of the value of a phase that it is."""
    held = module.attributes.get(PHASE_OUTPUTS)
    pairs = cast("ArrayAttr[ArrayAttr[StringAttr]]", held) if isinstance(held, ArrayAttr) else ()
    return [(pair.data[0].data, pair.data[1].data) for pair in pairs]


def phase_outputs_attribute(pairs: Sequence[tuple[str, str]]) -> ArrayAttr[Attribute]:
    """Return what `phase_outputs` reads."""
    return ArrayAttr([ArrayAttr([StringAttr(text) for text in pair]) for pair in pairs])


def symbols_mentioned(op: Operation) -> set[str]:
    """Return the symbols in types and attributes of an op and of its nested ops."""
    found: set[str] = set()
    for each in op.walk():
        blocks = (block for region in each.regions for block in region.blocks)
        arguments = (argument for block in blocks for argument in block.args)
        types = (value.type for value in (*each.operands, *each.results, *arguments))
        for attribute in (*types, *each.attributes.values(), *each.properties.values()):
            for sizes in _sizes_within(attribute):
                found |= symbols_of(*sizes.get_values())
    return found


def _sizes_within(attribute: Attribute) -> Iterator[SizesAttr]:
    """Yield the lists of sizes that an attribute or a type holds, however deep."""
    if isinstance(attribute, SizesAttr):
        yield attribute
    elif isinstance(attribute, SizedLayoutAttr):
        yield attribute.sizes
    elif isinstance(attribute, TensorType):
        yield from _sizes_within(cast("TensorType[Any]", attribute).encoding)
    elif isinstance(attribute, ArrayAttr):
        for each in cast("ArrayAttr[Attribute]", attribute):
            yield from _sizes_within(each)
    elif isinstance(attribute, ParametrizedAttribute):
        for each in attribute.parameters:
            yield from _sizes_within(each)
