"""Modules that would exhaust or end the compiler: refused, with their location."""

import re
import resource
import time
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr

import braid
from braid.frontends.mlir import MLIRSyntaxError, parse_mlir
from braid.passes.infrastructure.decision_checks import VARIABLE
from braid.support.errors import BraidError
from braid.support.upstream_process import EndedError, RejectedError, Request, upstream_text
from braid.universe import make_context

FUNCTION = """func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {{
  %e = tensor.empty() : tensor<4xf32>
  %y = linalg.generic {{indexing_maps = [affine_map<(d0) -> ({map})>, affine_map<(d0) -> (d0)>],
    iterator_types = ["parallel"]}} ins(%a : tensor<4xf32>) outs(%e : tensor<4xf32>)
    attrs = {{ k = {attribute} }} {{
  ^bb0(%x: f32, %o: f32):
    linalg.yield %x : f32
  }} -> tensor<4xf32>
  return %y : tensor<4xf32>
}}
"""


def refusal(text: str) -> BraidError:
    with pytest.raises(BraidError) as caught:
        braid.compile(text.encode(), jobs=1, cache=False)
    assert "internal error" not in str(caught.value)
    assert caught.value.location is not None and caught.value.location.file == "<bytes>"
    return caught.value


def aliased(first: str, rest: str, count: int, use: str) -> str:
    """Return a module with aliases, each of which names the previous one."""
    sign = first[0]
    lines = [first, *(f"{sign}a{i + 1} = {rest.format(f'{sign}a{i}')}" for i in range(count))]
    body = FUNCTION.format(map="d0", attribute=use.format(f"{sign}a{count}"))
    return "\n".join([*lines, body])


@pytest.mark.parametrize(
    ("first", "rest"),
    [
        ("!a0 = i32", "tuple<{0}, {0}>"),
        ("#a0 = 1", "[{0}, {0}]"),
        ("#a0 = 1", "{{a = {0}, b = {0}}}"),
        ("#a0 = 1", "[\n{0},\n{0}\n]"),
        ('#a0 = loc("x")', "loc(fused[{0}, {0}])"),
        ("!a0 = i32", "({0}) -> {0}"),
    ],
)
def test_aliases_that_double(first: str, rest: str) -> None:
    began = time.process_time()
    error = refusal(aliased(first, rest, 60, "1"))
    assert "stands for more than" in error.message and error.location is not None
    assert time.process_time() - began < 2


def test_aliases_within_each_other() -> None:
    error = refusal(aliased("#a0 = 1", "[{0}]", 2000, "{0}"))
    assert "alias '#a121' stands for brackets nested 121 deep" in error.message
    braid.compile(aliased("#a0 = 1", "[{0}]", 100, "{0}").encode(), jobs=1, cache=False)


def test_an_alias_that_is_named_often() -> None:
    long = f"#a0 = [{', '.join(['1'] * 30_000)}]\n"
    uses = ", ".join(["#a0"] * 2000)
    error = refusal(long + FUNCTION.format(map="d0", attribute=f"[{uses}]"))
    assert "characters with its aliases written out; '#a0' is the longest" in error.message


@pytest.mark.parametrize("divisor", ["floordiv 0", "ceildiv 0", "mod 0", "mod -2", "mod (1 - 1)"])
def test_maps_that_divide_by_nothing(divisor: str) -> None:
    error = refusal(FUNCTION.format(map=f"d0 {divisor}", attribute="1"))
    assert "expected a positive divisor" in error.message and error.location is not None
    assert error.location.line == 3


@pytest.mark.parametrize("number", ["1.0 : f80", "[2.0 : f128]"])
def test_floats_that_nothing_computes_with(number: str) -> None:
    assert "cannot be read" in refusal(FUNCTION.format(map="d0", attribute=number)).message


@pytest.mark.parametrize("extent", [2**57, 2**62, 2**63 - 1])
@pytest.mark.parametrize(
    "op", ["linalg.exp ins({0}) outs({0})", "tensor.cast {0} to tensor<?xf32>"]
)
def test_extents_beyond_all_memory(extent: int, op: str) -> None:
    type = f"tensor<{extent}xf32>"
    line = op.format(f"%a : {type}")
    result = "" if "cast" in op else f" -> {type}"
    error = refusal(f"func.func @main(%a: {type}) {{\n  %y = {line}{result}\n  return\n}}\n")
    assert f"[{extent}], expected at most {2**56} elements" in error.message


SPLAT = """func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {{
  %c = "test.op"() {{value = dense<{}> : tensor<{}>}} : () -> tensor<4xf32>
  func.return %a : tensor<4xf32>
}}
"""


def test_one_number_for_many_elements() -> None:
    began = time.process_time()
    assert "'test.op'" in refusal(SPLAT.format(3, f"{2**26}xi8")).message
    assert time.process_time() - began < 5  # a list of numbers takes 15 s and 3 GB
    message = refusal(SPLAT.format("1.0", f"{2**40}xf32")).message
    assert f"takes {2**42} bytes, expected at most {2**31}" in message


