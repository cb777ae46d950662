"""Models with open dims, compiled once: their results at sizes that were never named."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper, numpy_helper

import braid
from braid.support.errors import BraidError

Array = NDArray[np.float32]
Nodes = Sequence[tuple[str, str, str, Mapping[str, object]]]


def model_of(nodes: Nodes, inputs: Mapping[str, Sequence[int | str]]) -> ModelProto:
    """Return a model of nodes (op, inputs, outputs, attributes), whose last value is its output."""
    graph = helper.make_graph(
        [helper.make_node(op, a.split(), b.split(), **kw) for op, a, b, kw in nodes],
        "graph",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs.items()],
        [helper.make_tensor_value_info(nodes[-1][2], TensorProto.FLOAT, None)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


ROWS = model_of(
    [
        ("Relu", "x", "r", {}),
        ("Softmax", "r", "s", {"axis": -1}),
        ("Add", "s x", "a", {}),
        ("Softmax", "a", "y", {"axis": -1}),
    ],
    {"x": ["batch", "n"]},
)


def rows(x: Array) -> Array:
    """Return what `ROWS` computes."""

    def softmax(values: Array) -> Array:
        powers = np.exp(values - values.max(axis=-1, keepdims=True))
        return powers / powers.sum(axis=-1, keepdims=True)

    return softmax(softmax(np.maximum(x, 0)) + x)


def numbers(*shape: int) -> Array:
    return np.random.default_rng(shape).standard_normal(shape).astype(np.float32)


def test_one_model_runs_at_any_size(tmp_path: Path) -> None:
    model = braid.compile(ROWS)
    model.save(tmp_path / "rows.braid")
    for each in (model, braid.load(tmp_path / "rows.braid")):
        for shape in ((1, 1), (3, 16), (8, 33), (17, 1009), (1, 5), (0, 5)):
            x = numbers(*shape)
            np.testing.assert_allclose(each(x), rows(x) if x.size else x, rtol=1e-5, atol=1e-6)


def test_shapes_are_named_and_checked() -> None:
    model = braid.compile(ROWS)
    assert "x: float32[batch, n]" in repr(model)
    with pytest.raises(BraidError, match=r"'x' has shape \(2, 3, 4\), expected \(batch, n\)"):
        model(numbers(2, 3, 4))


def test_what_ops_take_for_granted_is_checked_in_each_run() -> None:
    model = braid.compile(model_of([("Add", "a b", "sum", {})], {"a": ["n", 4], "b": ["m", 4]}))
    x = numbers(5, 4)
    np.testing.assert_array_equal(model(x, x), x + x)
    with pytest.raises(BraidError, match=r"'sum' .* needs [mn] = [mn]"):
        model(x, numbers(3, 4))
    np.testing.assert_array_equal(model(x[:2], x[2:4]), x[:2] + x[2:4])


def test_the_size_of_one_input_is_that_of_another() -> None:
    model = braid.compile(model_of([("Add", "a b", "sum", {})], {"a": ["n", 4], "b": ["n", 4]}))
    with pytest.raises(BraidError, match="'n'"):
        model(numbers(5, 4), numbers(3, 4))


def test_sizes_are_data_too() -> None:
    """Positions of a sequence, and its length as a divisor, are computed from sizes alone."""
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "one"], ["length"]),
        helper.make_node("Range", ["zero", "length", "step"], ["places"]),
        helper.make_node("Cast", ["places"], ["p"], to=TensorProto.FLOAT),
        helper.make_node("Cast", ["length"], ["l"], to=TensorProto.FLOAT),
        helper.make_node("Div", ["p", "l"], ["share"]),
        helper.make_node("Add", ["x", "share"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", "length"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [
            helper.make_tensor(name, TensorProto.INT64, [], [value])
            for name, value in (("zero", 0), ("one", 1), ("step", 1))
        ],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    model = braid.compile(proto)
    for shape in ((2, 7), (1, 1), (3, 130)):
        x = numbers(*shape)
        share = np.arange(shape[1], dtype=np.float32) / np.float32(shape[1])
        np.testing.assert_allclose(model(x), x + share, rtol=1e-6, atol=1e-6)


def test_parts_from_the_end_keep_their_layout() -> None:
    """A slice of open sizes between convolutions is stored as these want it."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("Slice", ["c", "starts", "ends", "axes"], ["part"]),
        helper.make_node("Conv", ["part", "w"], ["y"], kernel_shape=[3, 3]),
    ]
    w = np.random.default_rng(0).standard_normal((8, 8, 3, 3)).astype(np.float32)
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 8, "height", 12])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [
            numpy_helper.from_array(w, "w"),
            helper.make_tensor("starts", TensorProto.INT64, [1], [1]),
            helper.make_tensor("ends", TensorProto.INT64, [1], [-1]),
            helper.make_tensor("axes", TensorProto.INT64, [1], [2]),
        ],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    model = braid.compile(proto)
    for height in (6, 17, 40):
        x = numbers(1, 8, height, 12)
        np.testing.assert_allclose(
            model(x), braid.interpret(proto, dims={"height": height})(x), rtol=1e-4, atol=1e-3
        )
    with pytest.raises(BraidError, match="needs"):
        model(numbers(1, 8, 3, 12))


