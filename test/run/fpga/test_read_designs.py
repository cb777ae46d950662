"""HLS C++ that is read again: what it computes, and how long it takes where FIFOs are too small."""

import re
from pathlib import Path

import numpy as np
import pytest

from benchmarks.fpga.polybench import atax, expected, run
from benchmarks.fpga.reader import UnsupportedCode, read_design
from braid.lowering.fpga.operators import vitis_operators
from braid.solvers.hls.estimate import Estimate, estimate


def estimated(text: str, folder: Path) -> Estimate:
    path = folder / "kernel.cpp"
    path.write_text(text)
    return estimate(read_design(path), vitis_operators())


def test_stages_of_atax_run_at_the_same_time(tmp_path: Path) -> None:
    kernel = atax()
    text = "#include <hls_stream.h>\n" + kernel.text
    rng = np.random.default_rng(1)
    given = [rng.normal(size=shape).astype(np.float32) for shape in kernel.shapes[:-1]]
    np.testing.assert_allclose(run(text, kernel, given), expected("atax", given), rtol=0, atol=0.05)
    found = estimated(text, tmp_path)
    # One block of five has to be there first, then each makes 20 products a cycle.
    least = kernel.products // 2 // 20
    assert least * 6 // 5 < found.cycles < least * 6 // 5 + 100
    assert 200 <= found.resources.dsps <= 202


def test_smaller_fifos_take_longer(tmp_path: Path) -> None:
    text = atax().text
    cycles = [
        estimated(
            re.sub(r"variable=s depth=\d+", f"variable=s depth={depth}", text), tmp_path
        ).cycles
        for depth in (39, 8, 2)
    ]
    assert cycles[0] < cycles[1] < cycles[2]


@pytest.mark.parametrize(
    "changed, expected_error",
    [("j < n;", "a loop that does not count"), ("j < 41; j += 2", "a loop that does not count")],
)
def test_what_is_not_read_is_told_with_its_line(
    changed: str, expected_error: str, tmp_path: Path
) -> None:
    path = tmp_path / "kernel.cpp"
    path.write_text(
        re.sub(r"j < 41;( j\+\+)?", changed + r"\1" * ("+=" not in changed), atax().text)
    )
    with pytest.raises(UnsupportedCode, match=rf"\d+:\d+: {expected_error}"):
        read_design(path)
