"""Matrix products by `wgmma`: random shapes, types, tails, epilogues; their code; and mutants."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import IntegerType, bf16, f16, i8

from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.regions import FusedOp
from braid.lowering.gpu.codegen.compiler import compile_gpu_kernels
from braid.lowering.gpu.codegen.machine_code import assemble, disassemble
from braid.lowering.gpu.contraction import epilogue
from braid.lowering.gpu.contraction.code import Code
from braid.lowering.gpu.kernels.gemm import GemmFamily
from braid.lowering.gpu.kernels.hopper import maps, order, pipeline, results, tiles
from braid.lowering.gpu.kernels.hopper_gemm import HopperGemmFamily
from braid.lowering.gpu.launch.gpu_kernel import GpuKernel
from braid.lowering.host.codegen.target_machine import host_machine
from braid.support.errors import BraidError
from braid.targets.kernels.schedules import Entries
from test.run.fallback.conftest import make_group
from test.run.gpu.conftest import check_group, gpu, hopper, hopper_emitter, spilled_bytes
from test.run.gpu.mutants import Mutate, replaced, with_constant, with_property, without
from test.run.gpu.test_products import in_layouts, tensor, u8
from test.run.gpu.test_products import product as product_group
from test.schedules import emitted

SMALL = {"rows": 64, "columns": 64, "groups": 1, "stages": 3}


def emitter(
    schedule: Entries | None = None, processors: int = 2
) -> Callable[[FusedOp, str], GpuKernel]:
    return hopper_emitter(HopperGemmFamily, schedule, processors)


def scaled(element: Any, m: int, n: int, k: int) -> FusedOp:
    """Return a product with scales of its columns, a residual and an activation."""
    types = [tensor(element, *shape) for shape in ((m, k), (k, n), (1, n), (m, n))]

    def build(a: Any, b: Any, scale: Any, residual: Any) -> Any:
        made = MatmulOp.on(a, b, accumulator=None)
        wide = elementwise("mul", made, scale)
        total = elementwise("add", wide, residual)
        return [made, wide, total, elementwise("tanh", total)]

    return make_group(types, build, ())


def random_product(seed: int) -> tuple[FusedOp, Entries]:
    rng = np.random.default_rng(seed)
    element = (bf16, f16, i8, bf16, f16, u8)[rng.integers(6)]
    is_byte = isinstance(element, IntegerType)
    unit = 16 if is_byte else 8
    m = int(rng.integers(1, 80) if rng.integers(2) else rng.integers(80, 200))
    n, k = (unit * int(rng.integers(-(-33 // unit), 200 // unit)) for _ in range(2))
    schedule = {**SMALL, "stages": int(rng.integers(2, 5))}
    schedule["columns"] = int(rng.choice([32, 64, 80, 128]))
    schedule["splits"] = int(rng.choice([1, 1, 2, 3]))
    if rng.integers(4) == 0:
        schedule |= {"rows": int(rng.choice([128, 256])), "groups": 2}
    if not is_byte and rng.integers(4) == 0:
        return _filled(scaled(element, m, n, k), schedule)
    batch = ((), (), (2,), (3, 2))[rng.integers(4)]
    one = tuple(1 for _ in batch)
    bias = (None, (*one, 1, n), (*batch, m, n), (*one, m, 1))
    group = product_group(
        element,
        (m, n, k),
        batch=batch,
        shared=bool(rng.integers(2)),
        transposed=is_byte or bool(rng.integers(2)),
        bias=bias[rng.integers(4)],
        activation=str(rng.choice(["tanh", "abs"])) if not is_byte and rng.integers(2) else None,
        right=i8 if element == u8 else None,
    )
    return _filled(group, schedule)


def _filled(group: FusedOp, schedule: Entries) -> tuple[FusedOp, Entries]:
    """With existing rows only, also for batches that share B."""
    plain = GemmFamily(hopper()).match(group)
    assert plain is not None
    _, rows, _, _ = plain.extents()
    filled = -(-rows // 8) * 8
    if filled < schedule["rows"] == 64 <= filled + schedule["columns"]:
        schedule = {**schedule, "filled": filled}
    return group, schedule


@pytest.mark.parametrize("seed", [*range(4), 120])
def test_random_products(seed: int) -> None:
    group, schedule = random_product(seed)
    check_group(group, emitter(schedule), seed=seed)


def test_batches_inside_of_rows() -> None:
    group = product_group(f16, (72, 64, 96), batch=(2, 3))
    found = HopperGemmFamily(hopper()).match(group)
    assert found is not None
    inside = [choice for choice in found.layouts if choice.operands[1].tag in ("adbc", "acbd")]
    for choice in inside:
        check_group(in_layouts(group, choice), emitter(SMALL))
    assert len(inside) == 2


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 320))
def test_many_random_products(seed: int) -> None:
    group, schedule = random_product(seed)
    check_group(group, emitter(schedule), seed=seed)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(
    "tiles",
    [
        {"columns": 48, "filled": 16},
        {"columns": 96, "filled": 8, "splits": 2},
        {"columns": 240, "stages": 2},
    ],
    ids=str,
)
def test_few_rows(tiles: Entries, transposed: bool) -> None:
    """Boxes of B of 64 and of 32 bytes, and of columns that are not the tile's; rows left out."""
    group = product_group(bf16, (tiles.get("filled", 70), 200, 200), transposed=transposed)
    check_group(group, emitter({**SMALL, **tiles}))