@pytest.mark.parametrize(
    ("window", "attributes"),
    [
        (2, {"strides": [2, 2]}),
        (3, {"strides": [2, 3], "pads": [1, 0, 1, 2], "output_padding": [1, 0]}),
        (3, {"dilations": [2, 1]}),
        (2, {"strides": [3, 1], "pads": [0, 1, 1, 0]}),
    ],
)
def test_transposed_convolutions(window: int, attributes: dict[str, list[int]]) -> None:
    w = np.random.default_rng(0).standard_normal((3, 4, window, window)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("ConvTranspose", ["x", "w"], ["y"], **attributes)],
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, "height", "width"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(w, "w")],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    model = braid.compile(proto)
    for n, height, width in ((1, 5, 7), (2, 16, 3), (3, 4, 33)):
        x = numbers(n, 3, height, width)
        expected = braid.interpret(proto, shapes={"x": x.shape})(x)
        np.testing.assert_allclose(model(x), expected, rtol=1e-4, atol=1e-4)


def test_slices_of_nothing() -> None:
    """Every second element from the end: an empty dim has none, and none is out of bounds."""
    nodes = [helper.make_node("Slice", ["x", "starts", "ends", "axes", "steps"], ["y"])]
    numbered = {"starts": [2**63 - 1], "ends": [-(2**63)], "axes": [0], "steps": [-2]}
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [helper.make_tensor(name, TensorProto.INT64, [1], own) for name, own in numbered.items()],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    model = braid.compile(proto)
    for n in (0, 1, 2, 7):
        x = numbers(n, 3)
        np.testing.assert_array_equal(model(x), x[::-2])


RANGED = """
func.func @main(%x: tensor<?xf32, #braid.sizes<["n"]>>) -> tensor<4xf32>
    attributes {braid.symbols = {n = #braid.symbol<{min = 4 : i64, max = 64 : i64}>}EXTRA} {
  %y = braid.sized_slice %x {offsets = #braid.sizes<["n - 4"]>, sizes = #braid.sizes<["4"]>,
      strides = array<i64: 1>} : (tensor<?xf32, #braid.sizes<["n"]>>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
"""


@pytest.mark.parametrize("extra", ["", ", braid.size_checks = []"])
def test_what_is_assumed_of_a_size_is_checked(extra: str) -> None:
    """Proofs rely on it: a slice that is inside at four elements or more reads before others."""
    model = braid.compile(RANGED.replace("EXTRA", extra).encode())
    x = numbers(64)
    for n in (4, 7, 64):
        np.testing.assert_array_equal(model(x[:n]), x[n - 4 : n])
    for n, message in ((0, "at least 4"), (3, "at least 4"), (65, "at most 64")):
        with pytest.raises(BraidError, match=f"'n' must be {message}"):
            model(numbers(n))


