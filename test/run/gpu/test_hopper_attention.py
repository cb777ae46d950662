"""Attention by `wgmma`: random shapes, types, masks and shared keys; its code; and mutants."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import bf16, f16

from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.dtypes import to_numpy
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.normalization import SoftmaxOp
from braid.dialects.braid.regions import FusedOp
from braid.lowering.gpu.codegen.compiler import compile_gpu_kernels
from braid.lowering.gpu.codegen.machine_code import assemble, disassemble
from braid.lowering.gpu.contraction.code import Code
from braid.lowering.gpu.kernels.attention_tiles import weights
from braid.lowering.gpu.kernels.hopper import attention as hopper
from braid.lowering.gpu.kernels.hopper import attention_ring, attention_tiles, order, results
from braid.lowering.gpu.kernels.hopper_attention import HopperAttentionFamily
from braid.lowering.gpu.launch.gpu_kernel import GpuKernel
from braid.lowering.host.codegen.target_machine import host_machine
from braid.support.errors import BraidError
from braid.targets.kernels.schedules import Entries
from test.run.fallback.conftest import make_group
from test.run.gpu.conftest import check_group, gpu, hopper_emitter, spilled_bytes
from test.run.gpu.conftest import hopper as hopper_gpu
from test.run.gpu.mutants import Mutate, replaced, with_constant, with_property, without
from test.run.gpu.test_attention import (
    attention,
    check_wide_scores,
    random_causal,
    random_forms,
)
from test.run.gpu.test_masked_attention import check_low_masks, masked_attention, seen_by
from test.run.gpu.test_products import tensor
from test.schedules import emitted

SMALL = {"keys": 64, "groups": 1, "stages": 2, "turns": 0}


def emitter(
    schedule: Entries | None = None, processors: int = 2
) -> Callable[[FusedOp, str], GpuKernel]:
    return hopper_emitter(HopperAttentionFamily, schedule, processors)


def _random_schedule(rng: np.random.Generator, any_keys: bool) -> Entries:
    groups = int(rng.choice([1, 1, 2]))
    return {
        "keys": int(rng.choice([32, 48, 80]) if any_keys else 64),
        "groups": groups,
        "stages": int(rng.integers(2, 4)),
        "turns": int(groups == 2 and rng.integers(2)),
    }


def random_attention(seed: int) -> tuple[FusedOp, Entries, dict[int, Any]]:
    rng = np.random.default_rng(seed)
    element = (bf16, f16)[rng.integers(2)]
    queries = int(rng.integers(33, 200))
    transposed = bool(rng.integers(2))
    keys = int(rng.integers(33, 200)) if transposed else 8 * int(rng.integers(5, 25))
    width = int(rng.choice([40, 64, 80, 128]))
    heads, key_heads, mask = random_forms(rng, queries, keys)
    scaled, given = bool(rng.integers(2)), dict[int, Any]()
    group = attention(
        element,
        heads,
        (queries, keys),
        (width, width if rng.integers(2) else 48),
        key_heads=key_heads,
        mask=mask,
        scaled=scaled,
        transposed=transposed,
        residual=bool(rng.integers(2)),
    )
    if mask == (*(1 for _ in heads), queries, keys) and keys >= queries:
        given[3 + scaled] = random_causal(rng, mask, element)
    return group, _random_schedule(rng, transposed), given


@pytest.mark.parametrize("seed", [*range(4), 107])
def test_random_attention(seed: int) -> None:
    group, schedule, given = random_attention(seed)
    check_group(group, emitter(schedule), given, seed=seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 300))
def test_many_random_attentions(seed: int) -> None:
    group, schedule, given = random_attention(seed)
    check_group(group, emitter(schedule), given, seed=seed)


@pytest.mark.parametrize(
    "seed", [*range(2), *(pytest.param(n, marks=pytest.mark.slow) for n in range(2, 60))]
)
def test_random_masks(seed: int) -> None:
    """Tiles that a mask leaves out are skipped by those that copy and those that multiply."""
    rng = np.random.default_rng(seed)
    element = (bf16, f16)[rng.integers(2)]
    form = ("added", "seen", "left out")[seed % 3]
    kind = ("causal", "window", "lengths", "scattered")[rng.integers(4)]
    queries = int(rng.integers(33, 190))
    keys = int(rng.integers(max(queries, 160), 330))
    seen = seen_by(kind, queries, keys, rng)
    given = {"added": np.where(seen, 0, -np.inf), "seen": seen, "left out": ~seen}[form]
    group = masked_attention(element, queries, keys, seen.shape, form, bool(rng.integers(2)))
    dtype = to_numpy(element) if form == "added" else bool
    schedule = {**_random_schedule(rng, True), "keys": 48}
    kernel = check_group(group, emitter(schedule), {3: given.astype(dtype)}, seed=seed)
    assert len(kernel.launches.launches) == 2


def _scaled(factor: float) -> FusedOp:
    types = [tensor(f16, 2, 70, 64), tensor(f16, 2, 64, 136), tensor(f16, 2, 136, 64)]

    def build(q: Any, k: Any, v: Any) -> Any:
        scores = MatmulOp.on(q, k, accumulator=None)
        constant = ConstantOp.of(np.full((1, 1, 1), factor, np.float16))
        scaled = elementwise("mul", scores, constant)
        softmax = SoftmaxOp.get(scaled, 2)
        return [scores, constant, scaled, softmax, MatmulOp.on(softmax, v, accumulator=None)]

    return make_group(types, build, ())


@pytest.mark.parametrize("factor", [0.125, pytest.param(-0.25, marks=pytest.mark.slow)])
def test_scores_with_a_constant_scale(factor: float) -> None:
    """A positive one is part of the exponent's scale."""
    check_group(_scaled(factor), emitter(SMALL))


