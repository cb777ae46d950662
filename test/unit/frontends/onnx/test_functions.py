"""A model's own functions, against ONNX Runtime: attributes, opsets, optional values, names."""

from typing import Any

import numpy as np
import onnx.parser
import pytest
from onnx import AttributeProto, ModelProto, helper
from onnx.reference import ReferenceEvaluator
from onnxruntime import InferenceSession

from braid.analysis.interpreter import interpret
from braid.frontends.onnx import import_onnx
from braid.support.errors import BraidError

HEAD = '<ir_version: 10, opset_import: ["" : 18, "local" : 1]>'
LOCAL = '<opset_import: ["" : 18, "local" : 1], domain: "local">'
X = np.array([-4, 1, -8], np.float32)

CASES = {
    "default": """g (float[3] x) => (float[3] y) { y = local.leaky (x) }
        LOCAL leaky <alpha: float = 0.25> (x) => (y) {
            y = LeakyRelu<alpha: float = @alpha> (x) }""",
    "given instead of the default": """g (float[3] x) => (float[3] y) {
            y = local.leaky <alpha = 0.5> (x) }
        LOCAL leaky <alpha: float = 0.25> (x) => (y) {
            y = LeakyRelu<alpha: float = @alpha> (x) }""",
    "own default of the op": """g (float[3] x) => (float[3] y) { y = local.leaky (x) }
        LOCAL leaky <alpha> (x) => (y) {
            y = LeakyRelu<alpha: float = @alpha> (x) }""",
    "renamed through two calls": """g (float[3] x) => (float[3] y) {
            y = local.outer <b = 0.5> (x) }
        LOCAL outer <b: float = 3.0> (x) => (y) { y = local.leaky <alpha: float = @b> (x) }
        LOCAL leaky <alpha: float = 7.0> (x) => (y) {
            y = LeakyRelu<alpha: float = @alpha> (x) }""",
    "default through two calls": """g (float[3] x) => (float[3] y) { y = local.outer (x) }
        LOCAL outer <b: float = 3.0> (x) => (y) { y = local.leaky <alpha: float = @b> (x) }
        LOCAL leaky <alpha: float = 7.0> (x) => (y) {
            y = LeakyRelu<alpha: float = @alpha> (x) }""",
    "constant": """g (float[3] x) => (float[3] y) { y = local.plus (x) }
        LOCAL plus <k: float = 0.5> (x) => (y) { c = Constant<value_float: float = @k> ()
            y = Add (x, c) }""",
    "constants of lists": """g (float[3] x) => (float[3] y) { y = local.plus (x) }
        LOCAL plus <k: floats = [0.5, 1.5, 2.5], n: ints = [1, 3]> (x) => (y) {
            c = Constant<value_floats: floats = @k> ()
            s = Constant<value_ints: ints = @n> ()
            w = Add (x, c)  r = Reshape (w, s)  t = Constant<value_ints = [3]> ()
            y = Reshape (r, t) }""",
    "text and tensor": """g (float[3] x) => (float[3] y) { y = local.f (x) }
        LOCAL f <d: string = "add", t: tensor = int64[1] {1}, v: int = 6> (x) => (y) {
            i = Constant<value: tensor = @t> ()  u = CastLike (x, x)
            o = Constant<value_float = 3.0> ()
            s = Expand (o, i)
            z = ScatterElements <axis = 0, reduction: string = @d> (u, i, s)
            w = Cast<to: int = @v> (z)  y = CastLike (w, x) }""",
    "inside a branch": """g (float[3] x) => (float[3] y) { y = local.f (x) }
        LOCAL f <alpha: float = 0.25> (x) => (y) {
            z = Constant<value_float = 0.0> ()  s = ReduceMax <keepdims = 0> (x)  c = Greater (s, z)
            y = If (c) <
                then_branch = a () => (p) { p = LeakyRelu<alpha: float = @alpha> (x) },
                else_branch = b () => (q) { q = Neg (x) }> }""",
    "called in a branch": """g (float[3] x) => (float[3] y) {
            z = Constant<value_float = 0.0> ()  s = ReduceMax <keepdims = 0> (x)  c = Greater (s, z)
            w = Neg (x)
            y = If (c) <
                then_branch = a () => (p) { p = local.f (w) },
                else_branch = b () => (q) { q = local.f <alpha = 2.0> (x) }> }
        LOCAL f <alpha: float = 0.25> (x) => (y) { t = LeakyRelu<alpha: float = @alpha> (x)
            y = Add (t, t) }""",
    "names of the caller": """g (float[3] x) => (float[3] y) {
            t = Neg (x)  a = local.f (x)  b = local.f (a)  y = Add (b, t) }
        LOCAL f (y) => (x) { t = Abs (y)  x = Add (t, y) }""",
    "an input is an output": """g (float[3] x) => (float[3] y) {
            a, b = local.f (x)  y = Add (a, b) }
        LOCAL f (x) => (x, n) { n = Abs (x) }""",
    "unused outputs": """g (float[3] x) => (float[3] y) { a, y = local.f (x) }
        LOCAL f (x) => (a, b) { a = Abs (x)  b = Neg (x) }""",
    "left out inputs": """g (float[3] x) => (float[3] y) {
            a = local.f (x, , x)  b = local.f (x)  y = Add (a, b) }
        LOCAL f (x, low, high) => (y) {
            s = local.lowest (low)  t = local.highest (high)  y = Clip (x, s, t) }
        LOCAL lowest (v) => (r) { r = Constant<value_float = -5.0> () }
        LOCAL highest (v) => (r) { r = Constant<value_float = 0.5> () }""",
    "left out inputs of an op": """g (float[3] x) => (float[3] y) {
            z = Constant<value_float = -5.0> ()  a = local.f (x, z)  b = local.f (x)
            c = local.f (x, , z)  d = Add (a, b)  y = Add (c, d) }
        LOCAL f (x, low, high) => (y) { y = Clip (x, low, high) }""",
    "own opset": """g (float[3] x) => (float[3] y) { y = local.f (x) }
        <opset_import: ["" : 17], domain: "local"> f (x) => (y) { t = Exp (x)  y = Add (t, x) }""",
    "own opset whose attribute became an input": """g (float[3] x) => (float[1] y) {
            y = local.f (x) }
        <opset_import: ["" : 12], domain: "local"> f (x) => (y) {
            y = ReduceSum<axes = [0]> (x) }""",
    "an opset for each": """g (float[3] x) => (float[1] y) { t = local.f (x)  y = local.h (t) }
        <opset_import: ["" : 11], domain: "local"> f (x) => (y) {
            u = Unsqueeze<axes = [0]> (x)  y = Squeeze<axes = [0]> (u) }
        <opset_import: ["" : 18], domain: "local"> h (x) => (y) {
            a = Constant<value_ints = [0]> ()  y = ReduceMean (x, a) }""",
}


