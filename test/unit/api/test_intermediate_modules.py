"""Modules of files that have what only passes write, or states that cannot be."""

import pytest

import braid
from braid.support.errors import BraidError

OPEN = 'tensor<?x4xf32, #braid.sizes<["n"]>>'
HALF = 'tensor<?x4xf16, #braid.sizes<["n"]>>'


def module(port: str = "", attributes: str = "", result: str = OPEN) -> bytes:
    op = "exp" if result == OPEN else "cast"
    return f"""
    func.func @main(%x: {OPEN} {{braid.name = "x"{port}}})
        -> ({result} {{braid.name = "y"}}) {attributes} {{
      %y = braid.{op} %x : ({OPEN}) -> {result}
      return %y : {result}
    }}""".encode()


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (module(', braid.state = "z"'), "the model has no output 'z'"),
        (module(', braid.state = "y"', result=HALF), "float32 of rank 2, output 'y' is float16"),
        (module(', braid.state = "y", braid.appended'), "appends to a state in place"),
        (module(", braid.dim_order = array<i64: 7>"), "appends to a state in place"),
        (module("", "attributes {braid.specialized = {n = 3 : i64}}"), "functions for some sizes"),
        (module("", "attributes {braid.phase = 0 : i64}"), "was split into phases"),
    ],
)
def test_what_is_refused(source: bytes, message: str) -> None:
    with pytest.raises(BraidError, match=message):
        braid.compile(source)


def test_a_state_that_a_module_declares() -> None:
    session = braid.compile(module(', braid.state = "y"')).session()
    session.reset({"x": [[0.0] * 4]})
    session()
    assert session.state["x"].tolist() == [[1.0] * 4]