def test_no_program_is_made_without_checks() -> None:
    text = RANGED.replace("EXTRA", ", braid.size_checks = []").encode()
    with pytest.raises(BraidError, match="nothing says what each run has to check"):
        braid.compile(text, passes="outline-kernels")


def test_a_budget_needs_numbers() -> None:
    with pytest.raises(BraidError, match="a memory budget is for models of known sizes"):
        braid.compile(ROWS, memory_budget="1GiB")


def with_ort(source: ModelProto, *runs: Mapping[str, NDArray[Any]]) -> braid.Model:
    """Return the compiled model, after it gave what ONNX Runtime gives in each of the runs."""
    model, session = braid.compile(source), onnxruntime.InferenceSession(source.SerializeToString())
    for inputs in runs:
        found = model.run([inputs[value.name] for value in source.graph.input])
        for actual, expected in zip(found, session.run(None, dict(inputs)), strict=True):
            assert actual.shape == expected.shape
            np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)
    return model


BRANCHES = onnx.parser.parse_model("""<ir_version: 9, opset_import: ["" : 18]>
g (float[A,B] x, bool even) => (float[] y) {
  y = If <then_branch = a() => (float[C] p) {
            f = Constant <value = int64[2] {2, -1}> ()
            e = Reshape (x, f)
            axes = Constant <value = int64[2] {0, 1}> ()
            p = ReduceSum <keepdims = 0> (e, axes) },
          else_branch = b() => (float[] q) { q = ReduceMax <keepdims = 0> (x) }> (even) }""")
"""One of its branches wants an even number of elements."""


def test_a_branch_needs_its_sizes_only_where_it_is_taken() -> None:
    even, odd = numbers(2, 3), numbers(3, 3)
    yes, no = np.array(True), np.array(False)
    model = with_ort(BRANCHES, {"x": odd, "even": no}, {"x": even, "even": yes})
    with pytest.raises(BraidError, match=r"'e' \(braid.reshape\) needs A \* B = 2 \* "):
        model(odd, yes)
    np.testing.assert_allclose(model(even, yes), even.sum(), rtol=1e-5)


def test_branches_that_need_the_same_are_checked_before_them() -> None:
    """Passes may hoist ops with which both branches begin: it must not run where it does not
    fit."""
    text = """<ir_version: 9, opset_import: ["" : 18]>
    g (float[A,B] x, float[C,B] z, bool c) => (float[] y) {
      y = If <then_branch = a() => (float[D,E] p) { s = Add (x, z)  p = Exp (s) },
              else_branch = b() => (float[F,G] q) { t = Add (x, z)  q = Neg (t) }> (c) }"""
    x, other = numbers(2, 3), numbers(4, 3)
    yes, no = np.array(True), np.array(False)
    source = onnx.parser.parse_model(text)
    model = with_ort(source, {"x": x, "z": x, "c": yes}, {"x": x, "z": x, "c": no})
    for taken in (yes, no):
        with pytest.raises(BraidError, match=r"\(braid.add\) needs A = C"):
            model(x, other, taken)


def test_likely_sizes_are_looked_for() -> None:
    text = """<ir_version: 9, opset_import: ["" : 18]> g (float[A,B] x) => (float[] y) {
      q = Constant <value = int64[2] {6, 2}> ()  y = Reshape (x, q) }"""
    with_ort(onnx.parser.parse_model(text), {"x": numbers(3, 4)}, {"x": numbers(12, 1)})