@pytest.mark.slow
def test_growing_maxima() -> None:
    """Later tiles of keys have by far the largest scores, and earlier ones: sums are scaled."""
    group = attention(f16, (1,), (64, 320), (64, 64))
    rng = np.random.default_rng(0)
    q = np.abs(rng.standard_normal((1, 64, 64))).astype(np.float16)
    k = np.abs(rng.standard_normal((1, 64, 320))).astype(np.float16)
    for order_ in (1, -1):
        grown = k * np.linspace(0.02, 1.2, 320)[::order_].astype(np.float16)
        check_group(group, emitter(SMALL), {0: q, 1: grown})


@pytest.mark.slow
@pytest.mark.parametrize("width", [64, 128, 256])
def test_every_schedule(width: int) -> None:
    group = attention(bf16, (1, 1), (140, 200), (width, width))
    found = HopperAttentionFamily(hopper_gpu()).match(group)
    assert found is not None
    schedules = [schedule for level in range(3) for schedule in found.space(level)]
    assert len(schedules) >= 2
    for schedule in schedules:
        check_group(group, emitter(schedule))


def test_unaligned_buffers() -> None:
    group = attention(bf16, (1, 2), (70, 40), (40, 48), mask=(1, 1, 70, 40), transposed=True)
    check_group(group, emitter({**SMALL, "keys": 32}), unaligned=True)


@pytest.mark.parametrize("masked", [False, True])
def test_scores_are_not_rounded(masked: bool) -> None:
    check_wide_scores(emitter(SMALL), masked)


def test_masks_of_the_lowest_number() -> None:
    check_low_masks(emitter(SMALL))


def test_what_is_left_to_others() -> None:
    family = HopperAttentionFamily(hopper_gpu())
    assert family.match(attention(bf16, (2,), (64, 64), (64, 64))) is not None
    assert family.match(attention(bf16, (2,), (1, 64), (64, 64))) is None
    assert family.match(attention(bf16, (2,), (64, 64), (60, 64))) is None
    other = HopperAttentionFamily(gpu("sm_80"))
    assert other.match(attention(bf16, (2,), (64, 64), (64, 64))) is None


def test_keys_whose_lines_are_not_aligned_are_transposed() -> None:
    found = HopperAttentionFamily(hopper_gpu()).match(attention(bf16, (2,), (64, 67), (64, 64)))
    assert found is not None
    assert [choice.operands[1].tag for choice in found.layouts] == ["acb", "cab"]


@pytest.mark.parametrize("heads", [(3,), pytest.param((2, 3), marks=pytest.mark.slow)])
def test_heads_inside_tokens(heads: tuple[int, ...]) -> None:
    """In the layouts in which products make queries, keys and values, and read the result; keys by
    elements."""
    one = tuple(1 for _ in heads)
    group = attention(f16, heads, (70, 75), (64, 40), mask=(*one, 70, 75), inside=True)
    check_group(group, emitter({**SMALL, "keys": 48}))


