"""From an ONNX model to a module of the braid dialect."""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from onnx import ModelProto, ValueInfoProto
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    ModuleOp,
    StringAttr,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region, SSAValue

from braid.dialects.braid.attribute_names import BOUNDARY, NAME, SYMBOLS, VALUE_SIZES
from braid.dialects.braid.base import AnyTensor, tensor_type
from braid.dialects.braid.dtypes import from_numpy, i64
from braid.dialects.braid.layout import DYNAMIC, MOST_DIMS
from braid.dialects.braid.ports import RANDOM, Kind, boundary_attribute
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.size_evaluation import fixed_shape
from braid.dialects.braid.size_limits import MOST_ELEMENTS
from braid.dialects.braid.sizes import SizesAttr, symbols_attribute
from braid.frontends.collector import collector_paused
from braid.frontends.onnx.boundary import is_text, mapping_input
from braid.frontends.onnx.building.builder import Builder, ParameterStore
from braid.frontends.onnx.fixed_inputs import Fixed, FixedInputs, fix_inputs, shape_text
from braid.frontends.onnx.graph import GraphImporter, Scope
from braid.frontends.onnx.model_file import DeclaredShape, ModelFile
from braid.frontends.onnx.structure import check_structure
from braid.frontends.onnx.supported import missing_nodes
from braid.support.errors import BraidError, UnsupportedError
from braid.support.option_names import option_text
from braid.support.sizes.assumptions import Assumed
from braid.support.sizes.expression import symbol
from braid.support.unsupported_ops import MissingOpError, UnsupportedNodesError

RANDOM_KEY = "random_key"
"""The input of a model that nodes draw random numbers by, where they have no seed."""


@dataclass(frozen=True)
class ImportedModel:
    """A module whose `func.func @main` is the model, and the values of its parameters.

    The arrays in `parameters` are views of the model's files wherever those hold the bytes.
    """

    module: ModuleOp
    parameters: Mapping[str, Array]


def import_onnx(
    source: str | Path | ModelProto,
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    dims: Mapping[str, int | str] | None = None,
    constants: Mapping[str, object] | None = None,
    keep_open: bool = False,
    may_decide: bool = False,
) -> ImportedModel:
    """Import the model at a path or in memory.

    `shapes` gives the shapes of inputs whose dims the model leaves open, and `dims` the sizes of
    such dims by name, or the names of equal dims. `constants` fixes the values of
    inputs, for example of those on which shapes depend; these are no longer inputs. With
    `keep_open`, dims that are left open are sizes of their names; without it they are an error.
    Then, or with `may_decide`, shapes may also depend on the values of small inputs of integers,
    which are sizes: `braid.value_sizes` of the argument names them. If they depend on other data,
    `braid.decide_sizes` turns these into sizes. Inputs and outputs keep their names as `braid.name`
    of the function's arguments and results, and every op the name of the model's value that it
    gives. Raises BraidError for an invalid model or one with open dims, and UnsupportedError
    for ops and types that braid does not have.
    """
    with collector_paused():
        file = ModelFile(source)
        inputs = fix_inputs(file, Fixed(shapes or {}, dims or {}, constants or {}))
        types = _input_types(file, inputs, keep_open)
        size_inputs: set[str] = set()
        useless: set[str] = set()
        while True:
            builder = Builder(Block(arg_types=types), ParameterStore())
            builder.inputs = dict(zip(builder.block.args, inputs.shapes, strict=True))
            builder.has_sizes, builder.useless = keep_open or may_decide, set(useless)
            builder.size_names |= set(inputs.open_dims)
            try:
                return _import(file, inputs, builder, size_inputs)
            except UnsupportedError:
                is_new = builder.requested - size_inputs or builder.useless - useless
                if not builder.has_sizes or not is_new:
                    raise
            useless = builder.useless
            size_inputs = (size_inputs | builder.requested) - useless


