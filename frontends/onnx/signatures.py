"""The signatures of ops: ONNX's schemas, and a table of ONNX Runtime's own ops."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import onnx
from onnx import AttributeProto, helper

from braid.frontends.onnx.admitted import ADMITTED_OPS
from braid.frontends.onnx.building.opsets import MICROSOFT

_IN_DEFAULT_DOMAIN = {"SimplifiedLayerNormalization"}
"""Ops of ONNX Runtime that it has in ONNX's domain."""

_MOST_VALUES = 2**31 - 1


@dataclass(frozen=True)
class Formal:
    """A formal parameter of a schema, for one input or output.

    `types` are the types that it allows; `variable` is the type variable that it binds, if any.
    """

    name: str
    types: frozenset[str]
    variable: str | None
    is_optional: bool


@dataclass(frozen=True)
class Values:
    """The formal parameters for the inputs, or for the outputs, of a schema.

    A node has from `least` to `most` values; the last formal represents all further ones.
    """

    formals: tuple[Formal, ...]
    least: int
    most: int

    def of(self, index: int) -> Formal:
        """Return the formal parameter for the value at `index`."""
        return self.formals[min(index, len(self.formals) - 1)]


@dataclass(frozen=True)
class AttributeSchema:
    """An attribute that a schema declares, of type `kind`; `default` is None if the attribute has
    no default."""

    kind: int
    is_required: bool
    default: object


@dataclass(frozen=True)
class Signature:
    """The schema of an op in one version of its domain; `origin` is who defines the op."""

    inputs: Values
    outputs: Values
    attributes: Mapping[str, AttributeSchema]
    is_deprecated: bool
    origin: str = "ONNX"


@cache
def signature(op_type: str, domain: str, opset: int) -> Signature | None:
    """Return the schema of an op in an opset of its domain, None if there is no such op there."""
    if is_of_onnx_runtime(op_type, domain):
        return _own_signatures()[op_type]
    try:
        schema: Any = onnx.defs.get_schema(op_type, opset, domain)
    except (onnx.defs.SchemaError, TypeError):
        return None
    return Signature(
        _values(schema.inputs, schema.min_input, schema.max_input),
        _values(schema.outputs, schema.min_output, schema.max_output),
        {
            name: AttributeSchema(
                attribute.type.value,
                attribute.required,
                helper.get_attribute_value(attribute.default_value)
                if attribute.default_value.type
                else None,
            )
            for name, attribute in schema.attributes.items()
        },
        schema.deprecated and (domain, op_type) not in ADMITTED_OPS,
    )


def is_of_onnx_runtime(op_type: str, domain: str) -> bool:
    """Return whether the op is one of ONNX Runtime's, for which ONNX has no schema."""
    own = op_type in _IN_DEFAULT_DOMAIN
    return domain == ("" if own else MICROSOFT) and op_type in _own_signatures()


def _values(formals: Sequence[Any], least: int, most: int) -> Values:
    option = onnx.defs.OpSchema.FormalParameterOption
    return Values(
        tuple(
            Formal(
                formal.name,
                frozenset(formal.types),
                formal.type_str if formal.is_homogeneous and "(" not in formal.type_str else None,
                formal.option == option.Optional,
            )
            for formal in formals
        ),
        least,
        most,
    )


@cache
def _own_signatures() -> Mapping[str, Signature]:
    """Return the signatures of ONNX Runtime's ops, which are the same in all opsets."""
    text = Path(__file__).with_name("microsoft.toml").read_text(encoding="utf-8")
    return {
        name: Signature(
            _own_values(entry["inputs"], entry.get("types", {})),
            _own_values(entry["outputs"], entry.get("types", {})),
            {key: _attribute(each) for key, each in entry.get("attributes", {}).items()},
            is_deprecated=False,
            origin="ONNX Runtime",
        )
        for name, entry in tomllib.loads(text).items()
    }


def _own_values(texts: Sequence[str], types: Mapping[str, Sequence[str]]) -> Values:
    """Return the formal parameters of a list like `["A: T", "bias: float?", "more: T*"]`."""
    formals: list[Formal] = []
    for text in texts:
        name, _, kind = text.partition(": ")
        is_variadic, kind = kind.endswith("*"), kind.removesuffix("*")
        is_optional, kind = kind.endswith("?"), kind.removesuffix("?")
        allowed = frozenset(f"tensor({each})" for each in types.get(kind, [kind]))
        # The values of a variadic formal may be of different types.
        variable = kind if kind in types and not is_variadic else None
        formals.append(Formal(name, allowed, variable, is_optional))
    required = [index for index, each in enumerate(formals) if not each.is_optional]
    most = _MOST_VALUES if texts[-1].endswith("*") else len(formals)
    return Values(tuple(formals), max(required, default=-1) + 1, most)


def _attribute(text: str) -> AttributeSchema:
    """Return the attribute of a text like `int! = 4`."""
    kind, _, default = text.partition(" = ")
    name = kind.removesuffix("!").upper()
    value: object = None
    if default:
        value = {"INT": int, "FLOAT": float, "STRING": str.encode}[name](default)
    number = AttributeProto.AttributeType.Value(name)
    return AttributeSchema(number, kind.endswith("!"), value)