BY_REFERENCE = {
    "an input is an output",
    "own opset whose attribute became an input",
    "an opset for each",
}
"""Models that ONNX Runtime refuses, since it inlines bodies without their opsets."""


def parsed(text: str) -> ModelProto:
    return onnx.parser.parse_model(f"{HEAD} {text.replace('LOCAL', LOCAL)}")


def run(model: ModelProto, x: Any = X) -> list[Any]:
    imported = import_onnx(model)
    imported.module.verify()
    return interpret(imported.module, [x], parameters=imported.parameters)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("sign", [1, -1])
def test_functions(name: str, sign: int) -> None:
    model = parsed(CASES[name])
    feed = {"x": sign * X}
    if name in BY_REFERENCE:
        expected: Any = ReferenceEvaluator(model).run(None, feed)
    else:
        expected = InferenceSession(model.SerializeToString()).run(None, feed)
    np.testing.assert_allclose(run(model, sign * X)[0], expected[0], rtol=1e-6)


def test_overloads() -> None:
    """ONNX's parser has no syntax for them."""
    functions = [
        helper.make_function(
            "local",
            "f",
            ["x"],
            ["y"],
            [helper.make_node(op, ["x"], ["y"])],
            [helper.make_opsetid("", 18)],
            overload=overload,
        )
        for overload, op in (("a", "Neg"), ("b", "Abs"))
    ]
    nodes = [
        helper.make_node("f", ["x"], ["n"], domain="local", overload="a"),
        helper.make_node("f", ["n"], ["y"], domain="local", overload="b"),
    ]
    model = parsed("g (float[3] x) => (float[3] n, float[3] y) {}")
    model.graph.node.extend(nodes)
    model.functions.extend(functions)
    np.testing.assert_array_equal(run(model), [-X, np.abs(X)])


def test_values_of_two_calls_have_names_of_their_own() -> None:
    model = parsed("""g (float[3] x) => (float[3] y) { a = local.f (x)  y = local.f (a) }
        LOCAL f (x) => (y) { t = Abs (x)  y = Neg (t) }""")
    (function,) = import_onnx(model).module.ops
    names = [op.attributes["braid.name"] for op in function.walk() if op.operands and op.results]
    assert [str(name) for name in names] == ['"a/t"', '"a"', '"y/t"', '"y"']


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("y = local.f <beta = 1.0> (x)", "its function has no attribute 'beta'"),
        ("y = local.f (x, x)", "it has 2 inputs, but its function has 1"),
        ("y, z = local.f (x)", "it has 2 outputs, but its function has 1"),
        ("y = local.f <alpha = 1> (x)", "attribute 'alpha' has type INT, expected FLOAT"),
        ("y = local.f <alpha = 1.0> ()", "input 0 .*is missing"),
        ("y = Elu <alpha: float = @a> (x)", "refers to 'a', .* is not in a function"),
    ],
)
def test_bad_calls(call: str, message: str) -> None:
    model = parsed(f"""g (float[3] x) => (float[3] y) {{ {call} }}
        LOCAL f <alpha> (x) => (y) {{ y = Elu<alpha: float = @alpha> (x) }}""")
    with pytest.raises(BraidError, match=message):
        import_onnx(model)


def test_a_graph_given_to_a_function_sees_the_caller() -> None:
    model = parsed("""g (float[3] x) => (float[3] y) { w = Neg (x) }
        LOCAL f (x) => (y) { w = Abs (x)  z = Constant<value_float = 0.0> ()
            s = ReduceMax <keepdims = 0> (w)  c = Greater (s, z)
            y = If (c) <else_branch = b () => (q) { q = Identity (w) }> }""")
    branch = helper.make_graph(
        [helper.make_node("Identity", ["w"], ["p"])], "a", [], [onnx.ValueInfoProto(name="p")]
    )
    call = helper.make_node("f", ["x"], ["y"], domain="local", then=branch)
    model.graph.node.append(call)
    model.functions[0].attribute.append("then")
    reference = AttributeProto(name="then_branch", ref_attr_name="then", type=AttributeProto.GRAPH)
    model.functions[0].node[-1].attribute.append(reference)
    np.testing.assert_array_equal(run(model)[0], -X)
