"""Every op and attribute documents itself with an example, which parses, verifies and prints.

With any other numbers, names and dims in it, the verifier accepts it or gives the reason.
"""

import inspect
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation, TypeAttribute

from braid.analysis.structure.verification import verify_module
from braid.dialects.braid import Braid
from braid.frontends.mlir import parse_mlir
from braid.support.errors import BraidError
from braid.universe import make_context

EXAMPLE = re.compile(r"```mlir\n(.*?)```", re.DOTALL)
OPERATIONS = {op.name: op for op in Braid.operations}
ATTRIBUTES = {attribute.name: attribute for attribute in Braid.attributes}


def example(documented: type[Operation] | type[Attribute]) -> str:
    match = EXAMPLE.search(inspect.cleandoc(documented.__doc__ or ""))
    assert match is not None, f"{documented.name} has no example"
    return match[1]


def with_arguments(text: str) -> str:
    """Return the example as the body of a function whose arguments are its free values.

    The lists in `[…]` are tokens; a symbol is a function for a device.
    """
    head, _, rest = text.partition(": (")
    if "=" not in head or not rest:
        return text
    names = head.split("= ", 1)[1].split("{")[0]
    tokens = re.findall(r"%\w+", "".join(re.findall(r"\[(.*?)\]", names)))
    operands = [name for name in re.findall(r"%\w+", names) if name not in tokens]
    types = re.findall(r"tensor<(?:[^<>]|<[^<>]*>)*>", rest.split(") ->")[0])
    arguments = [f"{o}: {t}" for o, t in zip(operands, types, strict=True)]
    arguments += [f"{token}: !braid.token" for token in tokens]
    callees = "".join(
        f'func.func private @{callee}({rest.strip()} attributes {{braid.device = "cpu:0"}}\n'
        for callee in re.findall(r"@(\w+)", names)
    )
    return f"{callees}func.func @example({', '.join(arguments)}) {{\n{text}\nfunc.return\n}}"


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
    sigil = "!" if issubclass(ATTRIBUTES[name], TypeAttribute) else "#"
    assert f"{sigil}{name}" in str(module)
    assert module.is_structurally_equivalent(parsed(str(module)))


WORDS = re.compile(r"-?\d+\.?\d*(?:e-?\d+)?|\?|true|false|\"\w+\"|[iuf]+\d+")
SUBSTITUTES = ("-1", "0", "1", "2", "3", "1000000", "0.5", "?", "f32", "i1", "true", '"x"', "")


def mutants(text: str) -> st.SearchStrategy[str]:
    """`text` with one or two words replaced."""
    spans = [match.span() for match in WORDS.finditer(text)]

    def replaced(choices: list[tuple[tuple[int, int], str]]) -> str:
        result = text
        for (begin, end), word in sorted(choices, reverse=True):
            result = result[:begin] + word + result[end:]
        return result

    change = st.tuples(st.sampled_from(spans), st.sampled_from(SUBSTITUTES))
    return st.lists(change, min_size=1, max_size=2, unique_by=lambda c: c[0]).map(replaced)


@pytest.mark.parametrize("name", sorted(set(OPERATIONS) - {"braid.yield"}))
def test_verifier_never_crashes(name: str) -> None:
    @settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
    @given(mutants(example(OPERATIONS[name])))
    def accepts_or_says_why_not(text: str) -> None:
        try:
            parsed(with_arguments(text))
        except BraidError as error:
            assert error.message

    accepts_or_says_why_not()