def _import(
    file: ModelFile, inputs: FixedInputs, builder: Builder, size_inputs: Set[str]
) -> ImportedModel:
    """Import into the block of a builder; the elements of `size_inputs` are sizes."""
    block, values = builder.block, dict[str, tuple[str, ...]]()
    for argument, name in builder.inputs.items():
        if name in size_inputs:
            values[name] = _value_names(argument, name, inputs)
            builder.treat_as_sizes(argument, values[name])
    importer = GraphImporter(builder, file)
    scope: Scope = {name: argument for argument, name in builder.inputs.items()}
    scope.update({name: builder.constant(a) for name, a in inputs.constants.items()})
    for argument, name in builder.inputs.items():
        declared = inputs.declared[name]
        if (row := mapping_input(file, declared)) is not None:
            builder.texts.mark_rows(argument, row[1])
        elif is_text(declared):
            builder.texts.mark(argument)
    results = _imported_graph(file, importer, scope)
    builder.insert(ReturnOp(*results))
    builder.new_ops.clear()
    if builder.prologue and block.first_op is not None:
        block.insert_ops_before(builder.prologue, block.first_op)
    ports = [
        DictionaryAttr(
            {NAME: StringAttr(name)}
            | (
                {VALUE_SIZES: SizesAttr.of(list(map(symbol, values[name])))}
                if name in size_inputs
                else {}
            )
        )
        for name in inputs.shapes
    ]
    key = _distinct([*inputs.shapes, RANDOM_KEY])[-1]
    if builder.random_argument is not None:
        ports.append(DictionaryAttr({NAME: StringAttr(key)}))
    function = FuncOp(
        "main",
        FunctionType.from_lists([arg.type for arg in block.args], [v.type for v in results]),
        Region(block),
        arg_attrs=ArrayAttr(ports),
        res_attrs=_names(_distinct([value.name for value in file.proto.graph.output])),
    )
    if builder.has_leftovers:
        _drop_uses_outside(function)
    assumed = {name: own for name, own in builder.assumed.items() if own != Assumed()}
    if assumed:
        function.attributes[SYMBOLS] = symbols_attribute(assumed)
    module = ModuleOp([function])
    input_kinds = _kinds(builder, builder.inputs.values(), builder.inputs)
    if builder.random_argument is not None:
        input_kinds[key] = RANDOM
    output_names = _distinct([value.name for value in file.proto.graph.output])
    output_kinds = _kinds(builder, output_names, results)
    if input_kinds or output_kinds:
        texts = builder.texts.texts
        module.attributes[BOUNDARY] = boundary_attribute(texts, input_kinds, output_kinds)
    return ImportedModel(module, builder.parameters)


def _kinds(builder: Builder, names: Iterable[str], values: Iterable[SSAValue]) -> dict[str, Kind]:
    """Return which inputs or outputs are text, and which are mappings, with their keys."""
    kinds: dict[str, Kind] = {}
    for name, value in zip(names, values, strict=True):
        if value in builder.texts or builder.texts.keys_of(value) is not None:
            kinds[name] = builder.texts.keys_of(value)
    return kinds


def _value_names(argument: SSAValue, name: str, inputs: FixedInputs) -> tuple[str, ...]:
    """Return the names of the sizes that an input's elements are, which no open dim has."""
    count = math.prod(fixed_shape(argument))
    names = [f"{name}.value"] if count == 1 else [f"{name}.value[{n}]" for n in range(count)]
    while taken := set(names) & set(inputs.open_dims):
        names = [own + "_" if own in taken else own for own in names]
    return tuple(names)


def _imported_graph(file: ModelFile, importer: GraphImporter, scope: Scope) -> list[SSAValue]:
    """Import the graph of a model; its outputs. An error counts all nodes that are unsupported."""
    missing = missing_nodes(file)
    try:
        check_structure(file, lacks_ops=bool(missing))
        return importer.import_graph(file.proto.graph, scope)
    except BraidError as error:
        if not missing:
            raise
        for op, refused in error.found if isinstance(error, UnsupportedNodesError) else ():
            if not isinstance(refused, MissingOpError):
                missing.add(op, refused)
        raise missing.error() from error


