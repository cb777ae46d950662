"""Read models from files and objects in memory, as a module with its parameters."""

import os
from collections import ChainMap
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from braid.analysis.structure.loop_nests import op_name
from braid.analysis.structure.model_context import ModelContext
from braid.analysis.structure.undefined_ops import refuse_undefined
from braid.analysis.structure.verification import verify_module
from braid.dialects.braid.attribute_names import (
    SYMBOLS,
)
from braid.dialects.braid.profile_keys import write_profile_keys
from braid.dialects.braid.settings import write_settings
from braid.dialects.braid.sizes import assumptions_of, has_open_dims, symbols_attribute
from braid.driver.options import CompileOptions
from braid.driver.sources.fixed_sizes import fix_sizes
from braid.driver.sources.intermediate import drop_size_checks, refuse_intermediate
from braid.driver.sources.open_model import Bounds, Buckets, OpenModel
from braid.driver.sources.source_model import Parameters, SourceModel
from braid.driver.sources.state import mark_state
from braid.driver.untuned import given_settings
from braid.frontends.collector import collector_paused
from braid.frontends.onnx import ImportedModel, OpenDimsError, import_onnx, read_model_bytes
from braid.frontends.onnx.fixed_inputs import Fixed
from braid.frontends.parameters import ParameterFile, parameters_of
from braid.passes.infrastructure.manager import run_pipeline
from braid.support.errors import BraidError, UnsupportedError, whole_numbers
from braid.support.model_bytes import ARTIFACT_MAGIC, BYTECODE_MAGIC, is_mlir
from braid.support.option_names import Value, by_door, option_text
from braid.support.sizes.assumptions import Assumed
from braid.support.unsupported_ops import UnsupportedNodesError
from braid.targets.machines.resolve import confine_target, set_target, target_name

Shapes = Mapping[str, Sequence[int]]
Dims = Mapping[str, int | str]
Constants = Mapping[str, object]
ModelSource = str | os.PathLike[str] | bytes | onnx.ModelProto | ModuleOp


def read_source(
    context: Context,
    source: ModelSource,
    *,
    shapes: Shapes | None = None,
    dims: Dims | None = None,
    constants: Constants | None = None,
    parameters: Parameters | str | os.PathLike[str] | None = None,
    buckets: Buckets | None = None,
    bounds: Bounds | None = None,
    target: str | None = None,
    cpu: str | None = None,
    gpu_arch: str | None = None,
    settings: Mapping[str, object] | None = None,
) -> SourceModel:
    """Read a model: the path of an `.onnx` or `.mlir` file, its bytes, a `ModelProto`, or a module.

    The `target`, the `cpu` of its host and the architecture of its GPUs are then written on it, by
    default those that the module has.

    `shapes` fixes the open dims of inputs of an ONNX model, `dims` dims by name, and `constants`
    values of inputs; `buckets` and `bounds` make variants for sizes of the dims that stay open (see
    `buckets.read_bucketed`). Dims that nothing fixes are sizes with a name. `parameters`, a mapping
    or the path of a safetensors file, add to those of the model and win over them. Passes find them
    in `context`. With `settings`, however few, the module holds its settings (`write_settings`):
    these, its own, or those of the environment. None are for models that are only read.

    Raises:
        BraidError: the model cannot be read, or is not valid, or there is no such target, CPU or
            setting.

    """
    source = _opened(source)
    fixed = Fixed(_checked_shapes(shapes), _checked_dims(dims), _checked_constants(constants))
    _check_sizes("shape_buckets", buckets, (1, 2, 4))
    _check_sizes("shape_bounds", bounds, 8)
    if buckets or bounds:
        model = _read_bucketed(source, buckets, bounds, fixed)
    else:
        model = _read(context, source, fixed)
    # This holds whatever made the module and fixed its sizes, since passes and kernels rely on
    # these checks.
    with collector_paused():
        verify_module(model.module)
        refuse_undefined(model.module)
    refuse_intermediate(model.module)
    drop_size_checks(model.module)
    if target is None and isinstance(source, bytes | str | os.PathLike):
        confine_target(model.module, None if isinstance(source, bytes) else Path(source))
    if target is not None or cpu is not None or gpu_arch is not None:
        name = target_name(model.module) if target is None else target
        set_target(model.module, name, cpu, gpu_arch)
    if settings is not None:
        write_settings(model.module, settings)
    if parameters is not None:
        given = _opened_parameters(parameters)
        model = replace(model, parameters=chain_parameters(given, model.parameters))
    if isinstance(context, ModelContext):
        context.parameters = model.parameters
    return model


