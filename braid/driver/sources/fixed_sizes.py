"""Sizes that a caller fixes of the open dims of a module."""

from typing import cast

from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp

from braid.dialects.braid.base import AnyTensor
from braid.dialects.braid.ports import input_names
from braid.dialects.braid.sizes import extents_of_type
from braid.frontends.onnx.fixed_inputs import Fixed
from braid.passes.sizes.bind_sizes import bind_sizes
from braid.support.errors import BraidError, did_you_mean
from braid.support.option_names import option_text
from braid.support.sizes.expression import Extent, symbol, symbols_of


def fix_sizes(module: ModuleOp, fixed: Fixed) -> None:
    """Put the numbers of `fixed` in place of the sizes of a module's inputs.

    Raises:
        BraidError: a value is fixed, a dim is fixed at the name of another, an input or size does
        not exist, or has another extent, or is given twice.

    """
    if fixed.constants:
        raise BraidError(
            f"{option_text('constants')} can only be given for ONNX models",
            hint="write the value into the module, as a constant",
        )
    values: dict[str, int] = {}
    for name, size in fixed.dims.items():
        if isinstance(size, str):
            raise BraidError(
                f"dim '{name}' can only be fixed at the name of another dim in ONNX models",
                hint="write one size into the types of both: #braid.sizes",
            )
        values[name] = size
    inputs = _inputs(module)
    for name, shape in fixed.shapes.items():
        if name not in inputs:
            raise BraidError(f"there is no input '{name}'", hint=did_you_mean(name, inputs))
        extents = inputs[name]
        if len(shape) != len(extents):
            raise BraidError(
                f"shape {list(shape)} of input '{name}' has {len(shape)} dims, expected "
                f"{len(extents)}"
            )
        for dim, (own, size) in enumerate(zip(extents, shape, strict=True)):
            _fix(values, f"dim {dim} of input '{name}'", own, size)
    if values:
        bind_sizes(module, values)


def _inputs(module: ModuleOp) -> dict[str, tuple[Extent, ...]]:
    """Return the extents of the tensors that the first function takes, by their names."""
    function = next((op for op in module.ops if isinstance(op, FuncOp)), None)
    if function is None:
        return {}
    types = zip(input_names(function), function.function_type.inputs, strict=True)
    return {
        name: extents_of_type(cast(AnyTensor, type))
        for name, type in types
        if isinstance(type, TensorType)
    }


def _fix(values: dict[str, int], what: str, own: Extent, size: int) -> None:
    """Take a size for an extent: for its symbol, or the same number."""
    if own == size:
        return
    names = symbols_of(own)
    name = next(iter(names), "")
    if len(names) != 1 or own != symbol(name):
        raise BraidError(f"{what} is {own}, and cannot be {size}")
    if values.setdefault(name, size) != size:
        raise BraidError(f"{what} cannot be {size}: size '{name}' is {values[name]} elsewhere")
