"""Matrix products by tiles: random shapes, types, tails and epilogues; their code; and mutants."""

import itertools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import IntegerType, Signedness, TensorType, bf16, f16, f32, i1, i8, i32

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.attributes import with_layout
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.regions import FusedOp
from braid.lowering.gpu.codegen.compiler import compile_gpu_kernels
from braid.lowering.gpu.codegen.machine_code import assemble
from braid.lowering.gpu.contraction import copies, kernel, main_loop, tensor_cores, tiles
from braid.lowering.gpu.contraction.code import Code
from braid.lowering.gpu.kernels.gemm import GemmFamily
from braid.lowering.gpu.launch.gpu_kernel import GpuKernel
from braid.lowering.host.codegen.target_machine import host_machine
from braid.support.errors import BraidError
from braid.targets.kernels.schedules import Entries
from test.run.fallback.conftest import make_group
from test.run.gpu.conftest import (
    PLAIN,
    SMALL,
    check_group,
    conflicts,
    gpu,
    made_by_tiles,
    spilled_bytes,
)
from test.run.gpu.mutants import Mutate, with_property, without_barrier, without_intrinsic
from test.schedules import emitted

u8 = IntegerType(8, Signedness.UNSIGNED)
FAMILY = GemmFamily(gpu("sm_80"))


def tensor(element: Any, *shape: int, layout: str | None = None) -> Any:
    type = TensorType(element, shape)
    return type if layout is None else with_layout(type, Layout.parse(layout))


def emitter(schedule: Entries | None = None) -> Callable[[FusedOp, str], GpuKernel]:
    def emit(group: FusedOp, symbol: str) -> GpuKernel:
        found = FAMILY.match(group)
        assert found is not None
        made = emitted(found, schedule, symbol=symbol)
        return made_by_tiles(made)

    return emit


def product(
    element: Any,
    shape: tuple[int, int, int],
    *,
    batch: tuple[int, ...] = (),
    shared: bool = False,
    transposed: bool = False,
    bias: tuple[int, ...] | None = None,
    activation: str | None = None,
    right: Any = None,
) -> FusedOp:
    m, n, k = shape
    letters = "abcd"[: len(batch) + 2]
    layout = letters[:-2] + letters[-1] + letters[-2] if transposed else None
    accumulator = i32 if isinstance(element, IntegerType) else None
    own = tuple(1 for _ in batch) if shared else batch
    types = [
        tensor(element, *batch, m, k),
        tensor(right or element, *own, k, n, layout=layout),
    ]
    if bias is not None:
        types.append(tensor(accumulator or element, *bias))

    def build(a: Any, b: Any, c: Any = None) -> Any:
        ops: list[Any] = [MatmulOp.on(a, b, accumulator=accumulator)]
        if c is not None:
            ops.append(elementwise("add", ops[-1], c))
        if activation is not None:
            ops.append(elementwise(activation, ops[-1]))
        return ops

    return make_group(types, build, ())


def in_layouts(group: FusedOp, choice: LayoutChoice) -> FusedOp:
    """Return the same product in other layouts."""
    types = [with_layout(v.type, own) for v, own in zip(group.inputs, choice.operands, strict=True)]
    tags = [layout.tag for layout in choice.results]
    return make_group(types, lambda a, b: [MatmulOp.on(a, b, accumulator=None)], tags)


@pytest.mark.parametrize("element", [f32, f16], ids=str)
def test_batches_inside_of_rows(element: Any) -> None:
    """As the heads of attention lie in tokens."""
    group = product(element, (40, 72, 64), batch=(2, 3))
    found = FAMILY.match(group)
    assert found is not None
    inside = [choice for choice in found.layouts if choice.operands[1].tag in ("adbc", "acbd")]
    assert [choice.results[0].tag for choice in inside] == ["abcd", "acbd"]
    for choice in inside:
        check_group(in_layouts(group, choice), emitter(PLAIN if element == f32 else SMALL))


@pytest.mark.parametrize("left", [i8, u8], ids=str)
@pytest.mark.parametrize("right", [i8, u8], ids=str)
def test_bytes_of_any_kinds(left: Any, right: Any) -> None:
    """As two activations are multiplied."""
    check_group(product(left, (24, 40, 70), batch=(2,), right=right), emitter(SMALL))


