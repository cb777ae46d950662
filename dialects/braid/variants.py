"""One model for several shapes: a module with a public function for each.

```mlir
module attributes {braid.padded_from = {batch = 1 : i64}} {
  func.func @main_0(%x: tensor<1x8xf32> {braid.name = "x", braid.dims = ["batch", ""]}, …) -> …
      attributes {braid.variant = {batch = 1 : i64}} { … }
  func.func @main_1(%x: tensor<4x8xf32> {braid.name = "x", braid.dims = ["batch", ""]}, …) -> …
      attributes {braid.variant = {batch = 4 : i64}} { … }
}
```

A model with open dims may have functions that are specialized beside the one for all sizes: they
run if dims have the sizes in `braid.specialized`; their other dims stay open.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import cast

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.ir import Attribute, Operation

from braid.dialects.braid.attribute_names import DEVICE, DIMS, PADDED_FROM, SPECIALIZED, VARIANT


def public_functions(module: ModuleOp) -> list[func.FuncOp]:
    """Return the functions that are the model: one, or its variants."""
    return [op for op in module.ops if isinstance(op, func.FuncOp) and op.sym_visibility is None]


def free_symbols(module: ModuleOp, prefix: str) -> Iterator[str]:
    """Return names for new functions: the prefix with the numbers that no function has."""
    taken = {op.sym_name.data for op in module.ops if isinstance(op, func.FuncOp)}
    return (name for number in count() if (name := f"{prefix}{number}") not in taken)


def device_functions(module: ModuleOp) -> list[func.FuncOp]:
    """Return the functions that the model launches on its devices."""
    functions = (op for op in module.ops if isinstance(op, func.FuncOp))
    return [op for op in functions if op.sym_visibility is not None and DEVICE in op.attributes]


def program_functions(module: ModuleOp) -> list[func.FuncOp]:
    """Return the functions that are programs of kernels: the model, and the functions that it
    launches."""
    return [*public_functions(module), *device_functions(module)]


def variant_sizes(function: func.FuncOp) -> dict[str, int]:
    """Return the sizes of the open dims for which the function is; empty if the model has none."""
    return _sizes(function, VARIANT)


def specialized_sizes(function: func.FuncOp) -> dict[str, int]:
    """Return the sizes of open dims that the function is specialized for; empty for others."""
    return _sizes(function, SPECIALIZED)


def padded_from(module: ModuleOp) -> dict[str, int]:
    """Return the least sizes of open dims that may be padded, without dims that must not be."""
    return _sizes(module, PADDED_FROM)


def sizes_attribute(sizes: Mapping[str, int]) -> DictionaryAttr:
    """Return the attribute `braid.variant` or `braid.padded_from` with these sizes."""
    return DictionaryAttr({name: IntegerAttr(size, i64) for name, size in sizes.items()})


def sizes_in(entry: DictionaryAttr) -> dict[str, int] | None:
    """Return the sizes of such an attribute; None if an entry is no size."""
    sizes = {
        name: value.value.data if isinstance(value, IntegerAttr) else -1
        for name, value in cast(Mapping[str, Attribute], entry.data).items()
    }
    return None if any(size < 0 for size in sizes.values()) else sizes


def dims_attribute(names: Sequence[str]) -> ArrayAttr[StringAttr]:
    """Return the attribute `braid.dims` with these names."""
    return ArrayAttr([StringAttr(name) for name in names])


def port_dims(dictionaries: ArrayAttr[DictionaryAttr] | None, index: int) -> tuple[str, ...]:
    """Return the names in `braid.dims` of argument or result `index`; empty if it has none."""
    if dictionaries is None:
        return ()
    names = dictionaries.data[index].data.get(DIMS)
    if not isinstance(names, ArrayAttr):
        return ()
    return tuple(name.data for name in cast(ArrayAttr[StringAttr], names))


def _sizes(op: Operation, name: str) -> dict[str, int]:
    attribute = op.attributes.get(name)
    if not isinstance(attribute, DictionaryAttr):
        return {}
    entries = cast(Mapping[str, Attribute], attribute.data)
    return {k: v.value.data for k, v in entries.items() if isinstance(v, IntegerAttr)}
