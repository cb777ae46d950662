"""Stable names survive rewriting: one is a string, several an array, none leaves no attribute."""

import pytest
from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.dialects.test import TestOp as AnyOp

from braid.dialects.braid.attribute_names import NAME
from braid.dialects.braid.clusters import placement_of
from braid.dialects.braid.names import (
    derive_names,
    inherit_names,
    may_stand_for,
    names_of,
    set_names,
    union_names,
)
from braid.frontends.mlir import parse_mlir
from braid.universe import make_context


def named(*names: str) -> AnyOp:
    op = AnyOp()
    set_names(op, names)
    return op


def test_form_of_the_attribute() -> None:
    assert NAME not in named().attributes
    assert named("a").attributes[NAME] == StringAttr("a")
    two = ArrayAttr([StringAttr("a"), StringAttr("b")])
    assert named("a", "b", "a").attributes[NAME] == two


def test_names_are_read_as_they_were_set() -> None:
    for names in ((), ("a",), ("a", "b")):
        assert names_of(named(*names)) == names


def test_setting_no_names_removes_them() -> None:
    op = named("a")
    set_names(op, [])
    assert names_of(op) == () and NAME not in op.attributes


def test_union_keeps_the_own_names_first() -> None:
    op = named("b")
    union_names(op, named("a", "b"), named(), named("c"))
    assert names_of(op) == ("b", "a", "c")
    unnamed = named()
    union_names(unnamed, named())
    assert NAME not in unnamed.attributes


TWO_RESULTS = """
func.func @main(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>) {
  %a = braid.neg %x {braid.cluster = 0 : i64, braid.device = "cpu:0"}
    : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %b = braid.exp %a {braid.name = "b", braid.cluster = 1 : i64, braid.device = "npu:0"}
    : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %c = braid.abs %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %d = braid.sqrt %c : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %b, %d : tensor<2x3xf32>, tensor<2x3xf32>
}
"""


def test_several_ops_inherit_names_and_place() -> None:
    module = parse_mlir(make_context(), TWO_RESULTS, "t.mlir").module
    a, b, c, d = list(module.walk())[2:6]
    inherit_names(b, [d.results[0], c.results[0]], [c, d])
    for op in (c, d):
        assert names_of(op) == ("b",) and placement_of(op) == placement_of(b)
    assert may_stand_for(c.results, b) and not may_stand_for(a.results, b)
    before = placement_of(a)
    inherit_names(b, a.results)
    assert names_of(a) == () and placement_of(a) == before


def test_parts_are_named_after_the_whole() -> None:
    module = parse_mlir(make_context(), TWO_RESULTS, "t.mlir").module
    a, b, c, _ = list(module.walk())[2:6]
    derive_names(c, b, "pad")
    assert names_of(c) == ("b/pad",) and placement_of(c) == placement_of(b)
    with pytest.raises(ValueError, match="0 on cpu:0 and 1 on npu:0"):
        derive_names(a, b, "pad")


CONTROL_FLOW = """
func.func @main(%x: tensor<2x3xf32>, %p: i1) -> tensor<2x3xf32> {
  %a = scf.if %p -> (tensor<2x3xf32>) {
    scf.yield %x : tensor<2x3xf32>
  } else {
    scf.yield %x : tensor<2x3xf32>
  }
  %b = braid.exp %a {braid.name = "b", braid.cluster = 1 : i64, braid.device = "npu:0"}
    : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %b : tensor<2x3xf32>
}
"""


def test_control_flow_is_in_no_cluster() -> None:
    """It runs on the host, even if its result replaces one of another device."""
    module = parse_mlir(make_context(), CONTROL_FLOW, "c.mlir").module
    branch = next(op for op in module.walk() if op.name == "scf.if")
    inside = next(op for op in module.walk() if op.name == "braid.exp")
    inherit_names(inside, branch.results)
    assert names_of(branch) == ("b",) and placement_of(branch) is None