def read_to_compile(context: Context, source: ModelSource, options: CompileOptions) -> SourceModel:
    """Read a model as the options say, with its settings and its state.

    Raises BraidError as `read_source`, and for a state that the model cannot have.
    """
    model = read_source(
        context,
        source,
        target=None if options.target is None else os.fspath(options.target),
        cpu=options.cpu,
        gpu_arch=options.gpu_arch,
        shapes=options.shapes,
        dims=options.dims,
        constants=options.constants,
        parameters=options.parameters,
        buckets=options.shape_buckets,
        bounds=options.shape_bounds,
        settings=given_settings(options),
    )
    mark_state(model.module, options.state)
    return model


def _opened(source: object) -> ModelSource:
    """Return `source`, or where it is the bytes of an ONNX model, this model.

    Raises:
        BraidError: it is nothing that a model comes as.

    """
    if isinstance(source, bytearray | memoryview):
        source = bytes(cast(bytearray, source))
    if isinstance(source, bytes):
        _check_bytes(source)
        return source if is_mlir(source) else read_model_bytes(source)
    if isinstance(source, str | os.PathLike | onnx.ModelProto | ModuleOp):
        return cast(ModelSource, source)
    raise BraidError(
        f"a model cannot be read from a {type(source).__name__}",
        hint="give the path of an .onnx or .mlir file, its contents as bytes, an onnx.ModelProto, "
        "or a ModuleOp of xDSL; braid.from_torch takes modules of PyTorch, and braid.from_jax "
        "functions of JAX",
    )


def _check_bytes(data: bytes) -> None:
    """Raise BraidError for bytes that are in no format of a model, whichever is tried."""
    if data.startswith(ARTIFACT_MAGIC):
        raise BraidError(
            "the bytes are those of an artifact, which is compiled already",
            hint="write them to a .braid file, which braid.load takes",
        )
    if not data or (is_mlir(data) and not data.startswith(BYTECODE_MAGIC) and b"{" not in data):
        begin = f": they begin with {data[:_SHOWN_BYTES]!r}" if data else ": there are none"
        raise BraidError(
            f"the bytes are neither an ONNX model nor a module of MLIR{begin}",
            hint="give the contents of an .onnx or .mlir file; a path is given as text",
        )


def _opened_parameters(parameters: object) -> Parameters:
    """Return parameters by key. Raises BraidError for other objects than a mapping or a file."""
    if isinstance(parameters, str | os.PathLike):
        return ParameterFile(Path(cast(str, parameters)))
    if not isinstance(parameters, Mapping):
        raise BraidError(
            f"parameters is {parameters!r:.200}, expected arrays by key, or a safetensors file"
        )
    given = cast(Mapping[str, object], parameters)
    for key in given if isinstance(given, dict) else ():  # other mappings may read their keys
        if not isinstance(given[key], np.ndarray):
            raise BraidError(
                f"parameter {key!r} is a {type(given[key]).__name__}, expected a numpy array"
            )
    return cast(Parameters, given)


def _checked_shapes(shapes: object) -> Shapes:
    """Raise BraidError unless `shapes` maps names of inputs to sizes, or is None."""
    checked: dict[str, Sequence[int]] = {}
    example = {"x": (1, 3, 224, 224)}
    for name, shape in _entries("shapes", shapes, "a shape by each input's name", example).items():
        sizes = whole_numbers(shape)
        if sizes is None or isinstance(shape, Set) or any(size < 0 for size in sizes):
            raise BraidError(
                f"the shape of {name!r} is {shape!r}, expected a list of sizes of at least 0",
                hint=f"such as {option_text('shapes', example)}",
            )
        checked[name] = sizes
    return checked


