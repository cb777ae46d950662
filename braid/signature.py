"""The inputs and outputs of a module: what its one public function takes and returns."""

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from braid.analysis.locations import source_location
from braid.dialects.braid.dtypes import to_numpy
from braid.dialects.braid.ports import input_names, output_names
from braid.errors import BraidError
from braid.runtime.manifest import TensorSpec


def entry_of(module: ModuleOp) -> FuncOp:
    """The function that is the model, the only public one.

    Raises:
        BraidError: there is none, or more than one, or it has no body.

    """
    functions = [op for op in module.ops if isinstance(op, FuncOp) and op.sym_visibility is None]
    if len(functions) != 1:
        names = ", ".join(f"@{op.sym_name.data}" for op in functions) or "none"
        raise BraidError(
            f"a model is a module with one public function, this one has {names}",
            location=source_location(module),
            hint="name the function that is the model @main, and make the others private",
        )
    if not functions[0].body.blocks:
        raise BraidError(
            f"the model '@{functions[0].sym_name.data}' has no body",
            location=source_location(functions[0]),
        )
    return functions[0]


def signature_of(module: ModuleOp) -> tuple[tuple[TensorSpec, ...], tuple[TensorSpec, ...]]:
    """Specs of the inputs and of the outputs.

    Raises:
        BraidError: there is no entry, or it takes or returns something else than tensors.

    """
    function = entry_of(module)
    types = function.function_type
    inputs = _specs(function, input_names(function), types.inputs.data)
    return inputs, _specs(function, output_names(function), types.outputs.data)


def check_ports(functions: Sequence[FuncOp]) -> None:
    """Check the signatures of a model's functions before anything is done with them.

    Raises:
        BraidError: one takes or returns something else than tensors.

    """
    for function in functions:
        types = function.function_type
        _specs(function, input_names(function), types.inputs.data)
        _specs(function, output_names(function), types.outputs.data)


def _specs(
    function: FuncOp, names: Sequence[str], types: Sequence[Attribute]
) -> tuple[TensorSpec, ...]:
    specs: list[TensorSpec] = []
    for name, type in zip(names, types, strict=True):
        if not isinstance(type, TensorType):
            raise BraidError(
                f"'{name}' of the model has type {type}, expected a tensor",
                location=source_location(function),
                hint=f"take a tensor<{type}> and read it with tensor.extract",
            )
        tensor = cast(TensorType[Any], type)
        dtype = to_numpy(tensor.element_type).name
        specs.append(TensorSpec.static(name, dtype, tensor.get_shape()))
    return tuple(specs)
