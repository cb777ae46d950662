"""Models whose data decide sizes, beside ONNX Runtime and interpreted."""

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import braid
from braid.support.errors import BraidError

HEAD = '<ir_version: 9, opset_import: ["" : 18]> g '
RANDOM = np.random.default_rng(47)
Inputs = Mapping[str, Any]


def floats(*shape: int, share: float = 0.5) -> np.ndarray:
    """Return small integers as f32, a fraction of about `share` of them 0."""
    kept = RANDOM.random(shape) >= share
    return (RANDOM.integers(1, 5, shape) * RANDOM.choice([-1, 1], shape) * kept).astype(np.float32)


def numbers(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def f32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def scalar(value: float, dtype: Any = np.float32) -> np.ndarray:
    return np.array(value, dtype)


LOOP = """(float[N] x, float limit) => (float[] last, float[] rows)
  <int64 m = {%d}, float[1] z = {0}, bool t = {1}> {
    last, rows = Loop (%s, t, z) <body = b (int64 i, bool c, float[1] a)
        => (bool d, float[1] e, float[1] f) {
      s = ReduceSum <keepdims = 0> (x)  p = Abs (s)  one = Constant <value_float = 1.0> ()
      q = Add (p, one)  e = Add (a, q)  g = Less (e, limit)
      axes = Constant <value_ints = [0]> ()  d = Squeeze (g, axes)  f = Mul (e, e) }> }"""
LOOP_INPUTS: list[Inputs] = [
    {"x": floats(n), "limit": scalar(limit)} for n, limit in ((3, 10), (2, 0), (1, 60), (4, 3))
]

MODELS: dict[str, tuple[str, list[Inputs]]] = {
    "NonZero": (
        "(float[N,M,2] x) => (int64[] y) { y = NonZero (x) }",
        [{"x": floats(n, m, 2, share=s)} for n, m, s in ((3, 4, 0.5), (1, 1, 1), (2, 5, 0))],
    ),
    "a mask as PyTorch exports it": (
        """(float[N,3] x) => (float[] y, float[] s) <float zero = {0}> {
          m = Greater (x, zero)  n = NonZero (m)  t = Transpose (n)  y = GatherND (x, t)
          s = ReduceSum <keepdims = 0> (y) }""",
        [{"x": floats(n, 3)} for n in (4, 1, 0)] + [{"x": -np.ones((2, 3), np.float32)}],
    ),
    "Compress": (
        "(float[N,M] x, bool[M] c) => (float[] y) { y = Compress <axis = -1> (x, c) }",
        [{"x": floats(3, m), "c": RANDOM.random(m) < p} for m, p in ((4, 0.5), (5, 0), (2, 1))],
    ),
    "Compress of elements": (
        "(int64[2,3] x, bool[4] c) => (int64[] y) { y = Compress (x, c) }",
        [{"x": np.arange(6).reshape(2, 3), "c": RANDOM.random(4) < 0.5} for _ in range(3)],
    ),
    "Unique": (
        """(float[N,M] x) => (float[] y, int64[] f, int64[] i, int64[] c) {
          y, f, i, c = Unique (x) }""",
        [{"x": floats(n, m)} for n, m in ((3, 4), (1, 1), (0, 2), (6, 2))],
    ),
    "Unique, in their order": (
        """(int64[N] x) => (int64[] y, int64[] f, int64[] i, int64[] c) {
          y, f, i, c = Unique <sorted = 0> (x) }""",
        [{"x": RANDOM.integers(-2, 3, n)} for n in (7, 1, 12)],
    ),
    "Unique rows": (
        """(float[N,M] x) => (float[] y, int64[] f, int64[] i, int64[] c) {
          y, f, i, c = Unique <axis = 0> (x) }""",
        [{"x": RANDOM.integers(-1, 2, s).astype(np.float32)} for s in ((9, 2), (1, 3), (7, 1))],
    ),
    "Unique slices of the middle dim, in their order": (
        """(int64[2,N,2] x) => (int64[] y, int64[] f, int64[] i, int64[] c) {
          y, f, i, c = Unique <axis = -2, sorted = 0> (x) }""",
        [{"x": RANDOM.integers(0, 2, (2, n, 2))} for n in (20, 1, 5)],
    ),
    "Range": (
        """(int64 a, int64 b, int64 d) => (int64[] y, float[] z) {
          e = Add (a, d)  y = Range (e, b, d)  z = Cast <to = 1> (y) }""",
        [
            {"a": np.array(a), "b": np.array(b), "d": np.array(d)}
            for a, b, d in ((0, 7, 2), (5, -4, -3), (3, 3, 1), (-2, 2, 1))
        ],
    ),
    "Slice by places that count from the end": (
        """(float[N,6] x, int64[1] a, int64[1] b) => (float[] y)
          <int64[1] axis = {1}, int64[1] step = {2}> { y = Slice (x, a, b, axis, step) }""",
        [
            {"x": floats(2, 6), "a": numbers(a), "b": numbers(b)}
            for a, b in ((-4, 6), (1, -1), (-9, 99), (4, 2), (0, 0))
        ],
    ),
    "Slice that goes back": (
        """(float[N,4] x, int64[2] a, int64[2] b) => (float[] y)
          <int64[2] axes = {0, 1}, int64[2] steps = {-2, 1}> {
            y = Slice (x, a, b, axes, steps) }""",
        [
            {"x": floats(n, 4), "a": numbers(*a), "b": numbers(*b)}
            for n, a, b in ((6, (-1, -2), (-99, 4)), (6, (4, 0), (1, 2)), (0, (3, 1), (-9, -1)))
        ],
    ),
    "Range whose difference its type does not hold": (
        "(int16 a, int16 b, int16 d) => (int16[] y) { y = Range (a, b, d) }",
        [{"a": scalar(-20000, "i2"), "b": scalar(20000, "i2"), "d": scalar(1000, "i2")}],
    ),
    "magnitudes of numbers that may be negative": (
        """(int64[2] x) => (float[] y) { a = Abs (x)  y = ConstantOfShape (a) }""",
        [{"x": numbers(*x)} for x in ((-2, 3), (0, -1), (4, 1))],
    ),
    "numbers that are cut off at 0": (
        """(int64[2] x, float[1] v) => (float[] y) <int64 zero = {0}> {
          a = Max (x, zero)  y = Expand (v, a) }""",
        [{"x": numbers(*x), "v": f32(1.5)} for x in ((-2, 3), (2, -1), (4, 1))],
    ),
    "a difference, a remainder, and a power that a constant bounds": (
        """(int64[1] k) => (float[] a, float[] b, float[] c)
          <int64[1] two = {2}, int64[1] five = {5}, int64[1] most = {3}> {
            d = Sub (two, k)  a = ConstantOfShape (d)  r = Mod (k, five)  b = ConstantOfShape (r)
            s = Mul (k, k)  m = Min (s, most)  c = ConstantOfShape (m) }""",
        [{"k": numbers(k)} for k in (-3, -1, 0, 1, 2)],
    ),
    "one element is a size, the other may be negative": (
        """(int64[2] x) => (float[] y, int64[] z) <int64[1] first = {0}, int64[1] second = {1}> {
          a = Gather (x, first)  b = Gather (x, second)  y = ConstantOfShape (a)
          z = Add (b, b) }""",
        [{"x": numbers(*x)} for x in ((3, -2), (0, 5))],
    ),
    "a number of iterations below 0": (
        """(int64 m, float[2] x) => (float[] last, float[] rows) <bool t = {1}> {
          last, rows = Loop (m, t, x) <body = b (int64 i, bool c, float[2] a)
              => (bool d, float[2] e, float[2] f) {
            d = Identity (c)  e = Add (a, a)  f = Mul (e, e) }> }""",
        [{"m": scalar(m, "i8"), "x": f32(1, 2)} for m in (2, -3, 0)],
    ),
    "Resize by scales that data and sizes decide": (
        """(float[1,1,H,W] x, float m) => (float[] y, float[] z)
          <float[2] one = {1.0, 1.0}, int64[1] v = {1}> {
            s = Shape <start = 2> (x)  f = Cast <to = 1> (s)  d = Div (m, f)
            k = Concat <axis = 0> (one, d)  y = Resize <mode = "linear"> (x, , k)
            n = Reshape (m, v)  t = Concat <axis = 0> (one, n, n)
            z = Resize <coordinate_transformation_mode = "asymmetric", nearest_mode = "floor">
              (x, , t) }""",
        [{"x": floats(1, 1, h, w), "m": scalar(m)} for h, w, m in ((3, 4, 6), (5, 2, 2.5))],
    ),
    "Resize by a ratio of sizes": (
        """(float[1,2,H,W] x, float[A,B] like) => (float[] y) <float[2] one = {1.0, 1.0}> {
            s = Shape <start = 2> (x)  f = Cast <to = 1> (s)  t = Shape (like)
            g = Cast <to = 1> (t)  d = Div (g, f)  k = Concat <axis = 0> (one, d)
            y = Resize <mode = "linear"> (x, , k) }""",
        [
            {"x": floats(1, 2, h, w), "like": floats(a, b)}
            for h, w, a, b in ((3, 4, 6, 2), (5, 2, 7, 9))
        ],
    ),
    "Split into three": (
        "(float[N] x, int64[3] p) => (float[] a, float[] b, float[] c) { a, b, c = Split (x, p) }",
        [{"x": floats(sum(p)), "p": numbers(*p)} for p in ((1, 2, 3), (0, 3, 0))],
    ),
    "a mask after a mask": (
        """(float[N,3] x) => (float[] u) <float zero = {0}> {
          m = Greater (x, zero)  n = NonZero (m)  t = Transpose (n)  y = GatherND (x, t)
          u = Unique (y) }""",
        [{"x": floats(n, 3)} for n in (5, 1, 0)],
    ),
    "a detector": (
        """(float[N,4] b, float[N] s) => (float[] o)
          <float zero = {0.2}, int64[1] first = {0}, int64[2] both = {0, 1}, int64[1] most = {5},
           float[1] overlap = {0.5}, float[1] least = {0.1}, int64 two = {2}> {
            g = Greater (s, zero)  kept = Compress <axis = 0> (b, g)
            scores = Compress <axis = 0> (s, g)  c = Unsqueeze (kept, first)
            t = Unsqueeze (scores, both)  n = NonMaxSuppression (c, t, most, overlap, least)
            w = Gather <axis = 1> (n, two)  o = Gather (kept, w) }""",
        [{"b": np.abs(floats(n, 4)), "s": RANDOM.random(n, np.float32)} for n in (9, 1, 30)],
    ),
    "Reshape by computed extents": (
        """(float[N,M] x, float[1] q) => (float[] y) <int64[1] rest = {-1}, int64[1] last = {2}> {
          k = Cast <to = 7> (q)  s = Concat <axis = 0> (rest, k, last)  y = Reshape (x, s) }""",
        [{"x": floats(4, 6), "q": f32(q)} for q in (1, 3, 12)],
    ),
    "Pad, and cut": (
        """(float[N,3] x, int64[4] p) => (float[] y) {
          q = Neg (p)  r = Neg (q)  y = Pad (x, r) }""",
        [
            {"x": floats(4, 3), "p": numbers(*p)}
            for p in ((1, 0, 2, 1), (-1, 2, 0, -1), (0, 0, 0, 0))
        ],
    ),
    "durations that repeat frames": (
        """(float[T,4] x, float[T] d) => (float[] y)
          <int64 zero = {0}, int64 one = {1}, int64[1] first = {0}, int64[1] second = {1}> {
            r = Round (d)  n = Cast <to = 7> (r)  ends = CumSum (n, zero)
            total = ReduceSum <keepdims = 0> (n, first)  frames = Range (zero, total, one)
            column = Unsqueeze (frames, second)  row = Unsqueeze (ends, first)
            after = GreaterOrEqual (column, row)  count = Cast <to = 7> (after)
            which = ReduceSum <keepdims = 0> (count, second)  y = Gather (x, which) }""",
        [{"x": floats(t, 4), "d": np.abs(floats(t))} for t in (3, 1, 5)],
    ),
    "decisions that follow each other": (
        """(float[N] x) => (int64[] y, float[] z) <int64[1] axes = {0}, int64 two = {2}> {
          a = NonZero (x)  f = Squeeze (a, axes)  r = Mod (f, two)  y = NonZero (r)
          c = Cast <to = 1> (f)  z = Exp (c) }""",
        [{"x": floats(n)} for n in (9, 1, 30)] + [{"x": np.zeros(3, np.float32)}],
    ),
    "a loop that collects": (LOOP % (20, "m"), LOOP_INPUTS),
    "a loop that collects without a bound": (LOOP % (20, ""), LOOP_INPUTS),
    "a loop with control flow that collects": (
        """(float[N] x, float l) => (float last, float[] rows) <bool t = {1}, float z = {0}> {
          last, rows = Loop (, t, z) <body = b (int64 i, bool c, float a)
              => (bool d, float e, float r) {
            one = Constant <value_float = 1.0> ()  f = Add (a, one)  p = Less (f, l)
            e = If (p) <then_branch = q () => (float u) { u = Mul (f, one) },
              else_branch = o () => (float v) { v = Add (f, one) }>
            d = Less (e, l)  r = Mul (e, e) }> }""",
        [{"x": floats(2), "l": scalar(limit)} for limit in (7, -1)],
    ),
    "a computed number of iterations": (
        """(float[N] x) => (float[] y) <bool t = {1}> {
          s = ReduceSum <keepdims = 0> (x)  k = Cast <to = 7> (s)
          y = Loop (k, t) <body = b (int64 i, bool c) => (bool d, float[N] f) {
            d = Identity (c)  w = Cast <to = 1> (i)  f = Add (x, w) }> }""",
        [{"x": np.full(n, v, np.float32)} for n, v in ((3, 1), (2, 3.5))],
    ),
    "branches of other extents": (
        """(float[N,2] x, bool p) => (float[] y) {
          y = If (p) <then_branch = a () => (float[] u) { u = Concat <axis = 0> (x, x) },
            else_branch = b () => (float[] v) {
              zero = Constant <value_ints = [0]> ()  one = Constant <value_ints = [1]> ()
              v = Slice (x, zero, one) }> }""",
        [{"x": floats(n, 2), "p": np.array(p)} for n in (1, 3) for p in (False, True)],
    ),
    "non-maximum suppression, and what is gathered by it": (
        """(float[1,N,4] b, float[1,C,N] s) => (int64[] n, float[] y)
          <int64[1] most = {4}, float[1] overlap = {0.4}, float[1] least = {0.2}, int64 two = {2},
           int64[1] zero = {0}> {
            n = NonMaxSuppression (b, s, most, overlap, least)  w = Gather <axis = 1> (n, two)
            f = Squeeze (b, zero)  y = Gather (f, w) }""",
        [
            {"b": np.abs(floats(1, n, 4)), "s": RANDOM.random((1, c, n), np.float32)}
            for n, c in ((12, 2), (1, 1), (40, 3))
        ],
    ),
}


def parsed(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(HEAD + text)


@pytest.mark.parametrize("name", list(MODELS))
def test_equal_to_onnx_runtime(name: str) -> None:
    text, cases = MODELS[name]
    proto = parsed(text)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    compiled, interpreted = braid.compile(proto), braid.interpret(proto)
    for inputs in cases:
        wanted = session.run(None, dict(inputs))
        for model in (compiled, interpreted):
            found = model.run_named(inputs).values()
            for one, other in zip(found, wanted, strict=True):
                assert one.shape == other.shape
                np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)


def test_shapes_of_outputs_have_names() -> None:
    model = braid.compile(parsed(MODELS["decisions that follow each other"][0]))
    assert repr(model) == "<braid.Model (x: float32[N]) -> (y: int64[1, y], z: float32[a])>"


def test_saved_loaded_and_copied(tmp_path: Path) -> None:
    text, cases = MODELS["NonZero"]
    model = braid.compile(parsed(text), threads=2)
    model.save(tmp_path / "m.braid")
    wanted = model.run_named(cases[0])["y"]
    for other in (braid.load(tmp_path / "m.braid"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.run_named(cases[0])["y"], wanted)
    streamed = list(model.stream(case["x"] for case in cases))
    assert [y.shape for y in streamed] == [model(case["x"]).shape for case in cases]
    model.trim()
    np.testing.assert_array_equal(model(cases[0]["x"]), wanted)


def test_results_are_written_where_they_fit() -> None:
    text, cases = MODELS["NonZero"]
    model = braid.compile(parsed(text))
    wanted = model(cases[0]["x"])
    out = np.empty_like(wanted)
    assert model(cases[0]["x"], out=out) is out
    np.testing.assert_array_equal(out, wanted)
    with pytest.raises(BraidError, match=r"output 'y' has shape \(3, 1\), expected"):
        model(cases[0]["x"], out=np.empty((3, 1), np.int64))


def test_counters_of_all_phases() -> None:
    text, cases = MODELS["decisions that follow each other"]
    model = braid.compile(parsed(text), profile=True)
    for _ in range(3):
        model(cases[0]["x"])
    counted = model.profile()
    assert {"a/scan", "y/scan", "c+z"} <= counted.keys()
    assert {entry.count for entry in counted.values()} == {3}


def test_sizes_that_cannot_be() -> None:
    model = braid.compile(
        parsed(
            "(float[1] x, float[1] q) => (float[] y) { k = Cast <to = 7> (q) y = Expand (x, k) }"
        )
    )
    with pytest.raises(BraidError, match="value 'k': element 0 is -2, expected a size"):
        model(f32(1), f32(-2))
    with pytest.raises(BraidError, match=r"out of memory|too large"):
        model(f32(1), f32(2.0**60))
    assert model(f32(1), f32(3)).shape == (3,)  # what failed leaves nothing behind


def test_phases_are_not_read() -> None:
    text = """
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> attributes {braid.phase = 0 : i64} {
      %y = braid.exp %x : (tensor<4xf32>) -> tensor<4xf32>
      return %y : tensor<4xf32>
    }"""
    for read in (braid.compile, braid.interpret):
        with pytest.raises(BraidError, match="the module was split into phases"):
            read(text.encode())


def test_a_decision_inside_of_a_loop() -> None:
    text = """(float[N] x, float[1] z, int64 m) => (float[] y) <bool t = {1}> {
      y = Loop (m, t, z) <body = b (int64 i, bool c, float[1] a) => (bool d, float[1] e) {
        d = Identity (c)  n = NonZero (x)  f = Cast <to = 1> (n)
        axes = Constant <value_ints = [0]> ()  s = ReduceSum <keepdims = 0> (f)
        e = Add (a, s) }> }"""
    with pytest.raises(BraidError, match="is computed while the model runs"):
        braid.compile(parsed(text))


@pytest.mark.parametrize("mode", ["reflect", "edge", "wrap"])
def test_widths_of_a_padding_that_repeats(mode: str) -> None:
    text = f"""(float[n] x, int64[1] p) => (float[] y) {{
      q = Abs (p)  z = Concat <axis = 0> (q, q)  y = Pad <mode = "{mode}"> (x, z) }}"""
    message = f"it adds '.*' elements in mode '{mode}', expected a number of them"
    with pytest.raises(BraidError, match=message) as found:
        braid.compile(parsed(text))
    assert "let the widths be constants" in (found.value.hint or "")