def _checked_dims(dims: object) -> Dims:
    """Raise BraidError unless `dims` maps names of dims to sizes or names, or is None."""
    checked: dict[str, int | str] = {}
    example = {"batch": 4}
    for name, size in _entries("dims", dims, "a size by the name of each dim", example).items():
        sizes = whole_numbers([size])
        if not isinstance(size, str) and (sizes is None or sizes[0] < 0):
            raise BraidError(
                f"the size of dim {name!r} is {size!r}, expected a number of at least 0, or the "
                "name of another dim",
                hint=f"such as {option_text('dims', example)}",
            )
        checked[name] = size if isinstance(size, str) else sizes[0] if sizes else 0
    return checked


def _checked_constants(constants: object) -> Constants:
    """Raise BraidError unless `constants` maps names of inputs to values, or is None."""
    expected = "a value by the name of each input"
    return _entries("constants", constants, expected, {"length": 128})


def _check_sizes(what: str, sizes: object, example: Value) -> None:
    """Raise BraidError unless `sizes`, buckets or bounds, are given by the names of dims."""
    _entries(what, sizes, "sizes by the name of each dim", {"batch": example})


def _entries(
    what: str, given: object, expected: str, example: Mapping[str, Value]
) -> Mapping[str, object]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise BraidError(
            f"{what} is {given!r:.200}, expected {expected}",
            hint=f"such as {option_text(what, example)}",
        )
    return cast(Mapping[str, object], given)


def chain_parameters(first: Parameters, second: Parameters) -> Parameters:
    """Return both mappings as one, in which `first` wins; values are read when asked for."""
    return ChainMap(cast(dict[str, Any], first), cast(dict[str, Any], second))


def _read(context: Context, source: ModelSource, fixed: Fixed) -> SourceModel:
    if isinstance(source, ModuleOp):
        verify_module(source)
        return SourceModel("model", _in_braid(context, source.clone(), fixed), {})
    if isinstance(source, onnx.ModelProto):
        imported = _imported(source, fixed)
        name = source.graph.name or "model"
        return SourceModel(name, imported.module, imported.parameters)
    if isinstance(source, bytes):
        from braid.driver.sources.reading import read_mlir
        from braid.frontends.mlir.files import decode_mlir

        module = read_mlir(context, decode_mlir(source, _BYTES), _BYTES)
        return SourceModel("model", _in_braid(context, module, fixed), {})
    path = Path(source)
    match path.suffix.lower():
        case ".onnx":
            imported = _imported(path, fixed)
            return SourceModel(path.stem, imported.module, imported.parameters)
        case ".mlir":
            from braid.driver.sources.reading import read_mlir
            from braid.frontends.mlir.files import read_mlir_text

            module = read_mlir(context, read_mlir_text(path), str(path))
            parameters = parameters_of(module, path)
            return SourceModel(path.stem, _in_braid(context, module, fixed), parameters)
        case suffix:
            what = f"is a '{suffix}' file" if suffix else "has no suffix"
            what = "is a directory" if _is_directory(path) else what
            raise BraidError(
                f"'{path}' {what}, expected a model: .onnx or .mlir",
                hint=_hint_for(path, suffix.lower()),
            )


