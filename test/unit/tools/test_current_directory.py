"""Processes that braid starts import nothing from the current directory."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from braid.client import Client
from braid.support.python_process import python_command, python_environment, python_flags

ROOT = Path(__file__).parents[3]
BRAID = Path(sys.executable).with_name("braid")

RECORDER = """
import os, sys
file = open(os.path.join({folder!r}, str(os.getpid())), "w", buffering=1)
file.write(" ".join(sys.orig_argv).replace(chr(10), " ") + chr(10))
file.write("".join(name + chr(10) for name in list(sys.modules)))
def write(event, of):
    if event == "import":
        file.write(of[0] + chr(10))
sys.addaudithook(write)
"""
"""Writes down all that a process imports, or looks for in vain, until it is killed."""

PLANTED = """
with open({log!r}, "a") as file:
    file.write(__name__ + chr(10))
raise ImportError("a planted module")
"""

MODEL = """
!row = tensor<4x16xf32>
!sum = tensor<4x1xf32>

func.func @main(%x: !row, %w: tensor<16x16xf32>) -> (!row, !sum) {
  %y = braid.matmul %x, %w : (!row, tensor<16x16xf32>) -> !row
  %z = braid.reduce %x {kind = "maximum", dims = array<i64: 1>} : (!row) -> !sum
  func.return %y, %z : !row, !sum
}
"""


def braid(folder: Path, environment: Mapping[str, str], *arguments: str) -> None:
    done = subprocess.run(
        [BRAID, *arguments], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def compiles(folder: Path, environment: Mapping[str, str]) -> list[str]:
    braid(folder, environment, "compile", "model.mlir", "--jobs", "2", "-o", "model.braid")
    return ["braid.lowering.host.codegen.worker"]


def tunes_and_serves(folder: Path, environment: Mapping[str, str]) -> list[str]:
    braid(folder, environment, "tune", "model.mlir", "--trials", "1", "--jobs", "1")
    npu = ("--target", "npu-small", "--jobs", "2", "--order-seconds", "0.1", "-o", "model.bin")
    braid(folder, environment, "compile", "model.mlir", *npu)
    with subprocess.Popen(
        [BRAID, "serve", "--port", "0"],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        try:
            assert server.stdout is not None
            token, url = (server.stdout.readline().split()[-1] for _ in range(2))
            client = Client(url.rstrip("/"), token)
            task = client.submit(folder / "model.mlir", on_miss="default")
            assert client.wait(task)["state"] == "done"
            inputs = {"input0": np.ones((4, 16), "f4"), "input1": np.ones((16, 16), "f4")}
            assert client.run(task, inputs)
        finally:
            server.terminate()
    service = [f"braid.tools.service.{kind}_worker" for kind in ("task", "run")]
    return ["braid.tuning.worker", *service]


@pytest.mark.parametrize("use", [compiles, pytest.param(tunes_and_serves, marks=pytest.mark.slow)])
def test_nothing_planted_there_is_imported(
    use: Callable[[Path, Mapping[str, str]], list[str]], tmp_path: Path
) -> None:
    for name in ("plain", "planted", "imports", "site"):
        (tmp_path / name).mkdir()
    (tmp_path / "plain" / "model.mlir").write_text(MODEL)
    (tmp_path / "planted" / "model.mlir").write_text(MODEL)
    (tmp_path / "site" / "sitecustomize.py").write_text(
        RECORDER.format(folder=str(tmp_path / "imports"))
    )
    own = {**os.environ, "BRAID_CACHE_DIR": str(tmp_path / "cache-1")}
    modules = use(tmp_path / "plain", {**own, "PYTHONPATH": str(tmp_path / "site")})
    found = [file.read_text().splitlines() for file in (tmp_path / "imports").iterdir()]
    commands = "\n".join(lines[0] for lines in found)
    for module in modules:
        assert module in commands, f"no process of {module} was started: nothing is tested"
    names = {line.partition(".")[0] for lines in found for line in lines[1:]} - {"__main__"}
    assert {"struct", "pickle", "queue", "numpy"} <= names and len(names) > 150
    log = tmp_path / "ran"
    for name in names | {"sitecustomize", "usercustomize"}:
        (tmp_path / "planted" / f"{name}.py").write_text(PLANTED.format(log=str(log)))
    use(tmp_path / "planted", {**own, "BRAID_CACHE_DIR": str(tmp_path / "cache-2")})
    assert not log.exists(), log.read_text()


def test_all_processes_are_started_in_one_way() -> None:
    """What starts a Python is `python_process` and the one that it gives its flags to."""
    packages = [ROOT / name for name in (*(ROOT / "braid").glob("*/"), "braid")]
    files = {file for package in packages for file in package.rglob("*.py")}
    assert len(files) > 500
    found = re.compile(r"sys\.executable|multiprocessing|ProcessPool")
    names = {file.name for file in files if found.search(file.read_text())}
    assert names == {"python_process.py", "yosys.py", "forks.py"}


@pytest.mark.parametrize("path", ["", ":", ":{site}", "{site}::", "{site}"])
def test_an_empty_part_of_the_path_is_not_the_current_directory(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it is to Python; what the path names is there, as packages that add to braid are."""
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "struct.py").write_text("raise ImportError")
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "own.py").write_text("import struct, sys; print(*sys.argv[1:])")
    (tmp_path / "here" / "own.py").write_text("print('planted')")
    monkeypatch.setenv("PYTHONPATH", path.format(site=tmp_path / "site"))
    done = subprocess.run(
        python_command("own", "said"),
        env=python_environment(),
        cwd=tmp_path / "here",
        capture_output=True,
        text=True,
    )
    if "site" in path:
        assert (done.stdout, done.returncode) == ("said\n", 0), done.stderr
    else:
        assert "No module named own" in done.stderr


def test_the_site_of_the_user_is_searched(tmp_path: Path) -> None:
    """By a Python that has one; that of a virtual environment has none."""
    python = getattr(sys, "_base_executable", sys.executable)
    environment = {**python_environment(), "PYTHONUSERBASE": str(tmp_path)}
    place = "import sys, sysconfig; print(sysconfig.get_path('purelib', 'posix_user'))"
    site = subprocess.run(
        [python, "-c", place], env=environment, capture_output=True, text=True, check=True
    ).stdout.strip()
    (Path(site) / "braid").mkdir(parents=True)
    (Path(site) / "braid" / "__init__.py").write_text("")
    (Path(site) / "own.py").write_text("print('of the user')")
    script, _, module = python_command("own")[1 + len(python_flags()) :]
    package = json.dumps([f"{site}/braid/__init__.py", f"{site}/braid"])
    command = [python, *python_flags(), script, package, module]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.stdout == "of the user\n", done.stderr
