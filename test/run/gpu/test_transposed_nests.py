"""Transposed operands on GPUs: random orders of dims, types and tails; wide accesses; mutants."""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import TensorType, bf16, f16, f32, f64, i8
from xdsl.dialects.gpu import FuncOp

from braid.dialects.braid.attributes import with_layout
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.movement import TransposeOp
from braid.dialects.braid.regions import FusedOp
from braid.lowering.gpu.codegen.compiler import compile_gpu_kernels
from braid.lowering.gpu.fallback.emit_fallback import emit_fallback
from braid.lowering.gpu.nests import transposed_nest
from braid.lowering.gpu.nests.transposed_nest import TransposedNest
from braid.lowering.host.codegen.target_machine import host_machine
from braid.support.errors import BraidError
from test.run.fallback.conftest import make_group
from test.run.gpu.conftest import check_group, conflicts, gpu, spilled_bytes

TYPES = (f32, bf16, f16, f64, i8)


def _slow(value: Any) -> Any:
    return pytest.param(value, marks=pytest.mark.slow)


def transposed(element: Any, shape: tuple[int, ...], order: tuple[int, ...]) -> FusedOp:
    def build(x: Any) -> Any:
        first = TransposeOp.get(x, order)
        return [first, elementwise("abs", first)] if element != i8 else [first]

    return make_group([TensorType(element, shape)], build, ())


def random_group(seed: int) -> FusedOp:
    rng = np.random.default_rng(seed)
    element = TYPES[rng.integers(len(TYPES))]
    rank = int(rng.integers(2, 5))
    most = {2: 120, 3: 40, 4: 16}[rank]
    sizes = rng.choice([1, 2, 4, 8, 16, 24, 32], rank)
    odd = rng.integers(1, most, rank)
    shape = [
        int(min(s, most)) if rng.integers(3) else int(o) for s, o in zip(sizes, odd, strict=True)
    ]
    return transposed(element, tuple(shape), tuple(int(n) for n in rng.permutation(rank)))


@pytest.mark.parametrize("seed", range(6))
def test_random_orders(seed: int) -> None:
    check_group(random_group(seed), emit_fallback, seed=seed)


@pytest.mark.parametrize(
    "architecture", [_slow("sm_80"), _slow("sm_89"), "sm_90a", _slow("sm_100a"), _slow("sm_120")]
)
@pytest.mark.parametrize("function", ["abs", _slow("tanh"), _slow("erf")])
@pytest.mark.parametrize("element", [f16, _slow(bf16), _slow(f32), _slow(f64)], ids=str)
def test_what_is_computed_spills_nowhere(element: Any, function: str, architecture: str) -> None:
    def build(x: Any) -> Any:
        first = TransposeOp.get(x, (1, 0))
        return [first, elementwise(function, first)]

    group = make_group([TensorType(element, (1024, 2048))], build, ())
    assert spilled_bytes(emit_fallback(group, "tested"), architecture) == 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 300))
def test_two_hundred_random_orders(seed: int) -> None:
    check_group(random_group(seed), emit_fallback, seed=seed, unaligned=seed % 5 == 0)


@pytest.mark.parametrize("unaligned", [False, True])
def test_channels_last(unaligned: bool) -> None:
    """Channels-first becomes channels-last: a change of layouts is a transposition."""
    group = make_group(
        [TensorType(bf16, (2, 24, 8, 8))], lambda x: [elementwise("abs", x)], ("acdb",)
    )
    check_group(group, emit_fallback, unaligned=unaligned)


@pytest.mark.parametrize(("element", "width"), [(f32, 4), (bf16, 8), (i8, 16)], ids=str)
def test_accesses_are_wide_on_both_sides(element: Any, width: int) -> None:
    """As many of 16 bytes as a block has rows and columns, and no more narrow ones than one."""
    kernel = emit_fallback(transposed(element, (128, 256), (1, 0)), "tested")
    (code,) = compile_gpu_kernels([kernel], gpu("sm_80"), host_machine(), jobs=1)
    text = code.ptx.decode()
    for kind in ("ld", "st"):
        accesses = re.findall(rf"{kind}\.global\.(?:nc\.)?(\S+)", text)
        wide = sum(own in ("v4.b32", "v2.b64") for own in accesses)
        assert wide == width, accesses
        # Of buffers that begin anywhere.
        assert len(accesses) > wide