@pytest.mark.parametrize(
    ("number", "type", "bits"),
    [
        ("0x7FC00001", "2xf32", "0100c07f" * 2),
        ("(1.0, 2.0)", "2xcomplex<f32>", "0000803f00000040" * 2),
        ("true", "3xi1", "ffffff"),
        ("-1", "2xi8", "ffff"),
        ("200", "2xui8", "c8c8"),
        ("1.0", "1x2xbf16", "803f" * 2),
        ("2.0", "0xf32", ""),
    ],
)
def test_repeated_numbers_keep_their_bits(number: str, type: str, bits: str) -> None:
    context = make_context(allow_unregistered=True)
    module = parse_mlir(context, SPLAT.format(number, type), "m.mlir").module
    (dense,) = (op.attributes["value"] for op in module.walk() if "value" in op.attributes)
    assert isinstance(dense, DenseIntOrFPElementsAttr)
    assert dense.data.data.hex() == bits


CONVOLUTION = """func.func @main(%a: tensor<2x4x6x5xf32>, %b: tensor<6x4x3x2xf32>)
    -> tensor<2x6x4x4xf32> {
  %y = stablehlo.convolution(%a, %b) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1],
    window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<2x4x6x5xf32>, tensor<6x4x3x2xf32>) -> tensor<2x6x4x4xf32>
  return %y : tensor<2x6x4x4xf32>
}
"""


def test_upstream_ends_its_own_process_alone() -> None:
    """Its parser makes a vector of as many elements as a dim's number says."""
    text = CONVOLUTION.replace("[b, f, 0, 1]x", f"[b, f, {2**62}, 1]x")
    with pytest.raises(EndedError, match="LLVM ERROR"):
        upstream_text(Request(text, stablehlo=True))
    error = refusal(text)
    assert "upstream MLIR ended while it read the module" in error.message
    assert isinstance(error, MLIRSyntaxError)
    braid.compile(CONVOLUTION.encode(), jobs=1, cache=False)  # by another process


def test_upstream_has_a_bound_on_memory() -> None:
    """A resource whose alignment asks for 2 GiB of it."""
    blob = (2**31).to_bytes(4, "little") + bytes(16)
    text = (
        'module { "test.op"() {a = dense_resource<w> : tensor<4xf32>} : () -> () }\n'
        f'{{-# dialect_resources: {{ builtin: {{ w: "0x{blob.hex()}" }} }} #-}}\n'
    )
    with pytest.raises((EndedError, RejectedError), match=re.compile("memory|alloc", re.I)):
        upstream_text(Request(text))


@pytest.mark.parametrize(
    "line",
    [
        "%m = memref.alloc() : memref<4xf32>",
        "llvm.call @abort() : () -> ()",
        "%p = llvm.mlir.zero : !llvm.ptr\n%v = llvm.load %p : !llvm.ptr -> i32",
        'llvm.inline_asm has_side_effects "hlt", "" : () -> ()',
        "memref.global_unknown @g",
    ],
)
def test_effects_are_not_left_out(line: str) -> None:
    text = (
        "llvm.func @abort()\nfunc.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n"
        f"{line}\n%y = linalg.exp ins(%a : tensor<4xf32>) outs(%a : tensor<4xf32>) "
        "-> tensor<4xf32>\nreturn %y : tensor<4xf32>\n}\n"
    )
    refusal(text)


LARGE = 2**33
WEIGHTS = {"w": np.ones((1, 1), np.float32), "to": np.array([LARGE, 1])}
WEIGHTS |= {"pads": np.array([0, 0, LARGE - 1, 0]), "from": np.array([LARGE - 4, 0])}
EXPAND = helper.make_node("Expand", ["w", "to"], ["t"])
PAD = helper.make_node("Pad", ["w", "pads"], ["t"])
SLICE = helper.make_node("Slice", ["u", "from", "to"], ["v"])
LARGEST = helper.make_node("ReduceMax", ["u"], ["v"], keepdims=1)


