"""Every op and attribute documents itself with an example, which parses, verifies and prints."""

import inspect
import re

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation

from braid.analysis.verification import verify_module
from braid.dialects.braid import Braid
from braid.frontends.mlir import parse_mlir
from braid.universe import make_context

EXAMPLE = re.compile(r"```mlir\n(.*?)```", re.DOTALL)
OPERATIONS = {op.name: op for op in Braid.operations}
ATTRIBUTES = {attribute.name: attribute for attribute in Braid.attributes}


def example(documented: type[Operation] | type[Attribute]) -> str:
    match = EXAMPLE.search(inspect.cleandoc(documented.__doc__ or ""))
    assert match is not None, f"{documented.name} has no example"
    return match[1]


def with_arguments(text: str) -> str:
    """The example as the body of a function whose arguments are its free values."""
    head, _, rest = text.partition(": (")
    if "=" not in head or not rest:
        return text
    operands = re.findall(r"%\w+", head.split("= ", 1)[1].split("{")[0])
    types = re.findall(r"tensor<[^>]*>", rest.split(") ->")[0])
    arguments = ", ".join(f"{o}: {t}" for o, t in zip(operands, types, strict=True))
    return f"func.func @example({arguments}) {{\n{text}\nfunc.return\n}}"


def parsed(text: str) -> ModuleOp:
    module = parse_mlir(make_context(), text, "example.mlir").module
    verify_module(module)
    return module


@pytest.mark.parametrize("name", sorted(set(OPERATIONS) - {"braid.yield"}))
def test_example_of_op(name: str) -> None:
    module = parsed(with_arguments(example(OPERATIONS[name])))
    assert any(op.name == name for op in module.walk())
    assert module.is_structurally_equivalent(parsed(str(module)))


@pytest.mark.parametrize("name", sorted(ATTRIBUTES))
def test_example_of_attribute(name: str) -> None:
    text = example(ATTRIBUTES[name]).strip()
    attribute = text if text.startswith("{") else f"{{example = {text}}}"
    module = parsed(f"builtin.module attributes {attribute} {{}}")
    assert f"#{name}<" in str(module)
    assert module.is_structurally_equivalent(parsed(str(module)))
