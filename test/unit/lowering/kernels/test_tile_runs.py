"""Which products with zeros around an image are left out."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from braid.analysis.nests.windows import WindowDim
from braid.lowering.cpu.kernels.contraction.tile_runs import TileRun, tile_runs
from braid.lowering.cpu.kernels.contraction.tiling import ContractionSize, cycles
from braid.lowering.cpu.unit.vector_unit import VectorUnit
from braid.targets.machines.cpus import cpu_machine

AVX512 = VectorUnit.of(cpu_machine("x86-64-v4"))
SAME = WindowDim(positions=7, size=3, stride=1, dilation=1, begin=1, end=8)
"""A window of three on seven elements, with a zero on both sides."""

windows = st.builds(
    WindowDim,
    positions=st.integers(1, 60),
    size=st.integers(1, 12),
    stride=st.integers(1, 3),
    dilation=st.integers(1, 13),
    begin=st.integers(0, 30),
    end=st.integers(0, 60),
)


def inside(window: WindowDim) -> np.ndarray:
    """By position and element, whether it lies in the image."""
    places = np.add.outer(
        np.arange(window.positions) * window.stride, np.arange(window.size) * window.dilation
    )
    return (places >= window.begin) & (places < window.end)


@given(window=windows)
def test_positions_of_elements(window) -> None:
    expected = inside(window)
    for element in range(window.size):
        found = np.zeros(window.positions, bool)
        found[list(window.positions_of(element))] = True
        np.testing.assert_array_equal(found, expected[:, element])
        assert found.sum() == len(window.positions_of(element))
    assert window.share == expected.mean()


@given(window=windows, rows=st.integers(1, 30))
def test_tiles_make_all_products_that_are_not_with_zeros(window, rows) -> None:
    runs = tile_runs(window.positions, rows, window)
    made = np.zeros((window.positions, window.size), int)
    first = 0
    for run in runs:
        for _ in range(run.count):
            if not run.passes:
                made[first : first + run.rows] += 1
            for each in run.passes:
                made[first + each.first : first + each.last, each.begin : each.end] += 1
            first += run.rows
    assert first == window.positions
    assert made.max() == 1, "a product is made once"
    assert made[inside(window)].all()


def test_few_elements_leave_out_all_zeros() -> None:
    """All positions in a tile, or an edge in the first and the last one of three."""
    (run,) = tile_runs(7, 14, SAME)
    assert sum(each.products for each in run.passes) == 19
    wide = WindowDim(positions=40, size=3, stride=1, dilation=1, begin=1, end=41)
    first, inner, last = tile_runs(40, 14, wide)
    assert (first.count, inner, last.rows) == (1, TileRun(1, 14), 12)
    assert sum(each.products for each in (*first.passes, *last.passes)) == 26 * 3 - 2


def test_wide_windows_have_little_code() -> None:
    """Edges for each of their elements would be code for each of them."""
    window = WindowDim(positions=200, size=101, stride=1, dilation=1, begin=50, end=250)
    assert sum(max(len(run.passes), 1) for run in tile_runs(200, 7, window)) <= 32


def test_predicted_time_is_of_what_is_made() -> None:
    whole = ContractionSize(7, 7, 512, 4608, row_bytes=4 * 512)
    framed = ContractionSize(7, 7, 512, 4608, row_bytes=4 * 512, share=SAME.share, window=SAME)
    ratio = cycles(framed, 7, 4, AVX512) / cycles(whole, 7, 4, AVX512)
    assert 0.98 < ratio / (19 / 21) ** 2 < 1.02