@pytest.mark.parametrize("first", [EXPAND, PAD], ids=["expand", "pad"])
@pytest.mark.parametrize("last", [SLICE, LARGEST], ids=["slice", "reduce"])
@pytest.mark.parametrize(
    "op", ["Identity", "Exp", "Concat", "Transpose", "CumSum", "Cast"], ids=str.lower
)
def test_large_constants_are_not_computed(
    first: Any, op: str, last: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One weight could become 32 GiB: it is refused, or not allocated."""
    monkeypatch.delenv(VARIABLE)  # the checks of tests mark each byte of a plan
    if op == "Transpose" and last is SLICE:
        pytest.skip("the slice would be of the other dim")
    inputs = {"Concat": ["t", "t"], "CumSum": ["t", "axis"]}.get(op, ["t"])
    attributes = {"Concat": {"axis": 0}, "Cast": {"to": TensorProto.FLOAT16}}.get(op, {})
    middle = helper.make_node(op, inputs, ["u"], **attributes)
    nodes = [first, middle, last, helper.make_node("CastLike", ["v", "x"], ["w2"])]
    graph = helper.make_graph(
        [*nodes, helper.make_node("Add", ["w2", "x"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1])],
        [helper.make_empty_tensor_value_info("y")],
        [numpy_helper.from_array(a, name) for name, a in {**WEIGHTS, "axis": np.array(0)}.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        braid.compile(model, jobs=1, cache=False)
    except BraidError as error:
        assert "elements of weights when the model is compiled" in error.message
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < before + 2**20  # KiB


OPEN = """func.func @main(
    %x: tensor<?xf32, #braid.sizes<["n"]>>, %z: tensor<?xf32, #braid.sizes<["k"]>>)
    -> tensor<1xf32> attributes {{{attributes}}} {{
  %y = braid.sized_slice %x {{offsets = #braid.sizes<["{offset}"]>, sizes = #braid.sizes<["1"]>,
    strides = array<i64: 1>}} : (tensor<?xf32, #braid.sizes<["n"]>>) -> tensor<1xf32>
  func.return %y : tensor<1xf32>
}}
"""


def test_sizes_beyond_64_bits() -> None:
    text = OPEN.format(attributes="", offset=f"k * {2**64}")
    model = braid.compile(text.encode(), jobs=1, cache=False)
    with pytest.raises(BraidError, match="exceeds 64 bits"):
        model(np.zeros(3, np.float32), np.zeros(1, np.float32))


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        ("braid.inter_op_streams = 5 : i64", "do not run side by side"),
        ("braid.variant = {n = 3 : i64}", "has open sizes"),
        ("braid.variant = {n = 3 : i64, k = 4 : i64}", "has open sizes"),
    ],
)
def test_attributes_of_known_sizes_on_open_ones(attribute: str, message: str) -> None:
    text = OPEN.format(attributes=attribute, offset="0")
    with pytest.raises(BraidError, match=message):
        braid.compile(text.encode(), jobs=1, cache=False)


def test_what_a_file_says_of_checks_is_not_believed() -> None:
    text = OPEN.format(attributes="braid.size_checks = []", offset="n - 4")
    model = braid.compile(text.encode(), jobs=1, cache=False)
    with pytest.raises(BraidError, match="needs 0 <= n - 4"):
        model(np.zeros(3, np.float32), np.zeros(1, np.float32))


BRANCH = """func.func private @part(
    %x: tensor<?xf32, #braid.sizes<["n"]>>, %c: i1) -> tensor<4xf32> {{
  %y = scf.if %c -> (tensor<4xf32>) {{
    %r = braid.sized_slice %x {{offsets = #braid.sizes<["n - 400"]>, sizes = #braid.sizes<["4"]>,
      strides = array<i64: 1>}} : (tensor<?xf32, #braid.sizes<["n"]>>) -> tensor<4xf32>
    %e = braid.neg %r : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %e : tensor<4xf32>
  }} else {{
    %z = braid.constant {{value = dense<0.0> : tensor<4xf32>}} : tensor<4xf32>
    scf.yield %z : tensor<4xf32>
  }} {attributes}
  func.return %y : tensor<4xf32>
}}
func.func @main(%x: tensor<?xf32, #braid.sizes<["n"]>>, %b: tensor<i1>) -> tensor<4xf32> {{
  {condition}
  %y = func.call @part(%x, %c) : (tensor<?xf32, #braid.sizes<["n"]>>, i1) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}}
"""
"""A branch that reads 400 elements before the end of its input."""


@pytest.mark.parametrize("attributes", ["", "{braid.branch_size_checks = [[], []]}"])
@pytest.mark.parametrize(
    "condition",
    [
        "%c = tensor.extract %b[] : tensor<i1>",
        "%c = arith.constant true",
        """%one = arith.constant 1 : i64
  %two = arith.constant 2 : i64
  %c = arith.cmpi slt, %one, %two : i64""",
    ],
)
def test_checks_of_branches_stay(condition: str, attributes: str) -> None:
    """A branch that a known condition takes is still checked, whatever the file claims about it."""
    text = BRANCH.format(condition=condition, attributes=attributes)
    model = braid.compile(text.encode(), jobs=1, cache=False)
    with pytest.raises(BraidError, match="needs 0 <= n - 400"):
        model(np.zeros(2, np.float32), np.array(True))
    x = np.arange(401, dtype=np.float32)
    np.testing.assert_array_equal(model(x, np.array(True)), -x[1:5])


@pytest.mark.parametrize("name", ["size_checks", "branch_size_checks"])
@pytest.mark.parametrize("value", ["3 : i64", "[3 : i64]", '[[{size = "n"}], []]', "[{}]"])
def test_checks_that_are_none(name: str, value: str) -> None:
    attributes = f"{{braid.{name} = {value}}}"
    refusal(BRANCH.format(condition="%c = arith.constant true", attributes=attributes))
