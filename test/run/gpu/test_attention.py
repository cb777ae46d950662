"""Attention by tiles: random shapes, types, masks and shared keys; its code; and mutants."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import bf16, f16, f32

from braid.dialects.braid.attributes import layout_of
from braid.dialects.braid.dtypes import to_numpy
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.normalization import SoftmaxOp
from braid.dialects.braid.regions import FusedOp
from braid.lowering.gpu.contraction.code import Code
from braid.lowering.gpu.kernels.attention import AttentionFamily
from braid.lowering.gpu.kernels.attention_tiles import kernel, weights
from braid.lowering.gpu.launch.gpu_kernel import GpuKernel
from braid.support.errors import BraidError
from braid.targets.kernels.schedules import Entries
from test.run.fallback.conftest import make_group
from test.run.gpu.conftest import check_group, gpu, spilled_bytes
from test.run.gpu.mutants import (
    Mutate,
    with_constant,
    with_property,
    without_barrier,
    without_intrinsic,
)
from test.run.gpu.test_products import tensor
from test.schedules import emitted

ARCHITECTURES = ["sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120"]
SMALL = {"rows": 64, "keys": 32, "stages": 2}


def attention(
    element: Any,
    heads: tuple[int, ...],
    lengths: tuple[int, int],
    widths: tuple[int, int],
    *,
    key_heads: tuple[int, ...] | None = None,
    mask: tuple[int, ...] | None = None,
    scaled: bool = False,
    transposed: bool = False,
    inside: bool = False,
    residual: bool = False,
) -> FusedOp:
    """`lengths` are those of queries and keys, `widths` elements of a key and of a value.

    `mask` are the extents of what is added to scores. Heads lie `inside` tokens, or these in them.
    """
    (queries, keys), (width, value) = lengths, widths
    shared = key_heads or heads
    letters = "abcdef"[: len(heads) + 2]
    layout = letters[:-2] + letters[-1] + letters[-2] if transposed else None
    *outer, head, token, last = letters
    within = "".join((*outer, token, head, last)) if inside else None
    if inside:
        layout = "".join((*outer, last, head, token))
    types = [
        tensor(element, *heads, queries, width, layout=within),
        tensor(element, *shared, width, keys, layout=layout),
        tensor(element, *shared, keys, value, layout=within),
    ]
    if scaled:
        types.append(tensor(element, *(1 for _ in heads), 1, 1))
    if mask is not None:
        types.append(tensor(element, *mask))
    if residual:
        types.append(tensor(element, *heads, queries, value))

    def build(q: Any, k: Any, v: Any, *others: Any) -> Any:
        rest = list(others)
        ops: list[Any] = [MatmulOp.on(q, k, accumulator=None)]
        if scaled:
            ops.append(elementwise("mul", ops[-1], rest.pop(0)))
        if mask is not None:
            ops.append(elementwise("add", ops[-1], rest.pop(0)))
        ops.append(SoftmaxOp.get(ops[-1], len(heads) + 1))
        ops.append(MatmulOp.on(ops[-1], v, accumulator=None))
        if residual:
            ops.append(elementwise("add", ops[-1], rest.pop(0)))
        return ops

    return make_group(types, build, (within,))


@pytest.mark.parametrize("heads", [(3,), (2, 3)])
def test_heads_inside_tokens(heads: tuple[int, ...]) -> None:
    """In the layouts in which products make queries, keys and values, and read the result."""
    one = tuple(1 for _ in heads)
    group = attention(f16, heads, (40, 72), (64, 64), mask=(*one, 40, 72), inside=True)
    found = AttentionFamily(gpu("sm_80")).match(group)
    assert found is not None
    offered = [(*choice.operands[:3], *choice.results) for choice in found.layouts]
    values = (*group.inputs[:3], *group.outputs)
    assert tuple(layout_of(value.type) for value in values) in offered
    check_group(group, emitter(SMALL))


def emitter(
    schedule: Entries | None = None, architecture: str = "sm_80"
) -> Callable[[FusedOp, str], GpuKernel]:
    def emit(group: FusedOp, symbol: str) -> GpuKernel:
        found = AttentionFamily(gpu(architecture)).match(group)
        assert found is not None
        kernel = emitted(found, schedule, symbol=symbol)
        assert isinstance(kernel, GpuKernel)
        # After the entry that finds the keys that masks leave out, if there is one.
        assert kernel.launches.launches[-1].shared_bytes > 1024, "it is not made by tiles"
        return kernel

    return emit


def causal(queries: int, keys: int, left_out: float) -> Any:
    """0 where a query comes behind a key."""
    place = np.arange(queries)[:, None] + keys - queries
    return np.where(np.arange(keys)[None, :] <= place, 0, left_out)


Extents = tuple[int, ...]


def random_forms(
    rng: np.random.Generator, queries: int, keys: int
) -> tuple[Extents, Extents | None, Extents | None]:
    """Heads, heads of keys if several share them, and the shape of a mask, if there is one."""
    heads, key_heads = (
        ((1, 2), None),
        ((2, 1), None),
        ((2, 2, 2), (2, 2, 1)),
        ((3,), None),
        ((1, 3), (1, 1)),
    )[rng.integers(5)]
    one = tuple(1 for _ in heads)
    masks = (None, (*one, queries, keys), (*one, 1, keys), (*heads, queries, keys))
    return heads, key_heads, masks[rng.integers(4)]


def random_causal(rng: np.random.Generator, shape: Extents, element: Any) -> Any:
    """Return a causal mask of this shape, by a low number or by -∞."""
    left_out = float(rng.choice([-1e4, -np.inf]))
    return causal(*shape[-2:], left_out).reshape(shape).astype(to_numpy(element))


def random_attention(seed: int) -> tuple[FusedOp, Entries, dict[int, Any]]:
    rng = np.random.default_rng(seed)
    element = (bf16, f16)[rng.integers(2)]
    queries, keys = (int(n) for n in rng.integers(2, 90, 2))
    width = int(rng.choice([8, 24, 64, 80, 128]))
    heads, key_heads, mask = random_forms(rng, queries, keys)
    scaled, given = bool(rng.integers(2)), dict[int, Any]()
    group = attention(
        element,
        heads,
        (queries, keys),
        (width, width if rng.integers(2) else 32),
        key_heads=key_heads,
        mask=mask,
        scaled=scaled,
        transposed=bool(rng.integers(2)),
        residual=bool(rng.integers(2)),
    )
    if mask == (*(1 for _ in heads), queries, keys) and keys >= queries:
        given[3 + scaled] = random_causal(rng, mask, element)
    schedule = {
        "rows": 64,
        "keys": int(rng.choice([32, 64])),
        "stages": int(rng.integers(1, 3)),
    }
    return group, schedule, given


@pytest.mark.parametrize("seed", [*range(2), 102])
def test_random_attention(seed: int) -> None:
    group, schedule, given = random_attention(seed)
    check_group(group, emitter(schedule), given, seed=seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 300))
def test_many_random_attentions(seed: int) -> None:
    group, schedule, given = random_attention(seed)
    check_group(group, emitter(schedule), given, seed=seed)


@pytest.mark.slow
@pytest.mark.parametrize("width", [64, 128, 256])
def test_every_schedule(width: int) -> None:
    group = attention(bf16, (1, 1), (140, 100), (width, width), transposed=True)
    found = AttentionFamily(gpu("sm_80")).match(group)
    assert found is not None
    schedules = [schedule for level in range(3) for schedule in found.space(level)]
    assert len(schedules) >= 3
    for schedule in schedules:
        check_group(group, emitter(schedule))


@pytest.mark.slow
def test_unaligned_buffers() -> None:
    group = attention(bf16, (1, 2), (40, 30), (24, 40), mask=(1, 1, 40, 30), transposed=True)
    check_group(group, emitter(SMALL), unaligned=True)


def check_wide_scores(emit: Callable[[FusedOp, str], GpuKernel], masked: bool) -> None:
    """Scores of 2048 that differ by 0.5, which f16 cannot tell apart; a mask adds nothing."""
    group = attention(f16, (1,), (64, 64), (64, 64), mask=(1, 1, 64) if masked else None)
    rng = np.random.default_rng(0)
    q, k = np.zeros((1, 64, 64), np.float16), np.zeros((1, 64, 64), np.float16)
    q[..., 0], k[:, 0] = 32, 64
    q[..., 1], k[:, 1] = 1, 0.5 * rng.integers(0, 3, 64)
    v = rng.standard_normal((1, 64, 64)).astype(np.float16)

    def compare(_: FusedOp, inputs: Any, outputs: Any) -> None:
        q, k, v = (array.astype(np.float64) for array in inputs[:3])
        powers = np.exp(q @ k - (q @ k).max(2, keepdims=True))
        np.testing.assert_allclose(
            outputs[0].astype(np.float64), powers / powers.sum(2, keepdims=True) @ v, atol=1e-3
        )

    nothing = np.zeros((1, 1, 64), np.float16)
    check_group(group, emit, {0: q, 1: k, 2: v, 3: nothing}, compare=compare)


@pytest.mark.parametrize("masked", [False, True])
def test_scores_are_not_rounded(masked: bool) -> None:
    check_wide_scores(emitter(SMALL), masked)


def test_what_is_left_to_others() -> None:
    family = AttentionFamily(gpu("sm_80"))
    assert family.match(attention(bf16, (2,), (8, 8), (64, 64))) is not None
    assert family.match(attention(f32, (2,), (8, 8), (64, 64))) is None
    assert family.match(attention(bf16, (2,), (8, 8), (264, 64))) is None


def test_products_of_other_batches_are_left_to_others() -> None:
    """Heads would be rows of scores, and batches of weighted values."""

    def build(q: Any, k: Any, v: Any) -> list[Any]:
        scores = MatmulOp.on(q, k, accumulator=None)
        weights = SoftmaxOp.get(scores, 2)
        return [scores, weights, MatmulOp.on(weights, v, accumulator=None)]

    for keys, values, is_taken in ((1, 1, True), (2, 2, True), (1, 2, False), (2, 1, False)):
        types = [tensor(bf16, 2, 8, 64), tensor(bf16, keys, 64, 8), tensor(bf16, values, 8, 64)]
        found = AttentionFamily(gpu("sm_80")).match(make_group(types, build, ()))
        assert (found is not None) == is_taken


@pytest.mark.parametrize(
    ("architecture", "width"),
    [
        ("sm_80", 128),
        *(
            pytest.param(own, width, marks=pytest.mark.slow)
            for own in ARCHITECTURES
            for width in (64, 128, 256)
        ),
    ],
)
def test_default_schedules_spill_nowhere(architecture: str, width: int) -> None:
    group = attention(bf16, (2, 16), (4096, 4096), (width, width), transposed=True)
    assert spilled_bytes(emitter(None, architecture)(group, "tested"), architecture) == 0


# ---- Mutants ----


def _waits_for_less(patch: pytest.MonkeyPatch) -> None:
    original = kernel._wait
    patch.setattr(kernel, "_wait", lambda code, left: original(code, left + 1))


def _across_two(patch: pytest.MonkeyPatch) -> None:
    """Only two of the four lanes of a row."""
    original = Code.intrinsic

    def shuffled(self: Code, own: str, operands: Any, results: Any) -> Any:
        if "bfly" in own:
            operands = [operands[0], operands[1], self.number(1), operands[3]]
        return original(self, own, operands, results)

    patch.setattr(Code, "intrinsic", shuffled)


def _weights_swapped(patch: pytest.MonkeyPatch) -> None:
    original = kernel.packed
    patch.setattr(kernel, "packed", lambda code, pair, type: original(code, pair[::-1], type))


def _behind_the_end(patch: pytest.MonkeyPatch) -> None:
    """Keys behind the last one take part."""
    original = Code.below
    patch.setattr(
        Code,
        "below",
        lambda self, a, b: original(self, a, b + 8 if isinstance(b, int) else b),
    )


def _swizzle(patch: pytest.MonkeyPatch) -> None:
    original = kernel.Attention._issue

    def issue(self: Any, code: Code, moving: Any, slot: Any, key: Any) -> None:
        original(self, code, moving, code.at(slot, 16), key)

    patch.setattr(kernel.Attention, "_issue", issue)


def _maxima_of_sums(patch: pytest.MonkeyPatch) -> None:
    original = weights.across
    patch.setattr(
        weights, "across", lambda code, value, op: original(code, value, arith.MaximumfOp)
    )


LANDED = "has not landed|no thread of the block has written|race"
MUTANTS: dict[str, tuple[Mutate, str]] = {
    "no wait": (without_intrinsic("llvm.nvvm.cp.async.wait.group"), LANDED),
    "waits for one less": (_waits_for_less, LANDED),
    "no groups": (without_intrinsic("llvm.nvvm.cp.async.commit.group"), LANDED),
    "no wait at the end": (without_intrinsic("llvm.nvvm.cp.async.wait.all"), "landed"),
    "no barrier behind copies": (without_barrier(0), LANDED),
    "no barrier in the loop": (without_barrier(1), LANDED),
    "no barrier behind a tile": (without_barrier(2), LANDED),
    "no barrier before results": (without_barrier(3), LANDED),
    "no barrier behind results": (without_barrier(4), LANDED),
    "maxima of two lanes": (_across_two, "matmul"),
    "maxima for sums": (_maxima_of_sums, "matmul"),
    "weights swapped": (_weights_swapped, "matmul"),
    "keys behind the end": (_behind_the_end, "matmul|offset"),
    "another base": (with_constant(weights, "LOG2_E", 1.0), "matmul"),
    "copies apart": (_swizzle, f"{LANDED}|matmul|offset"),
    "too little memory": (
        with_property(kernel.Attention, "shared_bytes", lambda n: n - 16),
        "offset",
    ),
    "a smaller slot": (
        with_property(kernel.Attention, "_slot_bytes", lambda n: n - 128),
        f"{LANDED}|matmul|offset",
    ),
    "a step less": (with_property(kernel.Attention, "_steps", lambda n: n - 1), "matmul"),
}


@pytest.mark.parametrize(
    "name",
    [
        name if number % 9 == 0 else pytest.param(name, marks=pytest.mark.slow)
        for number, name in enumerate(MUTANTS)
    ],
)
def test_mutants_are_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mutate, reason = MUTANTS[name]
    mutate(monkeypatch)
    group = attention(bf16, (1, 1), (40, 72), (64, 64), transposed=True)
    with pytest.raises((BraidError, AssertionError), match=reason):
        check_group(group, emitter(SMALL))
