"""The choice of tiles."""

import pytest

from braid.lowering.cpu.kernels.contraction.microkernel import feasible_tiles
from braid.lowering.cpu.kernels.contraction.tiling import (
    ContractionSize,
    cycles,
    ranked_vectors,
    schedules,
)
from braid.lowering.cpu.unit.vector_unit import VectorUnit
from braid.targets.machines.cpus import cpu_machine

AVX512, AVX2, SSE, NEON = (
    VectorUnit.of(cpu_machine(name)) for name in ("x86-64-v4", "x86-64-v3", "x86-64", "armv8-a")
)


def size(rows, columns, depth, **options):
    return ContractionSize(1, rows, columns, depth, row_bytes=4 * depth, **options)


@pytest.mark.parametrize("unit", [AVX512, AVX2, SSE, NEON])
@pytest.mark.parametrize("constants", [0, 4])
def test_tiles_fit_the_registers(unit, constants) -> None:
    tiles = feasible_tiles(unit, constants)
    assert {vectors for _, vectors in tiles} >= {1, 2}
    for rows, vectors in tiles:
        assert rows * vectors + vectors + 1 + constants <= unit.registers


def test_cycles_are_at_least_the_multiply_adds() -> None:
    problem = size(128, 768, 768)
    least = problem.flops / (2 * AVX512.lanes)
    for rows, vectors in feasible_tiles(AVX512):
        assert cycles(problem, rows, vectors, AVX512) >= least


def test_one_row_takes_wide_blocks() -> None:
    assert ranked_vectors(size(1, 1024, 512), AVX512)[0] == 4


def test_rows_that_fall_on_one_cache_set_take_few_rows() -> None:
    conflicting = next(schedules(size(128, 768, 3072), [1, 2, 3, 4], AVX512, 1 << 23, 0))
    assert conflicting.rows <= 8
    free = next(schedules(size(140, 768, 776), [2], AVX512, 1 << 23, 0))
    assert free.rows == 14


def test_large_weights_stay_for_all_rows() -> None:
    assert next(schedules(size(49, 2048, 512), [2], AVX512, 4 << 20, 0)).columns_outside
    assert not next(schedules(size(3136, 64, 64), [2], AVX512, 16 << 10, 0)).columns_outside


def test_schedules_do_not_repeat() -> None:
    space = list(schedules(size(20, 40, 9), [1, 2], AVX2, 0, 0))
    assert len(space) == len(set(space))


@pytest.mark.parametrize("depth", [16, 32])
def test_tiles_leave_room_for_the_start_of_the_next(depth) -> None:
    best = next(schedules(size(3136, 64, depth), [1, 2, 3, 4], AVX512, 1 << 14, 0))
    assert 8 < best.rows * best.vectors <= 20


@pytest.mark.parametrize("vectors", [2, 3, 4])
def test_tiles_are_tall_where_columns_come_from_far(vectors) -> None:
    """Of a long reduction, whose block of columns the nearest cache does not hold."""
    best = next(schedules(size(2520, 768, 768), [vectors], AVX512, 4 * 768 * 768, 0))
    assert best.rows == max(rows for rows, count in feasible_tiles(AVX512) if count == vectors)


def test_loops_have_two_steps_at_least() -> None:
    for level in range(3):
        space = schedules(size(2520, 768, 768), [1, 2, 3, 4], AVX512, 4 * 768 * 768, level)
        assert all(schedule.unroll >= 2 for schedule in space)


def test_open_rows_take_a_tile_that_is_good_for_many() -> None:
    one = next(schedules(size(1, 512, 256), [2], AVX2, 1 << 20, 0))
    any_number = next(schedules(size(1, 512, 256, rows_open=True), [2], AVX2, 1 << 20, 0))
    assert one.rows == 1 and any_number.rows >= 4
    factor = [
        cycles(size(rows, 512, 256, rows_open=True), any_number.rows, 2, AVX2)
        / min(cycles(size(rows, 512, 256), *tile, AVX2) for tile in feasible_tiles(AVX2, 0, (2,)))
        for rows in (1, 4, 16, 61)
    ]
    assert max(factor) < 1.4
