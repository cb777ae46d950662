"""HLS C++ that is read again: its results, and its time if FIFOs are too small."""

import re
from pathlib import Path

import pytest

from benchmarks.fpga.polybench import selected
from benchmarks.fpga.reader import UnsupportedCode, read_design
from braid.lowering.fpga.floats.project import text_of
from braid.lowering.fpga.operators import vitis_operators
from braid.solvers.hls.estimate import Estimate, estimate


def estimated(text: str, folder: Path) -> Estimate:
    path = folder / "kernel.cpp"
    path.write_text(text)
    return estimate(read_design(path), vitis_operators())


@pytest.fixture(scope="module")
def atax() -> str:
    return text_of(selected("atax", 201, vitis_operators()).design)


def test_both_products_of_atax_run_at_the_same_time(atax: str, tmp_path: Path) -> None:
    found = estimated(atax, tmp_path)
    ends = found.ends
    alone = [
        end - begin - stalled
        for begin, end, stalled in zip(ends.begins, ends.ends, ends.stalls, strict=True)
    ]
    assert found.cycles < 0.9 * sum(alone)
    assert found.resources.dsps <= 201


def test_smaller_fifos_take_longer(atax: str, tmp_path: Path) -> None:
    (depth,) = map(int, re.findall(r"STREAM variable=s0 depth=(\d+)", atax))
    cycles = [
        estimated(
            re.sub(r"variable=s0 depth=\d+", f"variable=s0 depth={one}", atax), tmp_path
        ).cycles
        for one in (depth, 1)
    ]
    assert cycles[0] < cycles[1]


@pytest.mark.parametrize(
    "changed, expected_error",
    [(r"d1 < n;\1", "a loop that does not count"), (r"d1 < 5; d1 += 2", "a loop that does not")],
)
def test_what_is_not_read_is_told_with_its_line(
    changed: str, expected_error: str, atax: str, tmp_path: Path
) -> None:
    path = tmp_path / "kernel.cpp"
    text, count = re.subn(r"d0 < \d+;( d0\+\+)", changed.replace("d1", "d0"), atax)
    assert count
    path.write_text(text)
    with pytest.raises(UnsupportedCode, match=rf"\d+:\d+: {expected_error}"):
        read_design(path)


@pytest.mark.parametrize(
    ("numerator", "dsps"), [("1.000000", 8), ("one", 8), ("2.000000", 0), ("other", 0)]
)
def test_one_over_a_number_is_a_reciprocal_with_dsps(
    numerator: str, dsps: int, tmp_path: Path
) -> None:
    found = estimated(
        f"""
void inverse(float x[8], float y[8], float one, float other) {{
  for (int i = 0; i < 8; i++) {{
    #pragma HLS pipeline II=1
    y[i] = {numerator} / x[i];
  }}
}}
void top(float x[8], float y[8]) {{
  #pragma HLS DATAFLOW
  inverse(x, y, 1.0, 0.5);
}}
""",
        tmp_path,
    )
    assert found.resources.dsps == dsps
