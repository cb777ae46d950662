"""A node as its importer sees it: resolved inputs, and attributes with their types checked."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
from onnx import AttributeProto, GraphProto, NodeProto, TensorProto, helper
from xdsl.ir import Attribute, SSAValue

from braid.dialects.braid.base import extents_of
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.size_evaluation import is_sized
from braid.frontends.onnx.building.builder import Builder
from braid.frontends.onnx.building.decisions import decided, may_decide
from braid.frontends.onnx.building.opsets import domain_of
from braid.frontends.onnx.building.size_inputs import inputs_behind, note_use, request_value
from braid.frontends.onnx.building.tensors import TensorReader
from braid.support.errors import BraidError, SourceLocation, UnsupportedError
from braid.support.option_names import option_text
from braid.support.sizes.expression import Extent, Size, symbols_of
from braid.support.sizes.scalars import Scalar
from braid.support.sizes.text import print_scalar, print_size

SubgraphImporter = Callable[[GraphProto, Sequence[SSAValue]], list[SSAValue]]
"""Appends a subgraph, whose inputs are given, to the builder's block; its outputs."""

NodeImporter = Callable[[NodeProto, Sequence[SSAValue | None]], Sequence[SSAValue | None]]
"""Appends the computation of a node of ONNX's domain with the given inputs; returns its outputs."""


CALLED_OPSET = 23
"""The opset of ONNX's domain in which importers call its ops."""

DeclaredSizes = tuple[int | None, ...]
"""The sizes of dims that a graph declares; None for those that it leaves open."""


def node_text(node: NodeProto) -> str:
    """Return the name of a node in messages: its own name, or that of its first output, with its
    op."""
    return f"node '{node.name or next(iter(node.output), '')}' ({node.op_type})"


class InvalidModelError(BraidError):
    """Raised for errors at all shapes: names, counts, element types and attributes.

    It is an error of the model also in a branch that is never taken.
    """


def _entry_text(entry: object) -> str:
    """Return the text of a number, a size, or a float that is computed from sizes."""
    if isinstance(entry, Scalar):
        return print_scalar(entry)
    return print_size(entry) if isinstance(entry, Size) else str(entry)


