"""One module for several sizes of a model's open dims."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp

from braid.dialects.braid.attribute_names import BOUNDARY, DIMS, VARIANT
from braid.dialects.braid.base import AnyTensor
from braid.dialects.braid.constants import ParameterOp
from braid.dialects.braid.variants import dims_attribute, sizes_attribute
from braid.driver.sources.open_model import Sizes
from braid.driver.sources.signature import entry_of
from braid.frontends.onnx import ImportedModel

Array = NDArray[Any]
OutputShapes = tuple[tuple[int, ...], ...]
PortDims = tuple[str, ...]
"""The names of the open dims of an input or output, "" for its other dims; empty for none."""


@dataclass(frozen=True)
class Variant:
    """A model imported with these sizes of its open dims."""

    sizes: Sizes
    imported: ImportedModel


def output_shapes(imported: ImportedModel) -> OutputShapes:
    """Return the shapes of a model's outputs."""
    types = entry_of(imported.module).function_type.outputs.data
    return tuple(cast(AnyTensor, type).get_shape() for type in types)


def output_dims(
    observed: Sequence[tuple[Sizes, OutputShapes]],
) -> list[tuple[PortDims, bool]]:
    """Return per output which of its dims are open dims, and whether these explain all shapes.

    `observed` are sizes of the open dims with the shapes that the outputs then have.
    """
    dims: list[tuple[PortDims, bool]] = []
    for index in range(len(observed[0][1])):
        columns = zip(*(shapes[index] for _, shapes in observed), strict=True)
        names = [_name_of(extents, [sizes for sizes, _ in observed]) for extents in columns]
        known = tuple(name or "" for name in names)
        dims.append((known if any(known) else (), None not in names))
    return dims


def _name_of(extents: Sequence[int], sizes: Sequence[Sizes]) -> str | None:
    """Return the open dim whose sizes these are; "" if they never change, None if no dim fits."""
    if len(set(extents)) == 1:
        return ""
    return next((dim for dim in sizes[0] if [s[dim] for s in sizes] == list(extents)), None)


def merge_variants(
    variants: Sequence[Variant],
    initializers: frozenset[str],
    inputs: Sequence[PortDims],
    outputs: Sequence[PortDims],
) -> ImportedModel:
    """Put the functions of all variants into one module, whose parameters they share.

    `initializers` are keys of parameters that are equal in all variants; a parameter that an import
    has computed gets a separate key if it differs. The modules of `variants` are used up.
    """
    parameters = _Parameters(initializers)
    functions: list[FuncOp] = []
    for number, variant in enumerate(variants):
        function = entry_of(variant.imported.module)
        parameters.add(function, variant.imported.parameters, f"@{number}")
        function.detach()
        function.sym_name = StringAttr(f"main_{number}")
        function.attributes[VARIANT] = sizes_attribute(variant.sizes)
        function.arg_attrs = _with_dims(function.arg_attrs, inputs)
        function.res_attrs = _with_dims(function.res_attrs, outputs)
        functions.append(function)
    module = ModuleOp(functions)
    # The same in all: nodes number the texts, in order.
    if (boundary := variants[0].imported.module.attributes.get(BOUNDARY)) is not None:
        module.attributes[BOUNDARY] = boundary
    return ImportedModel(module, parameters)


class _Parameters(Mapping[str, Array]):
    """The parameters of all variants; only those that may differ are read."""

    def __init__(self, initializers: frozenset[str]) -> None:
        self._initializers = initializers
        self._homes: dict[str, tuple[Mapping[str, Array], str]] = {}

    def add(self, function: FuncOp, parameters: Mapping[str, Array], suffix: str) -> None:
        """Copy the parameters that the function uses; a key changes if another value has it."""
        for op in function.walk():
            if isinstance(op, ParameterOp):
                key = op.key.data
                if key in self._homes and not self._is_equal(key, parameters):
                    op.attributes["key"] = StringAttr(key + suffix)
                self._homes.setdefault(op.key.data, (parameters, key))

    def _is_equal(self, key: str, parameters: Mapping[str, Array]) -> bool:
        if key in self._initializers:
            return True
        mine, other = self[key], parameters[key]
        return mine.dtype == other.dtype and np.array_equal(mine, other)

    def __getitem__(self, key: str) -> Array:
        parameters, own = self._homes[key]
        return parameters[own]

    def __iter__(self) -> Iterator[str]:
        return iter(self._homes)

    def __len__(self) -> int:
        return len(self._homes)


def _with_dims(
    attributes: ArrayAttr[DictionaryAttr] | None, ports: Sequence[PortDims]
) -> ArrayAttr[DictionaryAttr]:
    assert attributes is not None, "imported functions name their ports"
    return ArrayAttr(
        DictionaryAttr({**attribute.data, **({DIMS: dims_attribute(dims)} if dims else {})})
        for attribute, dims in zip(attributes, ports, strict=True)
    )
