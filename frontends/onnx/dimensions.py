"""What an ONNX model says about the dims of its inputs, without importing it."""

from pathlib import Path

from onnx import ModelProto, ValueInfoProto

from braid.frontends.onnx.model_file import ModelFile

DeclaredShape = tuple[int | str, ...]
"""A size, or the name of an open dim, for each dim."""


def declared_shapes(source: str | Path | ModelProto) -> dict[str, DeclaredShape]:
    """The declared shapes of the inputs by name, in order.

    An open dim has the name that the model gives it, which other dims may share, or else one of
    the form `x[0]`. Inputs without a rank and inputs that are not tensors are left out.
    Raises BraidError for what is not a valid model.
    """
    graph = ModelFile(source).proto.graph
    initialized = {tensor.name for tensor in graph.initializer}
    values = [value for value in graph.input if value.name not in initialized]
    return {
        value.name: declared_shape(value)
        for value in values
        if value.type.tensor_type.HasField("shape")
    }


def initializer_names(source: str | Path | ModelProto) -> frozenset[str]:
    """Names of the weights that are in the model as such.

    Raises BraidError for what is not a valid model.
    """
    return frozenset(tensor.name for tensor in ModelFile(source).proto.graph.initializer)


def declared_shape(value: ValueInfoProto) -> DeclaredShape:
    """The declared shape of an input that has one."""
    return tuple(
        dim.dim_value if dim.HasField("dim_value") else dim.dim_param or f"{value.name}[{position}]"
        for position, dim in enumerate(value.type.tensor_type.shape.dim)
    )