@pytest.mark.parametrize("unaligned", [False, True])
def test_sides_of_other_widths(unaligned: bool) -> None:
    """Points that no 16 bytes hold whole numbers of: channels are read 8 at once, and 4 written."""
    type = with_layout(TensorType(bf16, (2, 24, 6, 6)), Layout.parse("acdb"))
    group = make_group([type], lambda x: [elementwise("abs", x)], ("abcd",))
    kernel = check_group(group, emit_fallback, unaligned=unaligned)
    (code,) = compile_gpu_kernels([kernel], gpu("sm_80"), host_machine(), jobs=1)
    accesses = re.findall(
        r"(ld|st)\.global\.(?:nc\.)?(v4\.b32|v4\.b16|v2\.b32|b64)", code.ptx.decode()
    )
    assert [kind for kind, _ in accesses].count("ld") == 4
    assert [kind for kind, _ in accesses].count("st") == 8


@pytest.mark.parametrize("layout", ["ba", "ab"])
def test_only_where_dims_differ(layout: str) -> None:
    type = with_layout(TensorType(f32, (64, 64)), Layout.parse(layout))
    group = make_group([type], lambda x: [elementwise("abs", x)], ("ab",))
    module = emit_fallback(group, "tested").module
    usual = str(next(op for op in module.walk() if isinstance(op, FuncOp)))
    blocks = len(re.findall(r"vector\.load", usual))
    # Bytes of the operand, and of the exchange between threads.
    assert blocks == (4 + 4 if layout == "ba" else 1)


@pytest.mark.parametrize("element", [f32, bf16, i8], ids=str)
def test_no_bank_conflicts(element: Any) -> None:
    conflicts()
    check_group(transposed(element, (128, 272), (1, 0)), emit_fallback)
    assert conflicts() == 0


# ---- Mutants ----


def _one_more(patch: pytest.MonkeyPatch) -> None:
    original = transposed_nest._index_plus
    patch.setattr(
        transposed_nest,
        "_index_plus",
        lambda b, index, n: original(b, index, n + 1 if n == 1 else n),
    )


def _no_transposition(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(transposed_nest, "element_of", lambda b, row, n: _element(b, row, 0))


_element = transposed_nest.element_of


def _too_wide(patch: pytest.MonkeyPatch) -> None:
    """Blocks as wide as an access where extents are not."""
    original = TransposedNest.of

    def of(own: Any) -> Any:
        found = original(own)
        assert found is not None
        reading, writing = found.widths
        return replace(found, widths=(reading * 2, writing * 2))

    patch.setattr(TransposedNest, "of", of)


def _no_barrier(patch: pytest.MonkeyPatch) -> None:
    """Threads read elements that others write to shared memory, perhaps later."""
    nothing = partial(arith.ConstantOp.from_int_and_width, 0, 32)
    patch.setattr(transposed_nest.gpu, "BarrierOp", nothing)


def _unturned(patch: pytest.MonkeyPatch) -> None:
    """Lines of shared memory are read as if each began with the first access."""
    original = TransposedNest._place_in_shared

    def place(self: TransposedNest, builder: Any, index: Any, own: Any) -> Any:
        banks = transposed_nest._BANKS if calls.pop() else 1
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(transposed_nest, "_BANKS", banks)
            return original(self, builder, index, own)

    calls = [True, False, True]
    patch.setattr(TransposedNest, "_place_in_shared", place)


MUTANTS = [_one_more, _no_transposition, _too_wide, _no_barrier, _unturned]


@pytest.mark.parametrize("mutate", MUTANTS)
def test_mutants_are_caught(
    mutate: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutate(monkeypatch)
    with pytest.raises((BraidError, AssertionError)):
        check_group(transposed(f32, (18, 22), (1, 0)), emit_fallback)
