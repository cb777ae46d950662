"""The C example runs streams without Python."""

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

import braid
from test.c_programs import build, with_runtime
from test.run.streams.conftest import SIZE, chain, parse

EXAMPLE = Path(__file__).parents[3] / "runtime" / "native" / "examples" / "stream_model.c"


@pytest.fixture(scope="module")
def stream_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("example") / "stream_model"
    return build(program, EXAMPLE, *with_runtime())


def norms(model: braid.Model, count: int) -> list[float]:
    ramp = (np.arange(SIZE) % 17 / 16.0).astype(np.float32)
    results = (np.asarray(model(ramp + np.float32(number))) for number in range(count))
    return [float(np.linalg.norm(y.astype(np.float64))) for y in results]


@pytest.mark.parametrize("target", ["host-2", "host"])
def test_results_in_order(
    stream_model: Path, two_cores: braid.Model, target: str, tmp_path: Path
) -> None:
    whole = braid.compile(parse(chain("cpu:0", "cpu:0")))
    model = two_cores if target == "host-2" else whole
    model.save(tmp_path / "m.braid")
    command = [stream_model, tmp_path / "m.braid", "40"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    numbers, said = zip(*(line.split(": ") for line in done.stdout.splitlines()), strict=True)
    assert [int(number) for number in numbers] == list(range(40))
    assert [float(norm) for norm in said] == pytest.approx(norms(model, 40), rel=1e-5)
    stages = re.findall(r"@\S+ on (\S+): 40 times, \d", done.stderr)
    assert stages == (["cpu:0", "cpu:1"] * 2 if target == "host-2" else [])


def test_errors_of_c(
    stream_model: Path, faulty: braid.Model, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    faulty.save(tmp_path / "m.braid")
    monkeypatch.setenv("FAULTY_FAILS", "300")
    command = [stream_model, tmp_path / "m.braid", "200"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1 and len(done.stdout.splitlines()) < 200
    why = r"error: (the stream has ended: )?'@cluster_\d' on 'cpu:1'.* by chance"
    assert re.search(why, done.stderr)
    command = [stream_model, tmp_path / "none.braid"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "cannot open" in done.stderr
