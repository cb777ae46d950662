"""The output of `braid explain` about circuits."""

import re
import subprocess
import sys
from pathlib import Path

import onnx
import pytest

from braid.driver.compile_source import emit_model
from braid.driver.options import CompileOptions
from braid.tools.explain.circuit_view import circuit_views
from test.run.fpga.exported import plain, quantized

BRAID = Path(sys.executable).with_name("braid")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "small.onnx"
    onnx.save(quantized(plain(1, 8, (3,))), path)
    return path


def test_stages_and_channels_over_time(model: Path) -> None:
    """The times are those of the report; each channel is full at some time."""
    report = str(emit_model(model, "report", CompileOptions(target="fpga-u280")))
    stages, channels = circuit_views(
        str(emit_model(model, "timeline", CompileOptions(target="fpga-u280")))
    )
    (interval, one) = re.findall(r"(\d+) cycles from .*, (\d+) of one", report)[0]
    assert stages.summary.startswith(f"{interval} cycles from image to image")
    ends = [max(bar.end for bar in stages.bars if bar.colour == image) for image in (0, 1)]
    assert ends[0] == int(one) and ends[1] - ends[0] <= int(interval)
    assert len(stages.bars) == 2 * len(stages.lanes)
    assert re.search(r"\d+ of 9,024 DSP slices", stages.summary)
    assert stages.table is not None and channels.table is not None
    assert sum("bottleneck" in row[0] for row in stages.table.rows) == 1
    for lane, (_, depth, _, most) in enumerate(channels.table.rows):
        assert depth == most
        assert any(
            bar.lane == lane and f"at most {depth} of {depth} " in bar.label
            for bar in channels.bars
        )


def test_the_command_lists_and_draws_them(model: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    command = [BRAID, "explain", model, "--circuits", "--html", page]
    done = subprocess.run(
        [*command, "--target", "fpga-zynq7020"], capture_output=True, text=True, check=True
    )
    assert "conv * bottleneck" in done.stdout and "Channels of cluster_" in done.stdout
    assert "Circuit cluster_" in page.read_text()
    failed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert failed.returncode == 1
    assert "no part of the model becomes a circuit" in failed.stderr