def _main_loop(sass: str) -> list[str]:
    """Return the instructions of the shortest loop with products and powers."""
    lines: list[str] = []
    labels: dict[str, int] = {}
    loops: list[list[str]] = []
    for line in sass.splitlines():
        if (label := re.match(r"\s*(\.L_x_\d+):", line)) is not None:
            labels[label[1]] = len(lines)
        elif (code := re.match(r"\s+/\*[0-9a-f]{4,}\*/\s+(.*?);?\s*$", line)) is not None:
            lines.append(code[1])
            back = re.search(r"BRA.*`\((\.L_x_\d+)\)", code[1])
            if back is not None and back[1] in labels:
                loops.append(lines[labels[back[1]] :])
    return min(
        (own for own in loops if sum("HGMMA" in one for one in own) > 8 and _powers(own)), key=len
    )


def _powers(lines: list[str]) -> int:
    return sum("MUFU.EX2" in line for line in lines)


@pytest.mark.parametrize(
    ("transposed", "schedule"),
    [
        (False, None),
        *(
            pytest.param(own, {**SMALL, "keys": keys, "groups": 2, "turns": turns}, marks=slow)
            for slow in [pytest.mark.slow]
            for own, keys, turns in ((True, 128, 0), (True, 160, 1), (False, 128, 1))
        ),
    ],
)
def test_main_loop(transposed: bool, schedule: Entries | None) -> None:
    """Weights are computed while values of the tile before are multiplied, and nothing spills."""
    group = attention(f16, (32,), (4096, 4096), (128, 128), transposed=transposed)
    made = emitter(schedule, 132)(group, "tested")
    (code,) = compile_gpu_kernels([made], hopper_gpu(132), host_machine(), jobs=1)
    assembled = assemble(code.ptx, "sm_90a")
    assert {used.spilled_bytes for used in assembled.resources.values()} == {0}
    assert not assembled.warnings
    loop = _main_loop(disassemble(assembled.code))
    waits = [n for n, line in enumerate(loop) if "WARPGROUP.DEPBAR" in line]
    assert len(waits) == 2
    # One is the power of how much maxima have grown, in the rows of a thread.
    assert _powers(loop[waits[0] : waits[1]]) >= _powers(loop) - 2
    assert not any(line.split()[0].startswith(("LDS", "LDL", "LDG", "STL")) for line in loop)


@pytest.mark.slow
@pytest.mark.parametrize("width", [64, 128, 256])
def test_schedules_spill_nowhere(width: int) -> None:
    group = attention(bf16, (16,), (4096, 4096), (width, width), mask=(1, 4096, 4096))
    found = HopperAttentionFamily(hopper_gpu(132)).match(group)
    assert found is not None
    for schedule in [*found.space(0), *found.space(1)]:
        assert spilled_bytes(emitted(found, schedule, symbol="tested"), "sm_90a") == 0, schedule


# ---- Mutants ----


def _waits(of: int, change: int) -> Mutate:
    """Let a wait for all but `of` groups of products leave others."""
    original = hopper.wait_for_products

    def changed(code: Code, left: int, sums: Any) -> Any:
        return original(code, left + change if left == of else left, sums)

    return lambda patch: patch.setattr(hopper, "wait_for_products", changed)


def _no_release(which: bool) -> Mutate:
    """Stages of keys, or of values, are given back before products have read them."""
    original = hopper._Group._release

    def patched(patch: pytest.MonkeyPatch) -> None:
        scores, values = hopper._Group._scores, hopper._Group._add_values

        def release(self: Any, code: Code, of_values: bool, stage: Any) -> None:
            if of_values != which:
                original(self, code, of_values, stage)

        def early(self: Any, code: Code, stage: Any, *rest: Any) -> Any:
            made = (values if which else scores)(self, code, stage, *rest)
            original(self, code, which, stage)
            return made

        patch.setattr(hopper._Group, "_release", release)
        patch.setattr(hopper._Group, "_add_values" if which else "_scores", early)

    return patched


def _packed_the_other_way(patch: pytest.MonkeyPatch) -> None:
    original = hopper.packed
    patch.setattr(hopper, "packed", lambda code, pair, type: original(code, pair[::-1], type))


def _always_the_same_stage(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        attention_ring.AttentionRing, "following", lambda self, code, stage, parity: (stage, parity)
    )


def _no_waits(patch: pytest.MonkeyPatch) -> None:
    for module in (attention_ring, hopper):
        patch.setattr(module, "wait", lambda code, barrier, parity: None)