class Node:
    """A node being imported; an element of `inputs` is None if the optional input is omitted.

    `opset` is that of ONNX's default domain, `domain_opset` that of the op's own; `bound_types`
    are the element types by the type variables of the op's schema.
    """

    def __init__(
        self,
        proto: NodeProto,
        inputs: Sequence[SSAValue | None],
        *,
        builder: Builder,
        opset: int,
        domain_opset: int,
        location: SourceLocation,
        tensors: TensorReader,
        import_subgraph: SubgraphImporter,
        import_node: NodeImporter,
        declared: Mapping[str, DeclaredSizes],
    ) -> None:
        self.proto = proto
        self.inputs = tuple(inputs)
        self.opset = opset
        self.domain = domain_of(proto)
        self.domain_opset = domain_opset
        self.bound_types: Mapping[str, Attribute] = {}
        self._tensors = tensors
        self.import_subgraph = import_subgraph
        self._import_node = import_node
        self._declared = declared
        self._builder = builder
        self._location = location
        self._attributes = {attribute.name: attribute for attribute in proto.attribute}
        self._asked: set[str] = set()

    @property
    def location(self) -> SourceLocation:
        """Return where the model is."""
        return self._location

    def declared_outputs(self) -> list[DeclaredSizes | None]:
        """Return the graph's declared shapes of the outputs, None where there is none."""
        return [self._declared.get(name) for name in self.proto.output]

    @property
    def op_type(self) -> str:
        """Return the op's name, such as `Conv`."""
        return self.proto.op_type

    def fail(self, message: str, *, hint: str | None = None) -> NoReturn:
        """Raise BraidError about this node."""
        raise BraidError(f"{self}: {message}", location=self._location, hint=hint)

    def invalid(self, message: str, *, hint: str | None = None) -> NoReturn:
        """Raise InvalidModelError about this node."""
        raise InvalidModelError(f"{self}: {message}", location=self._location, hint=hint)

    def unsupported(self, message: str, *, hint: str | None = None) -> NoReturn:
        """Raise UnsupportedError about this node."""
        raise UnsupportedError(f"{self}: {message}", location=self._location, hint=hint)

    def __str__(self) -> str:
        return node_text(self.proto)

    def input(self, index: int) -> SSAValue:
        """Return input `index`. Raises BraidError if the node has no such attribute."""
        value = self.optional(index)
        if value is None:
            self.fail(f"input {index} is missing")
        return value

    def is_text(self, value: SSAValue) -> bool:
        """Return whether the elements of a value stand for texts."""
        return value in self._builder.texts

    def is_mapping(self, value: SSAValue) -> bool:
        """Return whether the rows of a value stand for mappings."""
        return self._builder.texts.keys_of(value) is not None

    def optional(self, index: int) -> SSAValue | None:
        """Return input `index`, None where it is left out."""
        return self.inputs[index] if index < len(self.inputs) else None

    def value_if_known(self, index: int) -> Array | None:
        """Return the value of input `index` if it is there and not computed."""
        value = self.optional(index)
        return None if value is None else self._builder.known(value)

    def known(self, index: int) -> Array | None:
        """Return the value of input `index` if there is one.

        Raises UnsupportedError if it is computed.
        """
        value = self.optional(index)
        if value is None:
            return None
        array = self._builder.known(value)
        if array is None:
            name, sizes = self.proto.input[index], self._builder.sizes_of(value)
            if sizes is not None:
                text = ", ".join(map(_entry_text, sizes.reshape(-1).tolist()))
                self.unsupported(
                    f"input {index} ('{name}') has open sizes, [{text}], expected numbers",
                    hint=self._way_to_fix(sizes),
                )
            request_value(self._builder, value, as_sizes=False)
            self.unsupported(
                f"input {index} ('{name}') is computed while the model runs, expected a constant",
                hint=self._way_to_know(value),
            )
        return array

    def _way_to_fix(self, sizes: Array) -> str:
        """Return a hint how sizes become numbers: dims are fixed, and inputs made constants."""
        names = symbols_of(*(each for each in sizes.reshape(-1).tolist() if isinstance(each, Size)))
        for name, own in self._builder.size_inputs.items():
            if not names.isdisjoint(own):
                return f"fix input '{name}', whose value they depend on: {option_text('constants')}"
        return f"fix these sizes: {option_text('dims')} or {option_text('shapes')}"

    def _way_to_know(self, value: SSAValue) -> str:
        """Return a hint how `value` becomes known: all shapes are, so it depends on data."""
        found = inputs_behind(self._builder, value)
        if not found:
            return "make it a constant of the model"
        inputs = " and ".join(f"'{name}'" for name in found)
        return f"it depends on the data of {inputs}, whatever the shapes are: make that a constant"

    def known_integers(self, index: int) -> tuple[int, ...] | None:
        """Return constant input `index`, a vector or scalar, as integers; see `known`."""
        array = self.known(index)
        if array is not None and array.ndim > 1:
            self.fail(f"input {index} has shape {list(array.shape)}, expected a vector")
        return None if array is None else tuple(int(x) for x in array.reshape(-1))

    def known_integer(self, index: int) -> int | None:
        """Return constant input `index` as one integer, None if it is left out; see `known`."""
        values = self.known_integers(index)
        if values is not None and len(values) != 1:
            self.fail(f"input {index} has {len(values)} elements, expected one")
        return None if values is None else values[0]

    def known_sizes(self, index: int) -> tuple[Extent, ...] | None:
        """Return input `index`, a vector or scalar of numbers and sizes; see `known`."""
        value = self.optional(index)
        array = None if value is None else self.sizes_of_value(value, self.proto.input[index])
        if array is None or not is_sized(array):
            return self.known_integers(index)
        if array.ndim > 1:
            self.fail(f"input {index} has shape {list(array.shape)}, expected a vector")
        return tuple(array.reshape(-1).tolist())

    def sizes_of_value(self, value: SSAValue, name: str) -> Array | None:
        """Return numbers and sizes that a value is made of; data decide those called `name`.

        None where these cannot be sizes, or where the import is to be tried again.
        """
        array = self._builder.sizes_of(value)
        if array is None and may_decide(self._builder, value):
            if not request_value(self._builder, value):
                return decided(self._builder, value, name)
        elif array is not None and is_sized(array):
            note_use(self._builder, array)
        return array

    def known_size(self, index: int) -> Extent | None:
        """Return input `index` as one number or size, None if it is left out; see `known`."""
        values = self.known_sizes(index)
        if values is not None and len(values) != 1:
            self.fail(f"input {index} has {len(values)} elements, expected one")
        return None if values is None else values[0]

    def sizes_of(self, name: str, index: int) -> tuple[Extent, ...] | None:
        """Return attribute `name` in old opsets, input `index` in newer ones; None without it."""
        return self.integers(name) if self.has(name) else self.known_sizes(index)

    def known_scalar(self, index: int) -> Array | None:
        """Return constant input `index`, which must have one element; see `known`."""
        array = self.known(index)
        self.require_scalar(index)
        return array

    def require_scalar(self, index: int) -> None:
        """Raise BraidError if input `index` is present and does not have exactly one element."""
        value = self.optional(index)
        if value is not None and extents_of(value) not in ((), (1,)):
            self.fail(f"input {index} has shape {list(extents_of(value))}, expected one number")

    def call(self, op_type: str, *inputs: SSAValue | None, **attributes: Any) -> SSAValue:
        """Append the computation of an op of ONNX's domain, in the opset `CALLED_OPSET`, and return
        its result.

        The node has this one's name, so that diagnostics name this one. An attribute whose
        value is None is omitted.
        """
        given = {name: value for name, value in attributes.items() if value is not None}
        names = ["" if value is None else str(index) for index, value in enumerate(inputs)]
        name = self.proto.name or next(iter(self.proto.output), "")
        (result,) = self._import_node(
            helper.make_node(op_type, names, ["y"], name=name, **given), inputs
        )
        assert result is not None, "an op of one output computes it"
        return result

    def has(self, name: str) -> bool:
        """Return whether the attribute is there."""
        self._asked.add(name)
        return name in self._attributes

    def read_all_attributes(self) -> None:
        """Mark every attribute as read, which the function that defines the op does."""
        self._asked |= set(self._attributes)

    @property
    def unread_attributes(self) -> list[AttributeProto]:
        """Return the attributes that no importer has read."""
        return [a for name, a in self._attributes.items() if name not in self._asked]

    def require_attributes_read(self) -> None:
        """Raise BraidError for an attribute that no importer has read, such as a misspelt one."""
        for attribute in self.unread_attributes:
            known = ", ".join(f"'{name}'" for name in sorted(self._asked))
            self.fail(
                f"nothing reads its attribute '{attribute.name}'",
                hint=f"the importer asks for {known or 'none'}; one that it may ignore is asked "
                "for with node.has",
            )

    def integer(self, name: str, default: int | None = None) -> int:
        """Return an integer attribute."""
        return int(self._attribute(name, AttributeProto.INT, default))

    def number(self, name: str, default: float | None = None) -> float:
        """Return a float attribute."""
        return float(self._attribute(name, AttributeProto.FLOAT, default))

    def text(self, name: str, default: str | None = None) -> str:
        """Return a string attribute."""
        value = self._attribute(name, AttributeProto.STRING, default)
        return value.decode() if isinstance(value, bytes) else str(value)

    def texts(self, name: str, default: Sequence[str]) -> list[str]:
        """Return an attribute that is a list of strings."""
        values = self._attribute(name, AttributeProto.STRINGS, default)
        return [value.decode() if isinstance(value, bytes) else value for value in values]

    def integers(self, name: str, default: Sequence[int] | None = None) -> tuple[int, ...]:
        """Return an attribute that is a list of integers."""
        return tuple(self._attribute(name, AttributeProto.INTS, default))

    def numbers(self, name: str, default: Sequence[float] | None = None) -> tuple[float, ...]:
        """Return an attribute that is a list of floats."""
        return tuple(self._attribute(name, AttributeProto.FLOATS, default))

    def tensor(self, name: str) -> Array:
        """Return a tensor attribute."""
        return self._tensors.read(self._attribute(name, AttributeProto.TENSOR, None))

    def text_tensor(self, name: str) -> list[str] | None:
        """Return the texts of a tensor attribute, None where it holds something else."""
        tensor = self._attribute(name, AttributeProto.TENSOR, None)
        if tensor.data_type != TensorProto.STRING:
            return None
        return self._tensors.texts(tensor)

    def dtype(self, name: str) -> np.dtype[Any]:
        """Return an attribute that is an element type, as numpy's dtype."""
        return self._tensors.dtype(self.integer(name), self.proto.output[0])

    def graph(self, name: str) -> GraphProto:
        """Return a subgraph."""
        return self._attribute(name, AttributeProto.GRAPH, None)

    def integers_of(self, name: str, index: int) -> tuple[int, ...] | None:
        """Return attribute `name` in old opsets, input `index` in newer ones.

        The result is None if it is omitted.
        """
        return self.integers(name) if self.has(name) else self.known_integers(index)

    def _attribute(self, name: str, kind: AttributeProto.AttributeType, default: Any) -> Any:
        self._asked.add(name)
        attribute = self._attributes.get(name)
        if attribute is None:
            if default is None:
                self.fail(f"attribute '{name}' is missing")
            return default
        if attribute.type != kind:
            names = AttributeProto.AttributeType
            self.fail(
                f"attribute '{name}' has type {names.Name(attribute.type)}, "
                f"expected {names.Name(kind)}"
            )
        return helper.get_attribute_value(attribute)
