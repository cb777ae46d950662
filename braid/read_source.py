"""Where models come from: files and objects in memory, as a module with its parameters."""

import os
from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import onnx
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from braid.analysis.structure.verification import verify_module
from braid.dialects.stablehlo import StablehloOp
from braid.dialects.tosa import TosaOp
from braid.dynamic_shapes.buckets import Bounds, Buckets, read_bucketed
from braid.frontends.mlir import read_mlir_text
from braid.frontends.onnx import import_onnx
from braid.frontends.parameters import ParameterFile, parameters_of
from braid.passes.infrastructure.manager import run_pipeline
from braid.sources.reading import read_mlir
from braid.sources.source_model import Parameters, SourceModel
from braid.support.errors import BraidError

Shapes = Mapping[str, Sequence[int]]
ModelSource = str | os.PathLike[str] | onnx.ModelProto | ModuleOp


def read_source(
    context: Context,
    source: ModelSource,
    *,
    shapes: Shapes | None = None,
    parameters: Parameters | str | os.PathLike[str] | None = None,
    buckets: Buckets | None = None,
    bounds: Bounds | None = None,
) -> SourceModel:
    """Read a model: the path of an `.onnx` or `.mlir` file, a `ModelProto`, or a module.

    `shapes` fixes the open dims of inputs of an ONNX model; `buckets` and `bounds` make variants
    for sizes of those that stay open (see `buckets.read_bucketed`). `parameters`, a mapping or the
    path of a safetensors file, add to those of the model and win over them.

    Raises:
        BraidError: the model cannot be read, or is not valid.

    """
    if buckets or bounds:
        model = _read_bucketed(source, buckets, bounds, shapes)
    else:
        model = _read(context, source, shapes)
    if parameters is None:
        return model
    given = parameters if isinstance(parameters, Mapping) else ParameterFile(Path(parameters))
    return replace(model, parameters=chain_parameters(given, model.parameters))


def chain_parameters(first: Parameters, second: Parameters) -> Parameters:
    """Both mappings as one, in which `first` wins; nothing is read before it is asked for."""
    return ChainMap(cast(dict[str, Any], first), cast(dict[str, Any], second))


def _read(context: Context, source: ModelSource, shapes: Shapes | None) -> SourceModel:
    if isinstance(source, ModuleOp):
        _refuse_shapes(shapes)
        verify_module(source)
        return SourceModel("model", _in_braid(context, source.clone()), {})
    if isinstance(source, onnx.ModelProto):
        imported = import_onnx(source, shapes=shapes)
        name = source.graph.name or "model"
        return SourceModel(name, imported.module, imported.parameters)
    path = Path(source)
    match path.suffix:
        case ".onnx":
            imported = import_onnx(path, shapes=shapes)
            return SourceModel(path.stem, imported.module, imported.parameters)
        case ".mlir":
            _refuse_shapes(shapes)
            module = read_mlir(context, read_mlir_text(path), str(path))
            parameters = parameters_of(module, path.parent)
            return SourceModel(path.stem, _in_braid(context, module), parameters)
        case suffix:
            raise BraidError(
                f"'{path}' is a '{suffix}' file, expected a model: .onnx or .mlir"
                if suffix
                else f"'{path}' has no suffix, expected a model: .onnx or .mlir",
                hint="artifacts (.braid) are loaded with braid.load"
                if suffix == ".braid"
                else None,
            )


def _in_braid(context: Context, module: ModuleOp) -> ModuleOp:
    """The module with what other dialects of models there is converted, in place."""
    for kind, pipeline in _CONVERSIONS.items():
        if any(isinstance(op, kind) for op in module.walk()):
            run_pipeline(context, module, pipeline, verify=False)
    return module


_CONVERSIONS = {
    StablehloOp: "convert-stablehlo-to-braid",
    TosaOp: "convert-tosa-to-braid",
}
"""What ops of dialects of models are converted by."""


def _read_bucketed(
    source: ModelSource, buckets: Buckets | None, bounds: Bounds | None, shapes: Shapes | None
) -> SourceModel:
    if isinstance(source, ModuleOp) or (
        not isinstance(source, onnx.ModelProto) and Path(source).suffix != ".onnx"
    ):
        raise BraidError("buckets of shapes can only be given for ONNX models")
    return read_bucketed(source, buckets=buckets, bounds=bounds, shapes=shapes)


def _refuse_shapes(shapes: Shapes | None) -> None:
    if shapes:
        raise BraidError(
            "shapes can only be given for ONNX models",
            hint="write them into the types of the module",
        )
