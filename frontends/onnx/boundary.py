"""Inputs of a model that are text or mappings, and the ops that may use text."""

from onnx import NodeProto, TensorProto, TypeProto, ValueInfoProto

from braid.dialects.braid.base import AnyTensor, tensor_type
from braid.dialects.braid.dtypes import from_numpy
from braid.frontends.onnx.building.node import Node
from braid.frontends.onnx.building.opsets import domain_of
from braid.frontends.onnx.building.text_values import TextTable
from braid.frontends.onnx.model_file import ModelFile
from braid.support.errors import BraidError, UnsupportedError

_ML = "ai.onnx.ml"
_MOVING = frozenset(
    {
        "Concat",
        "Expand",
        "Flatten",
        "Gather",
        "Identity",
        "Reshape",
        "Slice",
        "Split",
        "Squeeze",
        "Tile",
        "Transpose",
        "Unsqueeze",
        "Where",
    }
)
"""Ops whose results are elements of their inputs."""
_READING = frozenset(
    {
        ("", "Equal"),
        (_ML, "CategoryMapper"),
        (_ML, "LabelEncoder"),
        (_ML, "OneHotEncoder"),
    }
)
"""Ops to which only equality of texts matters."""
_TO_ROWS = (_ML, "DictVectorizer")
_EXTRACTING = (_ML, "ArrayFeatureExtractor")


def is_text(value: ValueInfoProto) -> bool:
    """Return whether an input or output is declared as a tensor of text."""
    return value.type.tensor_type.elem_type == TensorProto.STRING


def mapping_input(
    file: ModelFile, value: ValueInfoProto
) -> tuple[AnyTensor, tuple[str | int, ...]] | None:
    """Return the row of an input that is a mapping, and its keys; None for another input.

    Raises UnsupportedError if no DictVectorizer lists its keys, or they are not numbers.
    """
    if not value.type.HasField("map_type"):
        return None
    users = [node for node in file.proto.graph.node if value.name in node.input]
    vocabularies = {_vocabulary(node) for node in users}
    if len(vocabularies) != 1 or None in vocabularies:
        raise UnsupportedError(
            f"input '{value.name}' is a mapping, which only DictVectorizer may read",
            location=file.location,
            hint="nodes that read it must have one vocabulary",
        )
    (keys,) = vocabularies
    assert keys is not None
    return _row_type(file, value.name, value.type.map_type, len(keys)), keys


def _row_type(file: ModelFile, name: str, type: TypeProto.Map, columns: int) -> AnyTensor:
    element = type.value_type.tensor_type.elem_type
    if element == TensorProto.STRING:
        raise UnsupportedError(
            f"input '{name}' is a mapping to text, expected one to numbers", location=file.location
        )
    if not columns:
        raise BraidError(f"input '{name}' is a mapping without keys", location=file.location)
    return tensor_type(from_numpy(file.tensors.dtype(element, name)), [1, columns])


def _vocabulary(node: NodeProto) -> tuple[str | int, ...] | None:
    if (domain_of(node), node.op_type) != _TO_ROWS:
        return None
    for attribute in node.attribute:
        if attribute.name == "string_vocabulary":
            return tuple(text.decode() for text in attribute.strings)
        if attribute.name == "int64_vocabulary":
            return tuple(attribute.ints)
    return ()


def check_text(node: Node, texts: TextTable) -> None:
    """Raise UnsupportedError for a node that computes with text or mappings, which none may."""
    op = node.domain, node.op_type
    for name, value in zip(node.proto.input, node.inputs, strict=True):
        if value is None:
            continue
        if texts.keys_of(value) is not None and op != _TO_ROWS:
            node.unsupported(f"its input '{name}' is a mapping, which only outputs may be")
        moves = op == _EXTRACTING or (not op[0] and op[1] in _MOVING)
        if value in texts and op not in _READING and not moves:
            node.unsupported(
                f"its input '{name}' is text",
                hint="text may be looked up, compared and moved: compute with it before the model",
            )


def moves_text(node: Node, texts: TextTable) -> bool:
    """Return whether the results of a node are text that it has only moved."""
    if (node.domain, node.op_type) in _READING:
        return False
    return any(value in texts for value in node.inputs if value is not None)