def _never_scaled(patch: pytest.MonkeyPatch) -> None:
    original = weights.RunningWeights.after

    def after(self: Any, code: Code, scores: Any, factor: float = 1.0) -> Any:
        running, own, scales = original(self, code, scores, factor)
        return running, own, [code.number(1, scale.type) for scale in scales]

    patch.setattr(weights.RunningWeights, "after", after)


def _behind_the_end(patch: pytest.MonkeyPatch) -> None:
    """Keys behind the last one take part."""
    original = hopper._Group._elementwise

    def every(self: Any, code: Code, sums: Any, place: Any, tile: Any, tail: bool) -> Any:
        return original(self, code, sums, place, tile, False)

    patch.setattr(hopper._Group, "_elementwise", every)


def _of_one_lane(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(weights, "across", lambda code, value, op: value)


MUTANTS: dict[str, tuple[Mutate, str]] = {
    "no mbarriers": (without("mbarrier.init"), "not initialized"),
    "mbarriers not fenced": (without("fence.mbarrier_init"), "without a fence"),
    "no arrivals": (without("mbarrier.arrive.shared"), "waits at mbarrier"),
    "no bytes expected": (without("mbarrier.arrive.expect_tx"), "waits at mbarrier"),
    "no waits": (_no_waits, "landed|race|already|not initialized"),
    "always the same stage": (_always_the_same_stage, "race|waits at|already|matmul"),
    "no fence of registers": (without("wgmma.fence"), "without wgmma.fence"),
    "no groups of products": (without("wgmma.commit_group"), "matmul|race|nan"),
    "no waits for products": (without("wgmma.wait_group"), "matmul|race|nan"),
    "scores not waited for": (_waits(1, 1), "matmul|race|nan"),
    "values not waited for": (_waits(0, 1), "matmul|race|nan"),
    "keys given back early": (_no_release(False), "race: writes .* wgmma"),
    "values given back early": (_no_release(True), "race: writes .* wgmma"),
    "weights swapped": (_packed_the_other_way, "matmul"),
    "scores added to others": (replaced("p, 0, 0;", "p, 1, 0;"), "matmul|nan|without wgmma"),
    "values by columns": (replaced("1, 1, 1; }", "1, 1, 0; }"), "matmul|not in shared|landed"),
    "keys by columns": (replaced("1, 1, 0, 1; }", "1, 1, 0, 0; }"), "matmul|not in shared|landed"),
    "sums not scaled": (_never_scaled, "matmul"),
    "keys behind the end": (_behind_the_end, "matmul"),
    "maxima of one lane": (_of_one_lane, "matmul"),
    "another base": (with_constant(weights, "LOG2_E", 1.0), "matmul"),
    "a tile of queries less": (
        lambda patch: patch.setattr(
            order.Order,
            "tiles",
            property(lambda self: self.batches * self.row_tiles * self.column_tiles - 1),
        ),
        "matmul",
    ),
    "too little memory": (
        with_property(attention_tiles.AttentionTiles, "barrier_start", lambda n: n - 4096),
        "mbarrier|race|at offset",
    ),
    "values over keys": (
        with_property(attention_tiles.AttentionTiles, "value_start", lambda n: n - 1024),
        "race|matmul|landed",
    ),
    "results not fenced": (without("fence.proxy.async"), "without fence.proxy.async"),
    "results not waited for": (
        lambda patch: patch.setattr(results, "_wait_for_slot", lambda code, lane, left: None),
        "race: writes .* store of a tensor",
    ),
}


@pytest.mark.parametrize(
    "name",
    [
        name if number % 8 == 0 else pytest.param(name, marks=pytest.mark.slow)
        for number, name in enumerate(MUTANTS)
    ],
)
def test_mutants_are_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mutate, reason = MUTANTS[name]
    mutate(monkeypatch)
    group = attention(bf16, (1, 3), (100, 232), (64, 64))
    rng = np.random.default_rng(0)
    # Maxima grow from the last tile of keys to the first by more than what is let pass.
    keys = (rng.uniform(0, 1, (1, 3, 64, 232)) * np.linspace(2, 0.1, 232)).astype(to_numpy(bf16))
    queries = rng.uniform(0, 1, (1, 3, 100, 64)).astype(to_numpy(bf16))
    queries[:, :, 50:] *= -1  # scores below those of keys behind the end
    with pytest.raises((BraidError, AssertionError), match=reason):
        check_group(group, emitter(SMALL, 1), {0: queries, 1: keys})