def random_product(seed: int) -> tuple[FusedOp, Entries]:
    rng = np.random.default_rng(seed)
    element = (f32, bf16, f16, i8, u8, bf16)[rng.integers(6)]
    even = (8, 16, 32, 64, 72, 96, 128, 136)
    m, n, k = (
        int(rng.choice(even)) if rng.integers(2) else int(rng.integers(1, 150)) for _ in range(3)
    )
    batch = ((), (), (2,), (3, 2))[rng.integers(4)]
    bias = (None, (*(1 for _ in batch), 1, n), (*batch, m, n), (*(1 for _ in batch), m, 1))
    is_float = not isinstance(element, IntegerType)
    group = product(
        element,
        (m, n, k),
        batch=batch,
        shared=bool(rng.integers(2)),
        transposed=bool(rng.integers(2)),
        bias=bias[rng.integers(4)],
        activation=str(rng.choice(["tanh", "abs"])) if is_float and rng.integers(2) else None,
        right=i8 if element == u8 else None,
    )
    schedule = {**(PLAIN if element == f32 else SMALL)}
    if element == f32 and seed % 2:
        schedule |= {"rows": 128, "columns": 128, "warp_columns": 128}
    if element != f32:
        schedule["depth"] = int(rng.choice([64, 128]))
        schedule["stages"] = int(rng.choice([2, 3, 4]))
    return group, schedule


@pytest.mark.parametrize("seed", range(4))
def test_random_products(seed: int) -> None:
    group, schedule = random_product(seed)
    check_group(group, emitter(schedule), seed=seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 320))
def test_many_random_products(seed: int) -> None:
    group, schedule = random_product(seed)
    check_group(group, emitter(schedule), seed=seed)


@pytest.mark.slow
@pytest.mark.parametrize("element", [f32, bf16, f16, i8], ids=str)
def test_every_schedule(element: Any) -> None:
    group = product(element, (200, 264, 136), transposed=True)
    found = FAMILY.match(group)
    assert found is not None
    for level in range(3):
        for schedule in found.space(level):
            check_group(group, emitter(schedule))


@pytest.mark.slow
def test_schedules_fit_shared_memory() -> None:
    group = product(bf16, (512, 512, 512))
    found = GemmFamily(gpu("sm_89")).match(group)
    assert found is not None
    schedules = [tiles for level in range(3) for tiles in found.space(level)]
    assert len(schedules) == len(set(schedules)) > 10
    for own in schedules:
        made = found.emit("tested", own)
        assert isinstance(made, GpuKernel)
        assert made.launches.launches[0].shared_bytes <= 99 * 1024


def test_unaligned_buffers() -> None:
    """Rows of the operands' buffers begin anywhere: what is copied in 16 bytes is read singly."""
    group = product(bf16, (70, 72, 40), bias=(1, 72))
    check_group(group, emitter(SMALL), unaligned=True)


@pytest.mark.parametrize("unaligned", [False, True])
def test_a_square_has_one_operand(unaligned: bool) -> None:
    square = make_group([tensor(f32, 24, 24)], lambda a: [MatmulOp.on(a, a, accumulator=None)], ())
    check_group(square, emitter(PLAIN), unaligned=unaligned)


def test_bools_around_a_product() -> None:
    """They are bytes in memory, as operands of what follows and as results."""

    def build(a: Any, b: Any, mask: Any, limit: Any) -> list[Any]:
        sums = MatmulOp.on(a, b, accumulator=None)
        kept = elementwise("select", mask, sums, limit)
        return [sums, kept, elementwise("gt", kept, limit)]

    types = [tensor(f32, 20, 12), tensor(f32, 12, 24), tensor(i1, 20, 24), tensor(f32, 1, 24)]
    check_group(make_group(types, build, ()), emitter(PLAIN))


@pytest.mark.parametrize(
    ("element", "architecture"),
    [
        (bf16, "sm_80"),
        (f32, "sm_90a"),
        *(
            pytest.param(element, own, marks=pytest.mark.slow)
            for element, own in ((bf16, "sm_90a"), (f32, "sm_80"), (i8, "sm_80"), (i8, "sm_90a"))
        ),
    ],
    ids=str,
)
def test_passes_the_assembler(element: Any, architecture: str) -> None:
    group = product(element, (2048, 2048, 2048), transposed=True, bias=(1, 2048))
    (code,) = compile_gpu_kernels(
        [emitter()(group, "tested")], gpu(architecture), host_machine(), jobs=1
    )
    used = assemble(code.ptx, architecture).resources.values()
    assert [own.spilled_bytes for own in used] == [0, 0]  # the second for unaligned buffers
    text = code.ptx.decode()
    assert "cp.async.cg.shared.global" in text
    assert ("mma.sync" in text and "ldmatrix" in text) or element == f32
    stores = re.findall(r"st\.global\.(\S+)", text)
    assert any(kind in ("v4.b32", "v2.b64") for kind in stores)


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ["sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120"])
@pytest.mark.parametrize("element", [f32, f16, bf16, i8], ids=str)
def test_default_schedules_spill_nowhere(element: Any, architecture: str) -> None:
    family = GemmFamily(gpu(architecture))
    shapes = (
        (4096, 4096, 4096),
        (300, 200, 100),
        (1, 1000, 77),
        (2000, 2001, 1001),
        (2000, 2002, 1002),
    )
    for shape, transposed in itertools.product(shapes, (True, False)):
        found = family.match(product(element, shape, transposed=transposed))
        assert found is not None
        for schedule in found.space(0):
            made = emitted(found, schedule, symbol="tested")
            assert spilled_bytes(made, architecture) == 0, (shape, schedule)


