"""Verification: values must dominate their uses, whatever the op order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp, StringAttr, i32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.dialects.scf import ExecuteRegionOp, YieldOp
from xdsl.dialects.test import TestOp as AnyOp
from xdsl.ir import Block, Region

from braid.analysis.structure.verification import InvalidIRError, verify_dominance, verify_module
from braid.dialects.braid.attribute_names import TARGET
from braid.frontends.mlir import parse_mlir
from braid.universe import make_context


def function(block: Block) -> ModuleOp:
    block.add_op(ReturnOp())
    return ModuleOp([FuncOp("f", ((), ()), Region(block))])


@given(st.permutations(range(6)))
def test_a_chain_of_ops_is_valid_in_exactly_one_order(order: list[int]) -> None:
    chain = [AnyOp(result_types=[i32])]
    for _ in range(5):
        chain.append(AnyOp(operands=[chain[-1].results[0]], result_types=[i32]))
    module = function(Block([chain[index] for index in order]))
    if order == sorted(order):
        verify_module(module)
    else:
        with pytest.raises(InvalidIRError, match="operand #0 does not dominate this use"):
            verify_module(module)


def test_an_op_inside_its_operands_definition_is_not_dominated() -> None:
    user = AnyOp()
    outer = AnyOp(result_types=[i32], regions=[Region(Block([user]))])
    user.operands = [outer.results[0]]
    with pytest.raises(InvalidIRError):
        verify_dominance(function(Block([outer])))


def test_values_of_a_region_are_not_visible_outside() -> None:
    inner = AnyOp(result_types=[i32])
    outer = ExecuteRegionOp([], Region(Block([inner, YieldOp()])))
    with pytest.raises(InvalidIRError):
        verify_dominance(function(Block([outer, AnyOp(operands=[inner.results[0]])])))


def test_the_order_in_a_module_has_no_meaning() -> None:
    definition = AnyOp(result_types=[i32])
    verify_dominance(ModuleOp([AnyOp(operands=[definition.results[0]]), definition]))


def test_an_empty_block_is_rejected() -> None:
    module = ModuleOp([FuncOp("f", ((), ()), Region(Block()))])
    with pytest.raises(InvalidIRError, match=r"'func.func'.*terminator"):
        verify_module(module)


ALIKE = """
func.func @f(%x: tensor<4xf32>, %y: tensor<5xf32>) -> tensor<4xf32> {{
  %a = braid.exp %x {{braid.name = "a"}} : (tensor<4xf32>) -> tensor<4xf32>
  %b = braid.exp %x {{braid.name = "b"}} : (tensor<4xf32>) -> tensor<4xf32>
  {line}
  func.return %b : tensor<4xf32>
}}
"""


@pytest.mark.parametrize(
    "line",
    [
        "%c = braid.exp %x : (tensor<4xf32>) -> tensor<5xf32>",
        "%c = braid.exp %y : (tensor<5xf32>) -> tensor<4xf32>",
        "%c = braid.exp %x : (tensor<4xf32>) -> tensor<4xi32>",
    ],
)
def test_an_op_nearly_like_a_valid_one_is_still_checked(line: str) -> None:
    module = parse_mlir(make_context(), ALIKE.format(line=line), "m.mlir").module
    with pytest.raises(InvalidIRError, match="expected tensor") as caught:
        verify_module(module)
    assert caught.value.location is not None and caught.value.location.line == 5


@pytest.mark.parametrize(
    ("attribute", "expected"),
    [
        ("name = 3", "a string, or an array of strings"),
        ("device = 0 : i64", "the name of a device"),
        ('cluster = "1"', "the number of a cluster"),
        ("cluster = true", "the number of a cluster"),
        ("cluster = 1 : index", "the number of a cluster"),
        ('candidates = "gpu"', "a dictionary from backends to priorities"),
        ('candidates = {gpu = "1"}', "a dictionary from backends to priorities"),
        ("candidates = {gpu = 0}", "a dictionary from backends to priorities"),
        ("colocate = 1 : i64", "a string"),
        ("seconds = 1 : i64", "a finite number from 0 on, such as"),
    ],
)
def test_attributes_of_another_kind(attribute: str, expected: str) -> None:
    line = f"%c = braid.exp %x {{braid.{attribute}}} : (tensor<4xf32>) -> tensor<4xf32>"
    module = parse_mlir(make_context(), ALIKE.format(line=line), "m.mlir").module
    with pytest.raises(
        InvalidIRError, match=f"of 'braid.exp' op is .*, expected {expected}"
    ) as caught:
        verify_module(module)
    assert caught.value.location is not None and caught.value.location.line == 5


def test_a_target_of_another_kind() -> None:
    module = function(Block())
    module.attributes[TARGET] = StringAttr("host")
    with pytest.raises(InvalidIRError, match=r"'braid.target' of .* expected a target, such as"):
        verify_module(module)


def test_an_op_like_a_valid_one_may_not_end_a_block() -> None:
    text = ALIKE.format(line="").replace("  func.return %b : tensor<4xf32>\n", "")
    module = parse_mlir(make_context(), text, "m.mlir").module
    with pytest.raises(InvalidIRError, match="terminates block"):
        verify_module(module)


def test_reader_outside_of_the_module() -> None:
    """An op that a rewrite made and left out keeps what it reads from being dropped."""
    read = AnyOp(result_types=[i32])
    module = function(Block([read]))
    left_out = AnyOp(operands=read.results)
    with pytest.raises(InvalidIRError, match=r"which is not part of the module"):
        verify_module(module)
    left_out.erase()
    verify_module(module)
