"""From an ONNX model to a module of the braid dialect."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from onnx import ModelProto, ValueInfoProto
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    ModuleOp,
    StringAttr,
    TensorType,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region

from braid.dialects.braid.attribute_names import NAME
from braid.dialects.braid.base import AnyTensor
from braid.dialects.braid.dtypes import from_numpy
from braid.dialects.braid.layout import DYNAMIC, MOST_DIMS
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.size_limits import MOST_ELEMENTS
from braid.frontends.collector import collector_paused
from braid.frontends.onnx.building.builder import Builder, ParameterStore
from braid.frontends.onnx.graph import GraphImporter, Scope
from braid.frontends.onnx.model_file import ModelFile, declared_shape
from braid.frontends.onnx.supported import check_supported
from braid.support.errors import BraidError, UnsupportedError


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
    constants: Mapping[str, Array] | None = None,
) -> ImportedModel:
    """Imports the model at a path or in memory.

    `shapes` gives the shapes of inputs whose dims the model leaves open. `constants` fixes the
    values of inputs, which then are none any more: those on which shapes depend, say.
    Inputs and outputs keep their names as `braid.name` of the function's arguments and results,
    and every op the name of the model's value that it gives.
    Raises BraidError for what is not a valid model or leaves dims open, and UnsupportedError for
    ops and types that braid does not have.
    """
    with collector_paused():
        file = ModelFile(source)
        graph = file.proto.graph
        initialized = {tensor.name for tensor in graph.initializer} | set(constants or {})
        inputs = [value for value in graph.input if value.name not in initialized]
        types = _input_types(file, inputs, shapes or {})
        block = Block(arg_types=types)
        parameters = ParameterStore()
        builder = Builder(block, parameters)
        check_supported(file)
        importer = GraphImporter(builder, file)
        builder.inputs = dict(zip(block.args, (value.name for value in inputs), strict=True))
        scope: Scope = {name: argument for argument, name in builder.inputs.items()}
        scope.update({name: builder.constant(a) for name, a in (constants or {}).items()})
        results = importer.import_graph(graph, scope)
        builder.insert(ReturnOp(*results))
        builder.new_ops.clear()
        if builder.prologue and block.first_op is not None:
            block.insert_ops_before(builder.prologue, block.first_op)
        function = FuncOp(
            "main",
            FunctionType.from_lists(types, [value.type for value in results]),
            Region(block),
            arg_attrs=_names([value.name for value in inputs]),
            res_attrs=_names(_distinct([value.name for value in graph.output])),
        )
        return ImportedModel(ModuleOp([function]), parameters)


def _names(names: Sequence[str]) -> ArrayAttr[DictionaryAttr]:
    return ArrayAttr([DictionaryAttr({NAME: StringAttr(name)}) for name in names])


def _distinct(names: Sequence[str]) -> list[str]:
    """Return names of which none stands twice: a graph may list one value as several outputs."""
    free = (f"_{number}" for number in itertools.count(2))
    taken, found = set(names), dict[str, None]()
    for name in names:
        distinct = name
        while distinct in found or (distinct != name and distinct in taken):
            distinct = name + next(free)
        found[distinct] = None
    return list(found)


def _input_types(
    file: ModelFile, inputs: Sequence[ValueInfoProto], shapes: Mapping[str, Sequence[int]]
) -> list[AnyTensor]:
    names = [value.name for value in inputs]
    for name in shapes:
        if name not in names:
            raise BraidError(
                f"there is no input '{name}' to give a shape to",
                location=file.location,
                hint=f"the inputs are {', '.join(names)}",
            )
    types = [_input_type(file, value, shapes.get(value.name)) for value in inputs]
    open_inputs = [
        (name, type) for name, type in zip(names, types, strict=True) if DYNAMIC in type.get_shape()
    ]
    if open_inputs:
        listing = ", ".join(f"'{n}' {_with_questions(t.get_shape())}" for n, t in open_inputs)
        name, type = open_inputs[0]
        example = ",".join(str(1 if d == DYNAMIC else d) for d in type.get_shape())
        raise BraidError(
            f"dims of inputs are left open: {listing}",
            location=file.location,
            hint=f"give their shapes, such as --shape {name}={example}, or compile for several "
            f"sizes: --shape-buckets '{_open_dim(inputs, name)}=1,2,4'",
        )
    return types


def _open_dim(inputs: Sequence[ValueInfoProto], name: str) -> str:
    """The name of the first open dim of the input `name`."""
    shapes = (declared_shape(value) for value in inputs if value.name == name)
    return next(dim for shape in shapes for dim in shape if isinstance(dim, str))


def _with_questions(shape: Sequence[int]) -> str:
    return f"[{', '.join('?' if extent == DYNAMIC else str(extent) for extent in shape)}]"


def _input_type(file: ModelFile, value: ValueInfoProto, given: Sequence[int] | None) -> AnyTensor:
    # An optional tensor that is an input is one that is there.
    is_optional = value.type.HasField("optional_type")
    value_type = value.type.optional_type.elem_type if is_optional else value.type
    if not value_type.HasField("tensor_type"):
        kind = value_type.WhichOneof("value") or "untyped value"
        raise UnsupportedError(
            f"input '{value.name}' is a {kind.removesuffix('_type')}, expected a tensor",
            location=file.location,
        )
    tensor = value_type.tensor_type
    declared: list[int] | None = None
    if tensor.HasField("shape"):
        declared = [
            dim.dim_value if dim.HasField("dim_value") else DYNAMIC for dim in tensor.shape.dim
        ]
    shape = list(given) if given is not None else declared
    if shape is not None and any(extent < 0 and extent != DYNAMIC for extent in shape):
        raise BraidError(
            f"input '{value.name}' has shape {shape}, expected no negative size",
            location=file.location,
        )
    if shape is not None and len(shape) > MOST_DIMS:
        raise UnsupportedError(
            f"input '{value.name}' has {len(shape)} dims, expected at most {MOST_DIMS}",
            location=file.location,
        )
    if shape is not None and math.prod(n for n in shape if n != DYNAMIC) > MOST_ELEMENTS:
        raise BraidError(
            f"input '{value.name}' has shape {shape}, expected at most {MOST_ELEMENTS} elements",
            location=file.location,
        )
    if shape is None:
        raise BraidError(
            f"input '{value.name}' has no shape",
            location=file.location,
            hint=f"give it, such as --shape {value.name}=1,3,224,224",
        )
    if declared is not None and (
        len(shape) != len(declared)
        or any(d not in (DYNAMIC, s) for d, s in zip(declared, shape, strict=True))
    ):
        raise BraidError(
            f"input '{value.name}' was given shape {list(shape)}, expected "
            f"{_with_questions(declared)}",
            location=file.location,
        )
    dtype = file.tensors.dtype(tensor.elem_type, value.name)
    return TensorType(from_numpy(dtype), shape)