def test_an_expansion_to_sizes_of_another_tensor_is_checked() -> None:
    text = """<ir_version: 9, opset_import: ["" : 18]> g (float[A,1] x, float[B,C] z) => (float[] y)
    { s = Shape (x)  y = Expand (z, s) }"""
    source = onnx.parser.parse_model(text)
    runs = [{"x": numbers(a, 1), "z": numbers(b, 2)} for a, b in ((5, 5), (1, 4), (1, 1))]
    model = with_ort(source, *runs)
    with pytest.raises(BraidError, match=r"\(braid.broadcast\) needs B = "):
        model(numbers(5, 1), numbers(2, 2))


def test_parts_that_do_not_add_up() -> None:
    text = """<ir_version: 9, opset_import: ["" : 18]> g (float[A,B] x) => (float[] y, float[] z) {
      s = Constant <value = int64[2] {2, 3}> ()  y, z = Split <axis = 1> (x, s) }"""
    model = with_ort(onnx.parser.parse_model(text), {"x": numbers(4, 5)})
    with pytest.raises(BraidError, match=r"needs A \* B = 5 \* A"):
        model(numbers(3, 6))


@pytest.mark.parametrize("axis", [0, 1])
def test_the_largest_along_one_of_two_open_dims(axis: int) -> None:
    """Workers have scratch memory of a size that is known when it runs."""
    text = f"""<ir_version: 9, opset_import: ["" : 18]> g (float[A,B] x) => (float[] y) {{
      k = Constant <value = int64[1] {{2}}> ()  y, i = TopK <axis = {axis}> (x, k) }}"""
    runs = [{"x": numbers(*shape)} for shape in ((2, 2), (5, 3), (17, 129))]
    with_ort(onnx.parser.parse_model(text), *runs)


COUNTED_BY_SIZES = {
    "half of the rows": "c = Div (a, two)  y, i = TopK <axis = 0> (x, c)",
    "rows in order": "y, i = TopK <axis = 1, largest = 0> (x, b)",
    "at most five": "c = Min (b, five)  y, i = TopK (x, c)",
    "one hot": "j = ArgMax <axis = 1, keepdims = 0> (x)  y = OneHot (j, b, values)",
    "a triangle": "d = Sub (a, two)  e = Squeeze (d)  y = Trilu (x, e)",
    "the other triangle": "d = Sub (two, b)  e = Squeeze (d)  y = Trilu <upper = 0> (x, e)",
}


@pytest.mark.parametrize("nodes", COUNTED_BY_SIZES.values(), ids=COUNTED_BY_SIZES)
def test_counts_that_are_sizes(nodes: str) -> None:
    text = f"""<ir_version: 9, opset_import: ["" : 18]> g (float[A,B] x) => (float[] y)
    <int64[1] two = {{2}}, int64[1] five = {{5}}, float[2] values = {{-1, 2.5}}> {{
      a = Shape <start = 0, end = 1> (x)  b = Shape <start = 1> (x)
      {nodes} }}"""
    runs = [{"x": numbers(*shape)} for shape in ((4, 6), (5, 5), (6, 1), (2, 1300))]
    with_ort(onnx.parser.parse_model(text), *runs)


def test_states_whose_batch_has_another_name() -> None:
    text = """<ir_version: 9, opset_import: ["" : 18]>
    g (float[T,N,4] x, float[1,20,4] w, float[1,20,5] r, float[1,M,5] h) => (float[] y) {
      y, last = LSTM <hidden_size = 5> (x, w, r, , , h) }"""
    weights = {"w": numbers(1, 20, 4), "r": numbers(1, 20, 5)}
    runs = [{"x": numbers(t, n, 4), **weights, "h": numbers(1, n, 5)} for t, n in ((3, 2), (1, 1))]
    model = with_ort(onnx.parser.parse_model(text), *runs)
    with pytest.raises(BraidError, match="needs"):
        model(numbers(3, 2, 4), *weights.values(), numbers(1, 3, 5))