def test_parts_have_their_own_depths(monkeypatch: pytest.MonkeyPatch) -> None:
    original = order.Order._tile
    monkeypatch.setattr(
        order.Order, "_tile", lambda self, c, n: original(self, c, n)._replace(split=c.number(0))
    )
    with pytest.raises((BraidError, AssertionError), match="matmul"):
        check_group(product_group(bf16, (20, 72, 328)), emitter({**SMALL, "splits": 2}))


@pytest.mark.slow
@pytest.mark.parametrize("element", [bf16, i8], ids=str)
def test_every_schedule(element: Any) -> None:
    group = product_group(element, (300, 272, 144), transposed=True, bias=(1, 272))
    found = HopperGemmFamily(hopper()).match(group)
    assert found is not None
    schedules = [schedule for level in range(3) for schedule in found.space(level)]
    assert len(schedules) > 20
    for schedule in schedules:
        check_group(group, emitter(schedule))


def test_unaligned_buffers() -> None:
    """Which have no tensor maps: their points are computed one by one."""
    group = product_group(bf16, (70, 72, 40), bias=(1, 72))
    check_group(group, emitter(SMALL), unaligned=True)


def test_results_in_several_types() -> None:
    """Two results are stored from registers."""
    types = [tensor(f16, 70, 64), tensor(f16, 64, 72)]

    def build(a: Any, b: Any) -> Any:
        made = MatmulOp.on(a, b, accumulator=None)
        return [made, elementwise("abs", made)]

    check_group(make_group(types, build, (), True), emitter(SMALL))


def test_what_is_left_to_others() -> None:
    family = HopperGemmFamily(hopper())
    assert family.match(product_group(bf16, (64, 64, 64))) is not None
    assert family.match(product_group(bf16, (64, 64, 60), transposed=True)) is None
    assert family.match(product_group(bf16, (1, 64, 64))) is not None
    assert family.match(product_group(bf16, (64, 32, 64))) is None
    assert HopperGemmFamily(gpu("sm_80")).match(product_group(bf16, (64, 64, 64))) is None


def _code(element: Any, schedule: Entries | None = None) -> tuple[bytes, GpuKernel]:
    group = product_group(element, (4096, 4096, 4096), transposed=True, bias=(1, 4096))
    made = emitter(schedule, 132)(group, "tested")
    (code,) = compile_gpu_kernels([made], hopper(132), host_machine(), jobs=1)
    return code.ptx, made


def main_loop(sass: str, opcode: str) -> list[str]:
    """Return the instructions of the shortest loop with `opcode`."""
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
    return min((loop for loop in loops if any(opcode in one for one in loop)), key=len)


@pytest.mark.parametrize(
    ("element", "opcode"),
    [(bf16, "HGMMA"), pytest.param(f16, "HGMMA", marks=pytest.mark.slow), (i8, "IGMMA")],
    ids=str,
)
def test_main_loop(element: Any, opcode: str) -> None:
    """As many products an instruction as CUTLASS's: 4 of 44 for a tile of 128 by 256."""
    ptx, _ = _code(element, {"rows": 128, "columns": 256, "groups": 2, "stages": 4})
    assembled = assemble(ptx, "sm_90a")
    assert {used.spilled_bytes for used in assembled.resources.values()} == {0}
    assert not assembled.warnings
    loop = main_loop(disassemble(assembled.code), opcode)
    products = sum(opcode in line for line in loop)
    assert products == 4 and len(loop) <= 44
    assert not any(line.split()[0].startswith(("LDS", "LDL", "LDG", "STL")) for line in loop)


@pytest.mark.slow
@pytest.mark.parametrize("element", [bf16, f16, i8], ids=str)
def test_schedules_spill_nowhere(element: Any) -> None:
    group = product_group(element, (4096, 4096, 4096), transposed=True, bias=(1, 4096))
    found = HopperGemmFamily(hopper(132)).match(group)
    assert found is not None
    for level in range(2):
        for schedule in found.space(level):
            assert spilled_bytes(emitted(found, schedule, symbol="tested"), "sm_90a") == 0, schedule


