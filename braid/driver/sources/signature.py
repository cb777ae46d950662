"""The inputs and outputs of a module: operands and results of its only public function."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from xdsl.dialects.builtin import AnyFloat, IntegerType, ModuleOp, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from braid.analysis.diagnostics.locations import source_location
from braid.dialects.braid.attribute_names import BOUNDARY
from braid.dialects.braid.attributes import layout_of
from braid.dialects.braid.constants import ParameterOp
from braid.dialects.braid.dtypes import to_numpy
from braid.dialects.braid.ports import input_names, output_names, read_boundary
from braid.dialects.braid.sizes import DYNAMIC, extents_of_type, value_sizes
from braid.dialects.braid.variants import public_functions, variant_sizes
from braid.runtime.manifest import NUMBERS_ALONE, UNBOUNDED, Boundary, PortKind, TensorSpec
from braid.support.errors import BraidError, Note
from braid.support.sizes.expression import Extent, Size, Symbol, atom_alone


def entry_of(module: ModuleOp) -> FuncOp:
    """Return the function that is the model, the only public one.

    Raises:
        BraidError: the module has no public function or several, or it has no body or branches
        between blocks.

    """
    functions = [op for op in module.ops if isinstance(op, FuncOp) and op.sym_visibility is None]
    if len(functions) != 1:
        names = ", ".join(f"@{op.sym_name.data}" for op in functions) or "none"
        raise BraidError(
            f"a model is a module with one public function, this one has {names}",
            location=source_location(module),
            hint="name the function that is the model @main, and make the others private",
        )
    _check_body(functions[0])
    return functions[0]


def _check_body(function: FuncOp) -> None:
    blocks = len(function.body.blocks)
    if not blocks:
        raise BraidError(
            f"the model '@{function.sym_name.data}' has no body",
            location=source_location(function),
        )
    if blocks > 1:
        raise BraidError(
            f"the model '@{function.sym_name.data}' has {blocks} blocks, expected one",
            location=source_location(function),
            hint="mlir-opt --lift-cf-to-scf makes scf.if and scf.while of branches",
        )


def signature_of(module: ModuleOp) -> tuple[tuple[TensorSpec, ...], tuple[TensorSpec, ...]]:
    """Return specs of the inputs and of the outputs.

    Raises:
        BraidError: there is no entry, or it takes or returns other values than tensors, or two of
        the same name.

    """
    return signature_of_function(entry_of(module))


def signature_of_function(
    function: FuncOp,
) -> tuple[tuple[TensorSpec, ...], tuple[TensorSpec, ...]]:
    """Return specs of the arguments and of the results. Raises BraidError as `signature_of`."""
    types = function.function_type
    inputs = _specs(function, input_names(function), types.inputs.data)
    told = value_sizes(function)
    inputs = tuple(replace(spec, values=own) for spec, own in zip(inputs, told, strict=True))
    return inputs, _specs(function, output_names(function), types.outputs.data)


def boundary_of(module: ModuleOp) -> Boundary:
    """Return which inputs and outputs are text or mappings."""
    attribute = module.attributes.get(BOUNDARY)
    if attribute is None:
        return NUMBERS_ALONE
    texts, *sides = read_boundary(attribute)
    inputs, outputs = (
        {
            name: PortKind(is_random=True)
            if isinstance(kind, str)
            else PortKind(is_text=kind is None, keys=kind or ())
            for name, kind in side.items()
        }
        for side in sides
    )
    return Boundary(tuple(texts), inputs, outputs)


def check_model(module: ModuleOp) -> None:
    """Check the functions that are the model before anything is done with them.

    Raises:
        BraidError: there is none, or more than one that is not a variant of the others, or one has
            no body or branches between blocks, or takes or returns other values than tensors, or
            two of the same name; or one parameter has two types.

    """
    functions = public_functions(module)
    if not all(map(variant_sizes, functions)) or not functions:
        functions = [entry_of(module)]
    for function in functions:
        _check_body(function)
        types = function.function_type
        _specs(function, input_names(function), types.inputs.data)
        _specs(function, output_names(function), types.outputs.data)
    _check_parameters(module)


def _check_parameters(module: ModuleOp) -> None:
    first: dict[str, ParameterOp] = {}
    for op in module.walk():
        if isinstance(op, ParameterOp):
            other = first.setdefault(op.key.data, op)
            if other.output.type != op.output.type:
                raise BraidError(
                    f"parameter '{op.key.data}' has type {op.output.type}, and "
                    f"{other.output.type} elsewhere",
                    location=source_location(op),
                    notes=[Note("it is read here as well", source_location(other))],
                )


def _specs(
    function: FuncOp, names: Sequence[str], types: Sequence[Attribute]
) -> tuple[TensorSpec, ...]:
    if repeated := [name for name, count in Counter(names).items() if count > 1]:
        raise BraidError(
            f"several inputs or several outputs of the model are named '{repeated[0]}'",
            location=source_location(function),
            hint="give them different names (braid.name)",
        )
    specs: list[TensorSpec] = []
    for name, type in zip(names, types, strict=True):
        if not isinstance(type, TensorType):
            is_scalar = isinstance(type, IntegerType | AnyFloat)
            raise BraidError(
                f"'{name}' of the model has type {type}, expected a ranked tensor",
                location=source_location(function),
                hint=f"take a tensor<{type}> and read it with tensor.extract"
                if is_scalar
                else None,
            )
        tensor = cast(TensorType[Any], type)
        if (layout := layout_of(tensor)).is_transformed:
            raise BraidError(
                f"'{name}' of the model is stored in layout '{layout}', which is for weights",
                location=source_location(function),
                hint="only weights that are known at compile time are stored so",
            )
        dtype = to_numpy(tensor.element_type).name
        specs.append(_spec(name, dtype, extents_of_type(tensor)))
    return tuple(specs)


def _spec(name: str, dtype: str, extents: Sequence[Extent]) -> TensorSpec:
    """Return the spec of a tensor; open dims whose size is a symbol have the name of that."""
    shape = tuple(e if isinstance(e, int) and e != DYNAMIC else -1 for e in extents)
    if -1 not in shape:
        return TensorSpec.static(name, dtype, shape)
    bound = tuple(UNBOUNDED if size == -1 else size for size in shape)
    atoms = (atom_alone(extent) if isinstance(extent, Size) else None for extent in extents)
    dims = tuple(atom.name if isinstance(atom, Symbol) else "" for atom in atoms)
    return TensorSpec(name, dtype, shape, bound, dims)
