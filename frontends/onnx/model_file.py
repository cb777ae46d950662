"""Reading a `ModelProto` from a file or memory, checking it, and reading its dims."""

import mmap
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError
from onnx import ModelProto, TypeProto, ValueInfoProto

from braid.frontends.onnx.building.opsets import imported_opsets
from braid.frontends.onnx.building.tensors import TensorReader
from braid.frontends.onnx.functions import functions_by_key
from braid.frontends.onnx.limits import check_limits
from braid.frontends.onnx.texts import check_texts
from braid.frontends.onnx.wire import skeleton
from braid.support.errors import BraidError, SourceLocation, UnsupportedError, missing_file_hint
from braid.support.input_files import map_regular


class ModelFile:
    """An ONNX model whose large tensors are read from its file on demand.

    `opsets` are those of its graph; `functions` are the model's own by domain, name and overload.
    """

    def __init__(self, source: str | Path | ModelProto) -> None:
        if isinstance(source, ModelProto):
            self.location = SourceLocation(_graph_name(source) or "<model>")
            path = None
            proto = source
        else:
            path = Path(source)
            self.location = SourceLocation(str(path))
            proto = _read_skeleton(path, self.location)
        self.tensors = TensorReader(path, self.location)
        _check_is_model(proto, self.location)
        check_texts(proto, self.location)
        check_limits(proto, self.location)
        self.opsets = imported_opsets(proto.opset_import, self.location)
        self.functions = functions_by_key(proto.functions)
        self.proto = proto


def _graph_name(proto: ModelProto) -> str:
    """Return the name of the graph; none where it is no UTF-8, see `check_texts`."""
    name: str | bytes = proto.graph.name
    return "" if isinstance(name, bytes) else name


_AGAIN = (
    "export the model again, or copy the file again; onnx.checker.check_model tells if it is one"
)


def _read_skeleton(path: Path, location: SourceLocation) -> ModelProto:
    try:
        return _parsed(map_regular(path), path.name, location)
    except OSError as error:
        raise BraidError(
            f"cannot read '{path}': {error.strerror}", hint=missing_file_hint(path)
        ) from error


def _parsed(data: mmap.mmap | bytes, name: str, location: SourceLocation) -> ModelProto:
    """Return the model in `data`.

    References to large tensors say that they are in the file `name`.
    """
    if not data:
        raise BraidError("the file is empty", location=location, hint=_AGAIN)
    try:
        proto = ModelProto()
        proto.ParseFromString(skeleton(memoryview(data), name))
        return proto
    except DecodeError as error:
        raise BraidError(
            "not an ONNX model: it cannot be decoded, or is nested too deeply",
            location=location,
            hint=_AGAIN,
        ) from error
    except BraidError as error:
        raise BraidError(
            f"not an ONNX model: {error.message}", location=location, hint=error.hint or _AGAIN
        ) from error


def read_model_bytes(data: bytes) -> ModelProto:
    """Return the model whose file has these bytes. Raises BraidError if they are invalid."""
    location = SourceLocation("<bytes>")
    _parsed(data, location.file, location)  # finds constructs that must not be parsed
    proto = ModelProto()
    proto.ParseFromString(data)
    return proto


def _check_is_model(proto: ModelProto, location: SourceLocation) -> None:
    if not proto.HasField("graph") or not proto.opset_import:
        missing = "no graph" if not proto.HasField("graph") else "no opset"
        raise BraidError(f"not an ONNX model: it has {missing}", location=location)
    if not proto.graph.output:
        raise BraidError("the model has no outputs", location=location)
    if proto.ir_version > onnx.IR_VERSION:
        raise UnsupportedError(
            f"the model has IR version {proto.ir_version}, expected at most {onnx.IR_VERSION}",
            location=location,
            hint="install a newer onnx package",
        )


DeclaredShape = tuple[int | str, ...]
"""A size, or the name of an open dim, for each dim."""


def initializer_names(source: str | Path | ModelProto) -> frozenset[str]:
    """Return names of the weights that are in the model as such.

    Raises BraidError for an invalid model.
    """
    return frozenset(tensor.name for tensor in ModelFile(source).proto.graph.initializer)


def tensor_type_of(value: ValueInfoProto) -> TypeProto.Tensor:
    """Return the type of a tensor, or of the content of an optional tensor; empty for other
    values."""
    is_optional = value.type.HasField("optional_type")
    return (value.type.optional_type.elem_type if is_optional else value.type).tensor_type


_NAMELESS = frozenset({"", "?", "-1", "None"})
"""Names that exporters write for every dim of which they know nothing."""


def declared_shape(value: ValueInfoProto) -> DeclaredShape:
    """Return the declared shape of an input or output that has one.

    An open dim has the name that the model gives it, which other dims may share, or else one of
    the form `x[0]`, which is its own.
    """
    return tuple(
        dim.dim_value
        if dim.HasField("dim_value") and dim.dim_value >= 0
        else f"{value.name}[{position}]"
        if dim.dim_param.strip() in _NAMELESS
        else dim.dim_param
        for position, dim in enumerate(tensor_type_of(value).shape.dim)
    )