@pytest.mark.parametrize(
    ("depth", "transposed"),
    [
        (64, True),
        (128, False),
        *(pytest.param(*own, marks=pytest.mark.slow) for own in ((64, False), (128, True))),
    ],
)
def test_no_bank_conflicts(transposed: bool, depth: int) -> None:
    conflicts()
    check_group(
        product(bf16, (64, 64, 128), transposed=transposed), emitter({**SMALL, "depth": depth})
    )
    assert conflicts() == 0


# ---- Mutants ----


def _waits_for(change: int) -> Mutate:
    original = main_loop._wait
    return lambda patch: patch.setattr(
        main_loop, "_wait", lambda code, left: original(code, left + change)
    )


def _fragments(order: Callable[[list[Any]], list[Any]]) -> Mutate:
    original = tensor_cores.TensorCores._read

    def read(self: Any, code: Code, place: Any, kind: str) -> Any:
        return order(original(self, code, place, kind))

    return lambda patch: patch.setattr(tensor_cores.TensorCores, "_read", read)


def _offset(change: Callable[[Code, Any], Any]) -> Mutate:
    """Another number of a line or a depth."""
    original = Code.offset
    return lambda patch: patch.setattr(
        Code, "offset", lambda self, index, *terms: original(self, change(self, index), *terms)
    )


def _swizzle(patch: pytest.MonkeyPatch) -> None:
    """Let copies exchange chunks differently from reads of fragments."""
    original = copies.TileCopy.prepare

    def prepare(self: copies.TileCopy, *arguments: Any) -> None:
        turn = tiles.Place.turn
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(
                tiles.Place, "turn", lambda own, code, line: turn(own, code, code.add(line, 2))
            )
            original(self, *arguments)

    patch.setattr(copies.TileCopy, "prepare", prepare)


def _next(patch: pytest.MonkeyPatch) -> None:
    """Let the slot that is read next always be the same."""
    patch.setattr(main_loop.Ring, "next", lambda self, code, slot: code.number(self.size))


def _least(change: int) -> Mutate:
    original = Code.least
    return lambda patch: patch.setattr(
        Code, "least", lambda self, a, b: original(self, a, b + change)
    )


def _below(change: int) -> Mutate:
    original = Code.below
    return lambda patch: patch.setattr(
        Code,
        "below",
        lambda self, a, b: original(self, a, b + change if isinstance(b, int) else b),
    )


WAIT, COMMIT = "llvm.nvvm.cp.async.wait.group", "llvm.nvvm.cp.async.commit.group"
LANDED = "has not landed|no thread of the block has written|race"
MUTANTS: dict[str, tuple[Mutate, str]] = {
    "no wait": (without_intrinsic(WAIT), LANDED),
    "no groups": (without_intrinsic(COMMIT), LANDED),
    "no wait at the end": (without_intrinsic("llvm.nvvm.cp.async.wait.all"), "has not landed"),
    "waits for one less": (_waits_for(1), LANDED),
    "no barrier before the loop": (without_barrier(0), LANDED),
    "no barrier in the loop": (without_barrier(1), LANDED),
    "no barrier before results": (without_barrier(2), "race"),
    "no barrier behind results": (without_barrier(3), "race|no thread"),
    "fragments swapped": (_fragments(lambda f: [f[1], f[0], f[2], f[3]]), "matmul"),
    "fragments turned": (_fragments(lambda f: [*f[2:], *f[:2]]), "matmul"),
    "another swizzle": (_swizzle, "matmul"),
    "the same slot": (_next, f"{LANDED}|matmul"),
    "one row too far": (_offset(lambda c, i: c.add(i, 1)), "matmul|reads"),
    "rows not bounded": (_least(1), "not aligned|at offset|matmul"),
    "results not bounded": (_below(1), "at offset .* of|matmul"),
    "a stage too small": (
        with_property(kernel.Product, "_stage_bytes", lambda n: n - 128),
        f"{LANDED}|offset|matmul",
    ),
    "too little memory": (
        with_property(kernel.Product, "shared_bytes", lambda n: n - 16),
        "at offset",
    ),
    "one turn less": (with_property(kernel.Product, "depth", lambda n: n - 32), "matmul"),
    "a tile less": (with_property(kernel.Product, "row_tiles", lambda n: n - 1), "matmul"),
    "results too narrow": (with_property(kernel.Product, "width", lambda n: n // 2 + 1), "."),
}


@pytest.mark.parametrize(
    "name",
    [
        name if number % 7 == 0 else pytest.param(name, marks=pytest.mark.slow)
        for number, name in enumerate(MUTANTS)
    ],
)
def test_mutants_are_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mutate, reason = MUTANTS[name]
    mutate(monkeypatch)
    group = product(bf16, (72, 72, 160), transposed=True)
    with pytest.raises((BraidError, AssertionError), match=reason):
        check_group(group, emitter(SMALL))
