"""Attention whose masks leave out whole tiles of keys: they are neither copied nor multiplied."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from xdsl.dialects import arith
from xdsl.dialects.builtin import bf16, f16, i1

import braid
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.dtypes import to_numpy
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.normalization import SoftmaxOp
from braid.dialects.braid.regions import FusedOp
from braid.lowering.gpu.contraction.code import Code
from braid.lowering.gpu.kernels.attention import AttentionFamily
from braid.lowering.gpu.kernels.attention_tiles import key_ranges
from braid.lowering.gpu.kernels.attention_tiles.key_ranges import KeyRanges
from braid.lowering.gpu.launch.gpu_kernel import GpuKernel
from braid.runtime.artifact import read_artifact
from braid.support.errors import BraidError
from braid.targets.kernels.schedules import Entries
from test.run.fallback.conftest import make_group
from test.run.gpu.conftest import check_group, gpu, moved_bytes, spilled_bytes
from test.run.gpu.test_attention import ARCHITECTURES
from test.run.gpu.test_products import tensor
from test.schedules import emitted

BATCHES, HEADS, WIDTH = 2, 2, 64
ROWS, KEYS = 64, 32
"""Of a tile."""
SMALL: Entries = {"rows": ROWS, "keys": KEYS, "stages": 2}


def seen_by(mask: str, queries: int, keys: int, rng: np.random.Generator) -> Any:
    """Which keys each query of each batch sees, at least one: (batches, 1, queries, keys)."""
    query, key = np.arange(queries)[:, None] + keys - queries, np.arange(keys)[None, :]
    if mask == "causal":
        seen = key <= query
    elif mask == "window":
        seen = (key <= query) & (key > query - 40)
    elif mask == "scattered":
        seen = (rng.integers(0, 40, (queries, keys)) == 0) | (key == query // 2)
    else:
        lengths = rng.integers(1, keys + 1, (BATCHES, 1, 1, 1))
        return np.broadcast_to(key < lengths, (BATCHES, 1, 1, keys))
    return seen[None, None]


def masked_attention(
    element: Any, queries: int, keys: int, mask: tuple[int, ...], form: str, scaled: bool
) -> FusedOp:
    """`form` says whether the mask is added, or selects -∞ where it is false or true."""
    selected = form != "added"
    types = [
        tensor(element, BATCHES, HEADS, queries, WIDTH),
        tensor(element, BATCHES, HEADS, WIDTH, keys, layout="abdc"),
        tensor(element, BATCHES, HEADS, keys, WIDTH),
        tensor(i1 if selected else element, *mask),
    ]

    def build(q: Any, k: Any, v: Any, m: Any) -> Any:
        ops: list[Any] = []

        def constant(value: float) -> Any:
            ops.append(ConstantOp.of(np.full((1, 1, 1, 1), value, to_numpy(element))))
            return ops[-1]

        ops.append(MatmulOp.on(q, k, accumulator=None))
        scores = ops[-1]
        if scaled:
            factor = constant(0.25)
            ops.append(elementwise("mul", scores, factor))
            scores = ops[-1]
        if selected:
            least = constant(-np.inf)
            branches = (scores, least) if form == "seen" else (least, scores)
            ops.append(elementwise("select", m, *branches))
        else:
            ops.append(elementwise("add", m, scores))
        ops.append(SoftmaxOp.get(ops[-1], 3))
        ops.append(MatmulOp.on(ops[-1], v, accumulator=None))
        return ops

    return make_group(types, build, ())


def random_masked(seed: int) -> tuple[FusedOp, Entries, dict[int, Any]]:
    rng = np.random.default_rng(seed)
    element = (bf16, f16)[rng.integers(2)]
    form = ("added", "seen", "left out")[seed % 3]
    kind = ("causal", "window", "lengths", "scattered")[rng.integers(4)]
    stages = int(rng.integers(1, 3))
    queries = int(rng.integers(1, 150))
    keys = int(rng.integers(max(queries, 3 * KEYS), 260))
    seen = seen_by(kind, queries, keys, rng)
    given = {"added": np.where(seen, 0, -np.inf), "seen": seen, "left out": ~seen}[form]
    group = masked_attention(element, queries, keys, seen.shape, form, bool(rng.integers(2)))
    dtype = to_numpy(element) if form == "added" else bool
    return group, {**SMALL, "stages": stages}, {3: given.astype(dtype)}


@pytest.mark.parametrize(
    "seed", [*range(3), *(pytest.param(n, marks=pytest.mark.slow) for n in range(3, 203))]
)
def test_random_masks(seed: int) -> None:
    group, schedule, given = random_masked(seed)
    kernel = check_group(group, _ranged(schedule), given, seed=seed)
    assert len(kernel.launches.launches) == 2


def _ranged(schedule: Entries) -> Callable[[FusedOp, str], GpuKernel]:
    """Emit a kernel that may have an entry before that of attention."""

    def emit(group: FusedOp, symbol: str) -> GpuKernel:
        found = AttentionFamily(gpu("sm_80")).match(group)
        assert found is not None
        kernel = emitted(found, schedule, symbol=symbol)
        assert isinstance(kernel, GpuKernel)
        return kernel

    return emit


@pytest.mark.parametrize("kind", ["causal", "window", "lengths"])
def test_tiles_that_are_left_out_are_not_read(kind: str) -> None:
    """Each block copies the tiles that it sees, the last one once more."""
    queries = keys = 256
    seen = seen_by(kind, queries, keys, np.random.default_rng(1))
    group = masked_attention(f16, queries, keys, seen.shape, "seen", False)
    check_group(group, _ranged(SMALL), {3: seen})
    rows = np.broadcast_to(seen, (BATCHES, 1, queries, keys)).reshape(BATCHES, -1, ROWS, keys)
    columns = rows.any(2)
    first, end = columns.argmax(-1) // KEYS, -(-(keys - columns[..., ::-1].argmax(-1)) // KEYS)
    copied = HEADS * (end - first + 1).sum() * KEYS * WIDTH * 2
    _, of_keys, of_values, *_ = moved_bytes()
    assert of_keys == of_values == copied
    assert copied < 0.8 * BATCHES * HEADS * queries // ROWS * (keys + KEYS) * WIDTH * 2


def test_few_tiles_need_no_entry() -> None:
    short = masked_attention(f16, 64, 2 * KEYS, (1, 1, 64, 2 * KEYS), "added", False)
    assert len(_ranged(SMALL)(short, "tested").launches.launches) == 1


def test_nothing_of_a_row_is_seen() -> None:
    """As in a plain softmax of -∞ alone, the result is NaN; tiles of other rows are right."""
    queries, keys = 128, 128
    seen = np.ones((1, 1, queries, keys), bool)
    seen[0, 0, :ROWS] = False
    group = masked_attention(f16, queries, keys, seen.shape, "seen", False)

    def compare(_: FusedOp, inputs: Any, outputs: Any) -> None:
        (result,) = outputs
        assert np.isnan(result[:, :, :ROWS]).all() and np.isfinite(result[:, :, ROWS:]).all()

    check_group(group, _ranged(SMALL), {3: seen}, compare=compare)


def check_low_masks(emit: Callable[[FusedOp, str], GpuKernel], unaligned: bool = False) -> None:
    """Check that the lowest number, where a tile of keys or all keys have no other, is not -∞."""
    queries, keys = 64, 200
    query, key = np.arange(queries)[:, None], np.arange(keys)[None, :]
    seen = np.where(query < 32, key >= 130, key <= query)
    seen[5] = seen[40] = False
    # Each would be finite and far from 0 beside the rounded logarithm of itself.
    lowest = np.array([-1e10, -3.38e38])[query % 2]
    mask = np.where(seen, 0, lowest)[None, None].astype(to_numpy(bf16))
    group = masked_attention(bf16, queries, keys, mask.shape, "added", True)

    def compare(_: FusedOp, inputs: Any, outputs: Any) -> None:
        q, k, v, m = (np.asarray(own, np.float32) for own in inputs)
        scores = 0.25 * (q @ k) + m
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        expected = weights / weights.sum(-1, keepdims=True) @ v
        found = np.asarray(outputs[0], np.float32)
        np.testing.assert_allclose(found, expected, rtol=0.02, atol=0.02)

    check_group(group, emit, {3: mask}, unaligned=unaligned, compare=compare)


@pytest.mark.parametrize("unaligned", [False, True])
def test_masks_of_the_lowest_number(unaligned: bool) -> None:
    check_low_masks(_ranged(SMALL), unaligned)


# ---- Models ----


def attention_model(lengths: bool, causal: bool, opset: int, heads: int) -> onnx.ModelProto:
    def info(name: str, type: int, *shape: int) -> Any:
        return helper.make_tensor_value_info(name, type, shape)

    f16_type = TensorProto.FLOAT16
    inputs = [info("q", f16_type, 2, 4, 256, 64)]
    inputs += [info(name, f16_type, 2, heads, 256, 64) for name in "kv"]
    names = ["q", "k", "v"]
    if lengths:
        inputs.append(info("n", TensorProto.INT64, 2))
        names += ["", "", "", "n"]
    node = helper.make_node("Attention", names, ["y"], is_causal=int(causal))
    graph = helper.make_graph([node], "g", inputs, [info("y", f16_type, 2, 4, 256, 64)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=11)


def _kernels_by_tiles(path: Path) -> list[str]:
    """Layouts of a model that hold tiles in shared memory, as every product does."""
    artifact = read_artifact(path)
    kinds = [code.kind for code in artifact.manifest.devices]
    launches = artifact.device_code[kinds.index("gpu-launches-sm_80")].tobytes()
    return [
        kernel["symbol"]
        for kernel in json.loads(launches)
        if any(launch["shared_bytes"] > 1024 for launch in kernel["launches"])
    ]


@pytest.mark.parametrize(
    ("lengths", "causal", "opset", "heads"),
    [
        (False, True, 23, 2),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in ((True, False, 24, 4), (False, True, 24, 4), (False, False, 23, 1))
        ),
    ],
)
def test_attention_of_onnx_is_one_kernel(
    lengths: bool, causal: bool, opset: int, heads: int, tmp_path: Path
) -> None:
    """However it masks; rows that see nothing are zeros."""
    model = attention_model(lengths, causal, opset, heads)
    rng = np.random.default_rng(0)
    inputs = {
        own.name: rng.standard_normal([d.dim_value for d in own.type.tensor_type.shape.dim]).astype(
            np.float16
        )
        for own in model.graph.input
        if own.name != "n"
    }
    if lengths:
        inputs["n"] = np.array([256, 40])
    compiled = braid.compile(model, target="gpu-emulated")
    compiled.save(tmp_path / "model.braid")
    assert len(_kernels_by_tiles(tmp_path / "model.braid")) == 1
    result = compiled.run_named(inputs)["y"]
    expected = braid.interpret(model).run_named(inputs)["y"].astype(np.float64)
    assert np.abs(result - expected).max() <= 4e-3 * np.abs(expected).max()


def test_products_of_other_attentions_are_made_by_tiles(tmp_path: Path) -> None:
    """No kernel takes a whole row of one in f32."""
    q, k = "tensor<2x512x64xf32>", "tensor<2x64x512xf32>"
    scores = "tensor<2x512x512xf32>"
    text = f"""func.func @main(%q: {q}, %k: {k}, %v: {q}) -> {q} {{
      %s = braid.matmul %q, %k : ({q}, {k}) -> {scores}
      %p = braid.softmax %s {{dim = 2 : i64}} : ({scores}) -> {scores}
      %y = braid.matmul %p, %v : ({scores}, {q}) -> {q}
      func.return %y : {q} }}"""
    braid.compile(text.encode(), target="gpu-emulated", load=False).save(tmp_path / "model.braid")
    assert len(_kernels_by_tiles(tmp_path / "model.braid")) == 2


# ---- Mutants ----

Mutate = Callable[[pytest.MonkeyPatch], None]


def _changed(name: str, change: Callable[[Any], Any]) -> Mutate:
    """Another result of a function of `key_ranges`."""
    original = getattr(key_ranges, name)
    return lambda patch: patch.setattr(key_ranges, name, lambda *given: change(original(*given)))


def _no_barrier(patch: pytest.MonkeyPatch) -> None:
    original = KeyRanges._of_block

    def without(self: Any, code: Code, *rest: Any) -> Any:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(Code, "barrier", lambda _: None)
            return original(self, code, *rest)

    patch.setattr(KeyRanges, "_of_block", without)


def _one_tile_less(patch: pytest.MonkeyPatch) -> None:
    original = KeyRanges.load

    def load(self: Any, code: Code, *rest: Any) -> list[Any]:
        begin, end = original(self, code, *rest)
        return [begin, code.insert(arith.SubiOp(end, code.number(1)))]

    patch.setattr(KeyRanges, "load", load)


def _of_another_batch(patch: pytest.MonkeyPatch) -> None:
    original = KeyRanges.load
    patch.setattr(
        KeyRanges,
        "load",
        lambda self, code, scratch, batch, tile: original(
            self, code, scratch, code.number(0), tile
        ),
    )


MUTANTS: dict[str, tuple[Mutate, str]] = {
    "no barrier between warps": (_no_barrier, "race|no thread of the block has written"),
    "a tile less": (_one_tile_less, "matmul"),
    "ranges of the first batch": (_of_another_batch, "matmul"),
    "lanes are not joined": (
        lambda patch: patch.setattr(key_ranges, "_across_warp", lambda _, pair: pair),
        "matmul",
    ),
    "minima of ends": (_changed("_joined", lambda pair: [pair[0], pair[0]]), "matmul"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutants_are_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mutate, reason = MUTANTS[name]
    mutate(monkeypatch)
    key = np.arange(128)
    seen = (key >= 40) & (key < np.array([70, 128]).reshape(2, 1, 1, 1))
    group = masked_attention(f16, 70, 128, seen.shape, "seen", False)
    with pytest.raises((BraidError, AssertionError), match=reason):
        check_group(group, _ranged(SMALL), {3: seen})


@pytest.mark.parametrize(
    "architecture",
    ["sm_80", *(pytest.param(own, marks=pytest.mark.slow) for own in ARCHITECTURES[1:])],
)
def test_default_schedules_spill_nowhere(architecture: str) -> None:
    group = masked_attention(bf16, 2048, 2048, (1, 1, 2048, 2048), "added", True)
    found = AttentionFamily(gpu(architecture)).match(group)
    assert found is not None
    kernel = found.emit("tested", next(found.space(0)))
    assert spilled_bytes(kernel, architecture) == 0
