"""Reading MLIR text: locations, scopes of names, and resources."""

import pytest
from xdsl.ir import Operation

from braid.analysis.locations import source_location
from braid.errors import SourceLocation
from braid.frontends.mlir import MLIRSyntaxError, parse_mlir
from braid.universe import make_context


def parse(text: str, line_offset: int = 0) -> list[Operation]:
    parsed = parse_mlir(make_context(), text, "m.mlir", line_offset=line_offset)
    return list(parsed.module.walk())


def test_an_op_is_at_its_name_unless_it_says_otherwise() -> None:
    text = 'func.func @f() {\n  %0 = arith.constant 1 : i32\n  func.return loc("x.py":7:8)\n}'
    _, function, constant, ret = parse(text, line_offset=10)
    assert source_location(function) == SourceLocation("m.mlir", 11, 1)
    assert source_location(constant) == SourceLocation("m.mlir", 12, 8)
    assert source_location(ret) == SourceLocation("x.py", 7, 8)


def test_nested_locations_are_resolved() -> None:
    for location in ('"name"("a":1:2)', 'callsite("a":1:2 at "b":3:4)', 'fused["n", "a":1:2]'):
        function = parse(f"func.func private @f() loc({location})")[1]
        assert source_location(function) == SourceLocation("a", 1, 2)


def test_names_of_a_region_end_with_it() -> None:
    body = "scf.if %c {{ %x = arith.constant 1 : i32 }} {0} func.return"
    function = "func.func @f(%c: i1) {{ {0} }}"
    parse(function.format(body.format("%x = arith.constant 2 : i32")))
    with pytest.raises(MLIRSyntaxError, match="use of value '%x', which is not defined"):
        parse(function.format(body.format("%y = arith.addi %x, %x : i32")))
    with pytest.raises(MLIRSyntaxError, match="already defined"):
        parse(function.format("%x = arith.constant 1 : i32 " + body.format("")))


def test_two_functions_may_use_one_name() -> None:
    parse("func.func @f(%a: i32) { func.return } func.func @g(%a: i64) { func.return }")


def test_external_resources_are_kept() -> None:
    text = 'func.func private @f()\n{-# external_resources: {a: {b: "c", d: true}, e: {}} #-}'
    parsed = parse_mlir(make_context(), text, "m.mlir")
    assert parsed.external_resources == {"a": {"b": "c", "d": True}, "e": {}}


@pytest.mark.parametrize(
    "text",
    ["", "}", "func.func", '"', "%", "func.func @f(%a: tensor<", "#a = #a", "{-# x", "[" * 3000],
)
def test_garbage_is_an_error_with_a_place(text: str) -> None:
    with pytest.raises(MLIRSyntaxError) as caught:
        parse(text)
    assert caught.value.location is not None and caught.value.location.line >= 1
