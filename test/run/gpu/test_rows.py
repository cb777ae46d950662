"""Softmax, normalizations and reductions in one pass: random shapes, their code, and mutants."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import TensorType, bf16, f16, f32, f64, i8, i32, i64

from braid.dialects.braid.arg_reduction import ArgReduceOp
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.movement import ReshapeOp
from braid.dialects.braid.normalization import LayerNormOp, SoftmaxOp
from braid.dialects.braid.reduction import ReduceOp
from braid.lowering.gpu.codegen.compiler import compile_gpu_kernels
from braid.lowering.gpu.codegen.machine_code import assemble
from braid.lowering.gpu.fallback.emit_fallback import emit_fallback
from braid.lowering.gpu.nests import emit_rows, row_program
from braid.lowering.gpu.nests.row_program import ROWS_PER_BLOCK
from braid.lowering.host.codegen.target_machine import host_machine
from braid.support.errors import BraidError
from test.run.fallback.conftest import make_group
from test.run.gpu.conftest import check_group, gpu

COLUMNS = (2, 3, 7, 31, 32, 33, 64, 100, 127, 128, 129, 500, 512, 513, 1000, 1024, 2048, 2060)


def softmax(element: Any, *shape: int) -> Any:
    last = len(shape) - 1
    return make_group([TensorType(element, shape)], lambda x: [SoftmaxOp.get(x, last)], ())


def layer_norm(element: Any, *shape: int) -> Any:
    row, last = [*(1 for _ in shape[1:]), shape[-1]], len(shape) - 1
    types = [TensorType(element, shape), TensorType(element, row), TensorType(element, row)]
    return make_group(
        types, lambda x, s, b: [LayerNormOp.get(x, s, b, first_dim=last, epsilon=1e-5)], ()
    )


def total(element: Any, *shape: int) -> Any:
    return make_group(
        [TensorType(element, shape)],
        lambda x: [e := elementwise("abs", x), ReduceOp.get(e, "maximum", [len(shape) - 1])],
        (),
    )


def image_mean(element: Any, *shape: int) -> Any:
    """Reductions over the points of each channel, and the extreme of it."""
    image = (*shape[:-1], *divided(shape[-1]))
    points = [len(image) - 2, len(image) - 1]

    def build(x: Any) -> Any:
        total = ReduceOp.get(x, "add", points)
        away = elementwise("sub", x, total)
        return [total, away, ReduceOp.get(away, "maximum", points)]

    return make_group([TensorType(element, image)], build, (), True)


def divided(count: int) -> tuple[int, int]:
    """Return a number as a product of two."""
    side = next(n for n in range(int(count**0.5), 0, -1) if count % n == 0)
    return side, count // side


def scaled_by_sections(element: Any, *shape: int) -> Any:
    """Each row in two parts of equal sizes, if it can be, which have their own scale and shift."""
    parts, size = divided(shape[-1])
    scale = [*(1 for _ in shape[2:]), shape[-2], parts, 1]
    types = [tensor(element, *shape[:-1], parts, size), *[tensor(element, *scale)] * 2]
    if len(shape) == 2:
        types[1:] = [tensor(element, 1, parts, 1)] * 2

    def build(x: Any, s: Any, b: Any) -> Any:
        return [LayerNormOp.get(x, s, b, first_dim=len(shape) - 1, epsilon=1e-5)]

    return make_group(types, build, ())


def scaled_by_rows(element: Any, *shape: int) -> Any:
    """As in instance normalization: all points of a channel have one scale."""
    scale = [*(1 for _ in shape[2:]), shape[-2], 1, 1]
    types = [tensor(element, *shape[:-1], *divided(shape[-1])), *[tensor(element, *scale)] * 2]

    def build(x: Any, s: Any, b: Any) -> Any:
        return [LayerNormOp.get(x, s, b, first_dim=len(shape) - 1, epsilon=1e-5)]

    return make_group(types, build, ())


def place(element: Any, *shape: int) -> Any:
    """Of the largest element, and the last one of the least."""
    last = len(shape) - 1

    def build(x: Any) -> Any:
        least = ArgReduceOp.get(x, "min", last, select_last=True)
        return [ArgReduceOp.get(x, "max", last), least]

    return make_group([tensor(element, *shape)], build, (), True)


def tensor(element: Any, *shape: int) -> Any:
    return TensorType(element, shape)


KINDS = {
    "softmax": softmax,
    "layer_norm": layer_norm,
    "total": total,
    "image_mean": image_mean,
    "sections": scaled_by_sections,
    "instances": scaled_by_rows,
    "place": place,
}
NORMS = (layer_norm, scaled_by_sections, scaled_by_rows)


def random_group(seed: int) -> Any:
    rng = np.random.default_rng(seed)
    kind = KINDS[str(rng.choice(list(KINDS)))]
    element = (f32, f32, bf16, f16)[rng.integers(4)]
    leading = [int(n) for n in rng.integers(1, 6, rng.integers(1, 3))]
    # The variance of a few elements of 16 bits is mostly their rounding.
    least = 32 if kind in NORMS and element != f32 else 0
    return kind(element, *leading, int(rng.choice([n for n in COLUMNS if n >= least])))


@pytest.mark.parametrize("seed", range(8))
def test_random_rows(seed: int) -> None:
    check_group(random_group(seed), emit_fallback, seed=seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 300))
def test_two_hundred_random_rows(seed: int) -> None:
    check_group(random_group(seed), emit_fallback, seed=seed)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("element", "shape"), [(f32, (2, 24000)), (f16, (1, 3, 20480)), (bf16, (2, 17003))], ids=str
)
def test_long_rows(element: Any, shape: Sequence[int], kind: str) -> None:
    """A block goes over its row in loops: one launch, without scratch memory."""
    if element != f32 and KINDS[kind] in NORMS:
        element = f32
    for unaligned in (False, True):
        kernel = check_group(KINDS[kind](element, *shape), emit_fallback, unaligned=unaligned)
        assert [own.blocks for own in kernel.launches.launches] == [np.prod(shape[:-1])]
        assert kernel.scratch_bytes == 0


@pytest.mark.parametrize("element", [f64, f16, bf16, i64, i32, i8])
@pytest.mark.parametrize("columns", [70, 600])
def test_types_of_results(element: Any, columns: int) -> None:
    """Lanes exchange 32 bits at a time, and warps have a place for each type."""

    def build(x: Any) -> Any:
        (least, most) = (ReduceOp.get(x, kind, [1]) for kind in ("minimum", "maximum"))
        return [least, most, ArgReduceOp.get(x, "max", 1), ReduceOp.get(x, "add", [1])]

    kernel = check_group(make_group([tensor(element, 5, columns)], build, (), True), emit_fallback)
    assert len(kernel.launches.launches) == 1 and kernel.scratch_bytes == 0


@pytest.mark.parametrize("columns", [24000, 2**20])
def test_long_rows_are_read_wide(columns: int) -> None:
    """Once for the maximum, once for the sum, and once for the result."""
    kernel = emit_fallback(softmax(f16, 4, columns), "tested")
    (code,) = compile_gpu_kernels([kernel], gpu("sm_80"), host_machine(), jobs=1)
    usual = code.ptx.decode().split(".entry tested_0_unaligned")[0]
    accesses = re.findall(r"(?:ld|st)\.global\.(?:nc\.)?(\S+)", usual)
    assert len(accesses) % 4 == 0 and set(accesses) <= {"v4.b32", "v2.b64"}


@pytest.mark.parametrize("kind", KINDS)
def test_one_pass(kind: str) -> None:
    """One launch, without scratch memory."""
    kernel = emit_fallback(KINDS[kind](f32, 3, 256), "tested")
    assert len(kernel.launches.launches) == 1 and kernel.scratch_bytes == 0


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("columns", [256, 1024])
def test_each_operand_is_read_once_and_wide(architecture: str, columns: int) -> None:
    kernel = emit_fallback(softmax(f32, 8, columns), "tested")
    (code,) = compile_gpu_kernels([kernel], gpu(architecture), host_machine(), jobs=1)
    text = code.ptx.decode()
    threads = 32 if columns == 256 else 128
    wide = re.findall(r"ld\.global\.v4\.b32|ld\.global\.v2\.b64", text)
    assert len(wide) * threads * 4 == columns
    assembled = assemble(code.ptx, architecture)
    assert {own.spilled_bytes for own in assembled.resources.values()} == {0}


def patched(monkeypatch: pytest.MonkeyPatch, name: str, replacement: Any) -> None:
    monkeypatch.setattr(emit_rows.RowEmitter, name, replacement)


def test_a_barrier_that_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    class Nothing:
        @staticmethod
        def BarrierOp() -> Any:
            return emit_rows.arith.ConstantOp.from_int_and_width(0, 32)

        def __getattr__(self, name: str) -> Any:
            return getattr(real, name)

    real = emit_rows.gpu
    monkeypatch.setattr(emit_rows, "gpu", Nothing())
    with pytest.raises(BraidError, match=r"race: |no thread of the block has written"):
        check_group(softmax(f32, 2, 1024), emit_fallback)


def test_too_few_exchanges_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    original = emit_rows.RowEmitter._across
    patched(monkeypatch, "_across", lambda own, op, value, lanes: original(own, op, value, 16))
    with pytest.raises((AssertionError, BraidError)):
        check_group(softmax(f32, 2, 256), emit_fallback)


def test_a_tail_that_is_not_left_out_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    original = emit_rows.RowEmitter._place_chunks

    def without_ends(own: Any) -> None:
        original(own)
        own.inside = [None for _ in own.inside]

    patched(monkeypatch, "_place_chunks", without_ends)
    with pytest.raises(BraidError, match="of operand 0, which has"):
        check_group(softmax(f32, 1, 100), emit_fallback)


def test_rows_behind_the_last_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three rows for four warps: the last one must not work."""
    original = emit_rows.index_constant
    monkeypatch.setattr(
        emit_rows, "index_constant", lambda b, value: original(b, 4 if value == 3 else value)
    )
    with pytest.raises(BraidError, match="which has 768"):
        check_group(softmax(f32, 3, 64), emit_fallback)


