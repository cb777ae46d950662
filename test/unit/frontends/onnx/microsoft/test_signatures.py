"""The table of ONNX Runtime's ops beside the schemas that the installed package has."""

import tomllib
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import AttributeProto, helper
from onnxruntime.capi import onnxruntime_pybind11_state as runtime

import braid.frontends.onnx.signatures as signatures
from braid.frontends.onnx.building.opsets import MICROSOFT
from braid.frontends.onnx.importers import find_importer
from braid.frontends.onnx.signatures import Signature, signature

TABLE = tomllib.loads(Path(signatures.__file__).with_name("microsoft.toml").read_text())


def domain_of(op: str) -> str:
    return "" if op == "SimplifiedLayerNormalization" else MICROSOFT


def schema_of(op: str) -> Any:
    schemas: Any = runtime.get_all_operator_schema()
    (found,) = [s for s in schemas if (s.name, s.domain) == (op, domain_of(op))]
    return found


def default_of(attribute: Any) -> object:
    """Return the default of an attribute, None without one."""
    if not attribute._default_value:
        return None
    proto = AttributeProto.FromString(attribute._default_value)
    value = helper.get_attribute_value(proto)
    return pytest.approx(value) if isinstance(value, float) else value


@pytest.mark.parametrize("op", sorted(TABLE))
def test_an_op_is_what_onnx_runtime_says(op: str) -> None:
    known, schema = signature(op, domain_of(op), 1), schema_of(op)
    assert isinstance(known, Signature)
    for values, formals, least, most in (
        (known.inputs, schema.inputs, schema.min_input, schema.max_input),
        (known.outputs, schema.outputs, schema.min_output, schema.max_output),
    ):
        assert [f.name for f in values.formals] == [f.name for f in formals]
        assert [f.types for f in values.formals] == [frozenset(f.types) for f in formals]
        assert (values.least, values.most) == (least, most)
    attributes = schema.attributes
    assert set(known.attributes) == set(attributes)
    for name, each in known.attributes.items():
        assert each.kind == int(attributes[name].type)
        assert each.is_required == attributes[name].required
        assert each.default == default_of(attributes[name])


@pytest.mark.parametrize("op", sorted(TABLE))
def test_an_op_of_the_table_is_imported(op: str) -> None:
    assert find_importer(op, 1, domain_of(op)) is not None
    assert not onnx.defs.has(op, domain=domain_of(op))