def _is_directory(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # no file has such a name
        return False


def _hint_for(path: Path, suffix: str) -> str:
    """Return the hint for a name that is not the name of a model file."""
    if "\n" in str(path) or "func" in str(path):
        return "the text of a module is given as bytes: text.encode()"
    if suffix == ".braid":
        return by_door(
            "artifacts (.braid) are loaded with braid.load",
            "artifacts (.braid) are compiled: braid run, bench and inspect take them",
        )
    if suffix in (".pt", ".pth", ".pt2", ".ckpt"):
        return by_door(
            "braid.from_torch takes modules of PyTorch",
            "export the module with torch.onnx.export",
        )
    if suffix in (".pb", ".tflite", ".h5", ".keras"):
        return "convert it to ONNX, as tf2onnx does"
    return "export the model to ONNX, and name its file *.onnx"


def _in_braid(context: Context, module: ModuleOp, fixed: Fixed) -> ModuleOp:
    """Return the module with ops of other model dialects converted, in place.

    Open dims get sizes with names, but for those that are `fixed`. Control flow says how it is
    counted, as ONNX models say.
    """
    dialects = {op_name(op).partition(".")[0] for op in module.walk()}
    converted = [_CONVERSIONS[name] for name in _CONVERSIONS if name in dialects]
    passes = list(dict.fromkeys(name for names in converted for name in names))
    if passes:  # what a caller knows of sizes is needed in the functions that it calls
        passes = ["inline", *passes]
    if has_open_dims(module):
        passes = [*passes[:1], "name-open-dims", *passes[1:]]
    for pipeline in passes:
        run_pipeline(context, module, pipeline, verify=False)
    fix_sizes(module, fixed)
    write_profile_keys(module)
    return module


_BYTES = "<bytes>"
"""Locations name a model in bytes so."""
_SHOWN_BYTES = 20
"""Bytes of an unreadable source that a message shows."""
_STABLEHLO = ("split-complex-numbers", "convert-stablehlo-to-braid")
_LINALG = ("convert-linalg-to-braid",)
_CONVERSIONS = {
    "stablehlo": _STABLEHLO,
    "chlo": _STABLEHLO,
    "tosa": ("convert-tosa-to-braid",),
    "linalg": _LINALG,
    "arith": _LINALG,
    "math": _LINALG,
    "tensor": _LINALG,
}
"""These passes convert the ops of dialects of models, by the names of the dialects."""


def _imported(source: Path | onnx.ModelProto, fixed: Fixed) -> ImportedModel:
    """Import a model, with open dims as sizes. Raises BraidError as `import_onnx`."""
    try:
        return import_onnx(
            source,
            shapes=fixed.shapes,
            dims=fixed.dims,
            constants=fixed.constants,
            may_decide=True,
        )
    except OpenDimsError:
        from braid.driver.sources.likely_sizes import valid_sizes  # imported where dims are open

        return _kept_open(source, fixed, valid_sizes(OpenModel(source, fixed)) or {})


def _kept_open(
    source: Path | onnx.ModelProto, fixed: Fixed, likely: Mapping[str, int]
) -> ImportedModel:
    """Import a model whose open dims are sizes; some sizes are likely."""
    try:
        imported = import_onnx(
            source,
            shapes=fixed.shapes,
            dims=fixed.dims,
            constants=fixed.constants,
            keep_open=True,
        )
    except UnsupportedError as error:
        if not likely or (isinstance(error, UnsupportedNodesError) and error.lacks_ops):
            raise
        raise UnsupportedError(
            error.message,
            location=error.location,
            notes=error.notes,
            hint=f"give the sizes of its open dims, such as {option_text('dims', likely)}",
        ) from error
    if all(size == 1 for size in likely.values()):
        return imported  # any model is valid there, so its sizes need not be likely
    for function in imported.module.ops:
        known = dict(assumptions_of(function).symbols)
        guessed = {n: replace(known.get(n, Assumed()), likely=(likely[n],)) for n in likely}
        function.attributes[SYMBOLS] = symbols_attribute({**known, **guessed})
    return imported


def _read_bucketed(
    source: ModelSource, buckets: Buckets | None, bounds: Bounds | None, fixed: Fixed
) -> SourceModel:
    if isinstance(source, ModuleOp | bytes) or (
        not isinstance(source, onnx.ModelProto) and Path(source).suffix.lower() != ".onnx"
    ):
        raise BraidError("buckets of shapes can only be given for ONNX models")
    from braid.driver.sources.buckets import read_bucketed  # imported where there are any

    return read_bucketed(source, buckets=buckets, bounds=bounds, fixed=fixed)
