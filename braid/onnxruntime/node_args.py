"""Describe the model of a session: `NodeArg` of inputs and outputs, and `ModelMetadata`."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from google.protobuf.message import DecodeError
from onnx import ModelProto, TensorShapeProto, ValueInfoProto

from braid.frontends.onnx.wire import skeleton
from braid.onnxruntime.element_types import type_text
from braid.onnxruntime.errors import InvalidArgument, InvalidProtobuf, NoSuchFile
from braid.runtime.manifest import PortKind, TensorSpec
from braid.support.errors import BraidError
from braid.support.input_files import map_regular

Dim = int | str | None
"""A size, the name of an open dim, or None for one without a name."""


Kinds = Mapping[str, PortKind]
"""The inputs or outputs, by name, that are text or mappings."""

_NO_VERSION = 2**63 - 1
"""The version that ONNX Runtime reports for a model without one."""


@dataclass(frozen=True, repr=False)
class NodeArg:
    """An input or output: its type is text such as `tensor(float)`."""

    name: str
    shape: list[Dim]
    type: str

    def __repr__(self) -> str:
        """Return the text that ONNX Runtime prints of it."""
        return f"NodeArg(name={self.name!r}, type={self.type!r}, shape={self.shape})"


@dataclass(frozen=True)
class ModelMetadata:
    """The metadata of a model, as its author wrote it."""

    custom_metadata_map: dict[str, str] = field(default_factory=dict[str, str])
    description: str = ""
    domain: str = ""
    graph_description: str = ""
    graph_name: str = ""
    producer_name: str = ""
    version: int = 0


@dataclass(frozen=True)
class OpenDim:
    """An open dim of an input: its author's name and its denotation, both empty for most.

    `key` is braid's name of it.
    """

    name: str
    denotation: str
    key: str


@dataclass(frozen=True)
class Header:
    """An ONNX model without its weights."""

    model: ModelProto

    @property
    def metadata(self) -> ModelMetadata:
        """Return the metadata of the model, as its author wrote it."""
        model = self.model
        return ModelMetadata(
            {entry.key: entry.value for entry in model.metadata_props},
            model.doc_string,
            model.domain,
            model.graph.doc_string,
            model.graph.name,
            model.producer_name,
            model.model_version if model.HasField("model_version") else _NO_VERSION,
        )

    def open_dims(self) -> list[OpenDim]:
        """Return the dims of inputs other than numbers."""
        weights = {tensor.name for tensor in self.model.graph.initializer}
        return [
            OpenDim(
                dim.dim_param,
                dim.denotation,
                f"{value.name}[{position}]"
                if dim.dim_param.strip() in _NAMELESS
                else dim.dim_param,
            )
            for value in self.model.graph.input
            if value.name not in weights
            for position, dim in enumerate(value.type.tensor_type.shape.dim)
            if not isinstance(_declared(dim), int)
        ]

    def inputs(self, specs: Sequence[TensorSpec], kinds: Kinds) -> list[NodeArg]:
        """Return the model's descriptions of the inputs that it has when it is compiled."""
        return described(specs, kinds, self.model.graph.input)

    def outputs(self, specs: Sequence[TensorSpec], kinds: Kinds) -> list[NodeArg]:
        """Return the same of its outputs."""
        return described(specs, kinds, self.model.graph.output, is_output=True)

    def overridable(self, type_of: Callable[[int], str]) -> list[NodeArg]:
        """Return the inputs that have a weight as their default value."""
        weights = {tensor.name for tensor in self.model.graph.initializer}
        return [
            NodeArg(
                value.name,
                [_declared(dim) for dim in value.type.tensor_type.shape.dim],
                type_of(value.type.tensor_type.elem_type),
            )
            for value in self.model.graph.input
            if value.name in weights and self.model.ir_version >= 4
        ]


def read_header(source: Path | bytes) -> Header:
    """Read a model without its weights.

    Raises:
        NoSuchFile: there is no file, or it cannot be read.
        InvalidProtobuf: it cannot be decoded.
        InvalidArgument: it has no graph.

    """
    where = "bytes" if isinstance(source, bytes) else str(source)
    try:
        data = source if isinstance(source, bytes) else map_regular(source)
        model = ModelProto()
        model.ParseFromString(skeleton(memoryview(data), "weights") if data else b"")
    except OSError as error:
        raise NoSuchFile(f"Load model from {where} failed: {error.strerror}") from error
    except (DecodeError, BraidError) as error:
        detail = error.message if isinstance(error, BraidError) else "it is no ONNX model"
        raise InvalidProtobuf(f"Load model from {where} failed: {detail}") from error
    if not model.HasField("graph"):
        raise InvalidArgument(
            f"Load model from {where} failed: No graph was found in the protobuf."
        )
    return Header(model)


def described(
    specs: Iterable[TensorSpec],
    kinds: Kinds,
    values: Iterable[ValueInfoProto] = (),
    *,
    is_output: bool = False,
) -> list[NodeArg]:
    """Return facts about the inputs or outputs of a compiled model, with the model's
    descriptions."""
    declared: Mapping[str, ValueInfoProto] = {value.name: value for value in values}
    found: list[NodeArg] = []
    for spec in specs:
        kind = kinds.get(spec.name)
        if kind is not None and kind.is_random:
            continue  # it is drawn at each run, as ONNX Runtime does inside
        if kind is not None and kind.keys:
            found.append(NodeArg(spec.name, [], _mapping_text(kind, spec.dtype, is_output)))
            continue
        type = type_text(spec.dtype) if kind is None else "tensor(string)"
        found.append(NodeArg(spec.name, _shape(spec, declared.get(spec.name)), type))
    return found


def _mapping_text(kind: PortKind, dtype: str, is_output: bool) -> str:
    key = "string" if isinstance(kind.keys[0], str) else "int64"
    mapping = f"map({key},{type_text(dtype)})"
    return f"seq({mapping})" if is_output else mapping


def _shape(spec: TensorSpec, value: ValueInfoProto | None) -> list[Dim]:
    """Return sizes as they are known once the model is compiled, and names as its author gave."""
    known = _compiled_shape(spec)
    shape = None if value is None else value.type.tensor_type.shape
    if shape is None or len(shape.dim) != len(known):
        return known
    return [
        size if isinstance(size, int) else _declared(dim)
        for size, dim in zip(known, shape.dim, strict=True)
    ]


_NAMELESS = frozenset({"", "?", "-1", "None"})
"""Names that exporters write for every dim of which they know nothing, as in braid's importer."""


def _declared(dim: TensorShapeProto.Dimension) -> Dim:
    if dim.HasField("dim_value"):
        return dim.dim_value if dim.dim_value >= 0 else None
    return dim.dim_param or None


def _compiled_shape(spec: TensorSpec) -> list[Dim]:
    names = spec.dims or ("",) * len(spec.shape)
    return [
        size if size >= 0 else (None if "[" in name else name or None)
        for size, name in zip(spec.shape, names, strict=True)
    ]