def test_a_wrong_neutral_element_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emit_rows, "neutral", lambda op: 5.0)
    with pytest.raises(AssertionError):
        check_group(softmax(f32, 2, 100), emit_fallback)


def test_a_total_of_all_elements() -> None:
    """The result has no dims."""
    group = make_group(
        [TensorType(f32, [70])],
        lambda x: [r := ReduceOp.get(x, "add", [0]), ReshapeOp.get(r, [])],
        (),
    )
    check_group(group, emit_fallback)


@pytest.mark.parametrize("kind", ["add", "maximum"])
@pytest.mark.parametrize("shape", [(1, 64, 1001), (3, 8, 40, 250)], ids=str)
def test_few_long_rows_are_reduced_by_many_blocks(
    kind: str, shape: Sequence[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In parts, each of which is a separate row."""
    monkeypatch.setattr(row_program, "_LONGEST", 2**14)
    dims = range(1, len(shape))
    group = make_group([TensorType(f16, shape)], lambda x: [ReduceOp.get(x, kind, dims)], ())
    kernel = check_group(group, emit_fallback)
    parts, whole, *_ = kernel.launches.launches
    assert (
        parts.blocks >= 8 * shape[0] / ROWS_PER_BLOCK and parts.threads >= 32 and whole.blocks <= 3
    )