def _drop_uses_outside(function: FuncOp) -> None:
    """Drop the uses of values by ops that were made, and never inserted or given up."""
    ops = set(function.walk())
    blocks = (block for op in ops for region in op.regions for block in region.blocks)
    values = [*(v for op in ops for v in op.results), *(v for block in blocks for v in block.args)]
    for value in values:
        for use in list(value.uses):
            if use.operation not in ops:
                use.operation.drop_all_references()


def _names(names: Sequence[str]) -> ArrayAttr[DictionaryAttr]:
    return ArrayAttr([DictionaryAttr({NAME: StringAttr(name)}) for name in names])


def _distinct(names: Sequence[str]) -> list[str]:
    """Return unique names, since a graph may list one value as several outputs."""
    free = (f"_{number}" for number in itertools.count(2))
    taken, found = set(names), dict[str, None]()
    for name in names:
        distinct = name
        while distinct in found or (distinct != name and distinct in taken):
            distinct = name + next(free)
        found[distinct] = None
    return list(found)


class OpenDimsError(BraidError):
    """Inputs have open dims whose sizes are needed; `dims` are their names."""

    def __init__(self, file: ModelFile, inputs: FixedInputs) -> None:
        shapes = {name: shape for name, shape in inputs.shapes.items() if shape is not None}
        left = {n: s for n, s in shapes.items() if any(isinstance(d, str) for d in s)}
        listed = ", ".join(f"'{name}' {shape_text(shape)}" for name, shape in left.items())
        self.dims = inputs.open_dims
        names = ", ".join(f"'{dim}'" for dim in self.dims)
        super().__init__(
            f"dims of inputs are left open: {listed}",
            location=file.location,
            hint=f"give sizes of {names} ({option_text('dims')}), or compile for several sizes "
            f"({option_text('shape_buckets')})",
        )


def _input_types(file: ModelFile, inputs: FixedInputs, keep_open: bool) -> list[AnyTensor]:
    types = [_input_type(file, inputs.declared[n], shape) for n, shape in inputs.shapes.items()]
    if inputs.open_dims and not keep_open:
        raise OpenDimsError(file, inputs)
    return types


def _input_type(file: ModelFile, value: ValueInfoProto, shape: DeclaredShape | None) -> AnyTensor:
    if (row := mapping_input(file, value)) is not None:
        return row[0]
    # An optional tensor that is an input is one that is there.
    is_optional = value.type.HasField("optional_type")
    value_type = value.type.optional_type.elem_type if is_optional else value.type
    if not value_type.HasField("tensor_type"):
        kind = value_type.WhichOneof("value") or "untyped value"
        raise UnsupportedError(
            f"input '{value.name}' is a {kind.removesuffix('_type')}, expected a tensor",
            location=file.location,
        )
    if shape is None:
        raise BraidError(
            f"input '{value.name}' has no shape",
            location=file.location,
            hint=f"give it, such as {option_text('shapes', {value.name: (1, 3, 224, 224)})}",
        )
    sizes = [DYNAMIC if isinstance(extent, str) else extent for extent in shape]
    if any(extent < 0 and extent != DYNAMIC for extent in sizes):
        raise BraidError(
            f"input '{value.name}' has shape {sizes}, expected no negative size",
            location=file.location,
        )
    if len(sizes) > MOST_DIMS:
        raise UnsupportedError(
            f"input '{value.name}' has {len(sizes)} dims, expected at most {MOST_DIMS}",
            location=file.location,
        )
    if math.prod(n for n in sizes if n != DYNAMIC) > MOST_ELEMENTS:
        raise BraidError(
            f"input '{value.name}' has shape {sizes}, expected at most {MOST_ELEMENTS} elements",
            location=file.location,
        )
    element_type = (
        i64
        if is_text(value)
        else from_numpy(file.tensors.dtype(value_type.tensor_type.elem_type, value.name))
    )
    extents = [symbol(extent) if isinstance(extent, str) else extent for extent in shape]
    return tensor_type(element_type, extents)