# ---- Mutants ----


def _waits(change: int) -> Mutate:
    original = pipeline.wait_for_products
    return lambda patch: patch.setattr(
        pipeline, "wait_for_products", lambda c, left, sums: original(c, left + change, sums)
    )


def _arrives_early(patch: pytest.MonkeyPatch) -> None:
    """Release a stage before the products that read it have ended."""
    waits = pipeline.wait_for_products
    patch.setattr(pipeline, "wait_for_products", lambda c, left, s: waits(c, 2 if left else 0, s))


def _same_stage(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(pipeline.Ring, "following", lambda self, code, stage, parity: (stage, parity))


def _parity(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(pipeline, "wait", lambda code, barrier, parity: None)


def _bytes(change: int) -> Mutate:
    original = pipeline.expect
    return lambda patch: patch.setattr(
        pipeline, "expect", lambda code, barrier, n: original(code, barrier, n + change)
    )


def _slots(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(results, "_wait_for_slot", lambda code, lane, left: None)


def _tile(change: Callable[[Code, Any], Any]) -> Mutate:
    original = order.Order._tile
    return lambda patch: patch.setattr(
        order.Order, "_tile", lambda self, c, n: original(self, c, change(c, n))
    )


MUTANTS: dict[str, tuple[Mutate, str]] = {
    "no mbarriers": (without("mbarrier.init"), "not initialized"),
    "mbarriers not fenced": (without("fence.mbarrier_init"), "without a fence"),
    "no arrivals": (without("mbarrier.arrive.shared"), "waits at mbarrier"),
    "no bytes expected": (without("mbarrier.arrive.expect_tx"), "waits at mbarrier"),
    "too many bytes": (_bytes(16), "waits at mbarrier"),
    "too few bytes": (_bytes(-16), "waits at mbarrier|race|already"),
    "no waits": (_parity, "landed|race|already|not initialized"),
    "always the same stage": (_same_stage, "race|waits at|already|matmul"),
    "no fence of sums": (without("wgmma.fence"), "without wgmma.fence"),
    "no groups of products": (without("wgmma.commit_group"), "matmul|race|nan"),
    "no waits for products": (without("wgmma.wait_group"), "matmul|race|nan"),
    "products not waited for": (_waits(1), "matmul|race|nan"),
    "stage given back early": (_arrives_early, "race: writes .* wgmma"),
    "no copies": (without("cp.async.bulk.tensor.2d.shared"), "waits at mbarrier"),
    "results not copied": (without("cp.async.bulk.tensor.2d.global"), "matmul"),
    "results not fenced": (without("fence.proxy.async"), "without fence.proxy.async"),
    "results not waited for": (_slots, "race: writes .* store of a tensor"),
    "results not read": (without("wait_group.read"), "race: writes|has read shared"),
    "no groups of results": (without("bulk.commit_group"), "race: writes|has read shared"),
    "lanes apart": (
        lambda patch: patch.setattr(Code, "warp_barrier", lambda self: None),
        "race|nothing has landed",
    ),
    "another depth": (with_constant(pipeline, "_ROWS_OF_ATOM", 4), "matmul"),
    "another swizzle": (with_constant(pipeline, "_SWIZZLES", {128: 2}), "swizzled"),
    "fewer rows of A": (with_property(tiles.HopperTiles, "a_rows", lambda n: n - 8), "matmul"),
    "boxes not swizzled": (
        lambda patch: patch.setattr(
            maps.Boxes, "elements", property(lambda self: tiles.LINE // self.bytes // 2)
        ),
        "a tensor map with lines of 64 bytes",
    ),
    "a transposed B": (replaced("1, 1, 0, 0;", "1, 1, 0, 1;"), "matmul|not in shared"),
    "fewer rows": (with_property(order.Order, "tiles", lambda n: n - 1), "matmul"),
    "another tile": (_tile(lambda c, n: c.mul(c.div(n, 2), 2)), "matmul|race"),
    "one turn less": (with_property(pipeline.Ring, "depth", lambda n: n - 8), "matmul"),
    "too little memory": (
        with_property(tiles.HopperTiles, "barrier_start", lambda n: n - 4096),
        "mbarrier|race|at offset",
    ),
    "other sums": (
        lambda patch: patch.setattr(
            epilogue.Epilogue,
            "compute",
            lambda self, code, sums, *rest, f=epilogue.Epilogue.compute: f(
                self, code, sums[::-1], *rest
            ),
        ),
        "matmul",
    ),
    "no registers": (replaced("u32 240", "u32 300"), "registers for a thread"),
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
    group = product_group(bf16, (200, 72, 328), transposed=True)
    with pytest.raises((BraidError, AssertionError), match=reason):
        check_group(group, emitter({**SMALL, "stages": 2}))
