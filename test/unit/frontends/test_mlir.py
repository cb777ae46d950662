"""Reading MLIR text: locations, scopes of names, and resources."""

import math

import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import Operation

from braid.analysis.diagnostics.locations import source_location
from braid.frontends.mlir import MLIRSyntaxError, parse_mlir
from braid.support.errors import SourceLocation
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


@pytest.mark.parametrize("text", ["", "\n// a comment\n", "#a = 1 : i32", "{-# #-}"])
def test_a_text_without_ops_is_an_empty_module(text: str) -> None:
    (module,) = parse(text)
    module.verify()


@pytest.mark.parametrize(
    "text",
    ["}", "func.func", '"', "%", "func.func @f(%a: tensor<", "#a = #a", "{-# x", "[" * 3000],
)
def test_garbage_is_an_error_with_a_place(text: str) -> None:
    with pytest.raises(MLIRSyntaxError) as caught:
        parse(text)
    assert caught.value.location is not None and caught.value.location.line >= 1


def test_a_string_that_does_not_end_is_an_error_at_once() -> None:
    with pytest.raises(MLIRSyntaxError, match="string literal"):
        parse(f'"{"a" * 1000}')


@pytest.mark.parametrize(
    ("literal", "values"),
    [
        ("dense<[0xff800000, 0x7F800000]> : tensor<2xf32>", [-math.inf, math.inf]),
        ("dense<0x3F80> : tensor<2xbf16>", [1.0, 1.0]),
        ("dense<[0x10, -3]> : tensor<2xi32>", [16, -3]),
    ],
)
def test_hexadecimal_elements_of_float_tensors_are_bit_patterns(
    literal: str, values: list[float]
) -> None:
    constant = parse(f"func.func @f() {{ %0 = arith.constant {literal} func.return }}")[2]
    assert isinstance(constant, arith.ConstantOp)
    assert isinstance(constant.value, DenseIntOrFPElementsAttr)
    assert list(constant.value.get_values()) == values


def test_a_bit_pattern_that_is_too_wide_is_an_error() -> None:
    with pytest.raises(MLIRSyntaxError, match="bit pattern does not fit f32"):
        parse("func.func @f() { %0 = arith.constant dense<0x1FF800000> : tensor<2xf32> }")