@pytest.mark.parametrize(
    "attributes",
    [
        "kernel_shape = [2], pads = [0, 1]",
        "kernel_shape = [3], pads = [1, 1], strides = [2]",
        "kernel_shape = [3], pads = [0, 1], count_include_pad = 1, ceil_mode = 1, strides = [2]",
        "kernel_shape = [3], ceil_mode = 1, strides = [3]",
    ],
)
@pytest.mark.parametrize("channels", [1, 8])
def test_averages_at_the_edges(attributes: str, channels: int) -> None:
    """Windows have as many elements as lie in the image; ones of one line are such an image."""
    text = f"""<ir_version: 9, opset_import: ["" : 19]>
    g (float[B,{channels},L] x) => (float[] y) {{
      y = AveragePool <{attributes}> (x) }}"""
    runs = [{"x": numbers(b, channels, n)} for b, n in ((1, 3), (3, 7), (2, 40))]
    with_ort(onnx.parser.parse_model(text), *runs)


def test_quantized_products_and_reshapes() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21]> g (float[N,S,16] x) => (float[] y) {
      s = Constant <value = float {0.05}> ()  z = Constant <value = uint8 {120}> ()
      a = QuantizeLinear (x, s, z)  b = DequantizeLinear (a, s, z)
      heads = Constant <value = int64[4] {0, 0, 4, 4}> ()  c = Reshape (b, heads)
      d = QuantizeLinear (c, s, z)  e = DequantizeLinear (d, s, z)
      rows = Constant <value = int64[3] {0, 0, 16}> ()  f = Reshape (e, rows)
      w = DequantizeLinear (w8, sw)  y = MatMul (f, w) }"""
    source = onnx.parser.parse_model(text)
    weight = np.random.default_rng(0).integers(-100, 100, (16, 24)).astype(np.int8)
    source.graph.initializer.append(numpy_helper.from_array(weight, "w8"))
    source.graph.initializer.append(numpy_helper.from_array(np.float32(0.01), "sw"))
    with_ort(source, *({"x": numbers(*shape, 16)} for shape in ((1, 1), (2, 3), (5, 1))))


def test_sizes_in_arithmetic_beyond_64_bits_are_data() -> None:
    text = """<ir_version: 9, opset_import: ["" : 18]> g (float[A] x) => (int64[] y) {
      s = Shape (x)  k = Constant <value = int64[1] {4611686018427387904}> ()
      m = Mul (s, k)  y = Div (m, k) }"""
    with_ort(onnx.parser.parse_model(text), {"x": numbers(5)}, {"x": numbers(3)})


LOOKUPS = {
    "Gather": "y = Gather (x, j)",
    "GatherND": "i = Constant <value = int64[1,1] {0}> ()  y = GatherND (x, i)",
    "GatherElements": "y = GatherElements (x, k)",
    "ScatterElements": "u = Cast <to = 1> (k)  y = ScatterElements (x, k, u)",
    "ArgMax": "i = ArgMax <axis = 0> (x)  y = Cast <to = 1> (i)",
    "Resize": """s = Shape (k)
      y = Resize <mode = "linear", coordinate_transformation_mode = "asymmetric"> (x, , , s)""",
}


@pytest.mark.parametrize("op", LOOKUPS)
def test_nothing_is_looked_up_in_an_empty_dim(op: str) -> None:
    """The nearest element of an index would lie beyond the input."""
    text = f"""<ir_version: 9, opset_import: ["" : 18]>
    g (float[N,4] x, int64[M] j, int64[P,4] k) => (float[A,B] y) {{ {LOOKUPS[op]} }}"""
    model = braid.compile(onnx.parser.parse_model(text))
    indices = np.zeros(2, np.int64), np.zeros((2, 4), np.int64)
    with pytest.raises(BraidError, match="<= N"):
        model(np.zeros((0, 4), np.float32), *indices)
    assert np.isfinite(model(np.ones((1, 4), np.float32), *indices)).all()
