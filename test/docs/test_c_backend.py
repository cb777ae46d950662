"""The C backend of the documentation: a backend from outside, through all of braid."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from test.unit.runtime.test_run_model import run_model as run_model

ROOT = Path(__file__).parents[2]
MODULE = """
func.func @main(%x: tensor<4x8xf32> {braid.name = "x"}) -> (tensor<4x8xf32> {braid.name = "y"}) {
  %0 = braid.neg %x {braid.name = "neg"} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = braid.mul %0, %x {braid.name = "mul"} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %y = braid.softmax %1 {dim = 1 : i64, braid.name = "y"} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  func.return %y : tensor<4x8xf32>
}
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "model.mlir").write_text(MODULE)
    return tmp_path


def run(environment: dict[str, str], directory: Path, *command: str) -> tuple[int, str]:
    result = subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, check=False
    )
    return result.returncode, result.stdout + result.stderr


def verify(environment: dict[str, str], directory: Path) -> tuple[int, str]:
    command = ("braid", "verify", "model.mlir", "--target", "c-board", "--jobs", "1")
    return run(environment, directory, *command)


def test_its_code_is_what_runs(environment: dict[str, str], directory: Path) -> None:
    status, output = verify(environment, directory)
    assert status == 0 and "agree with the interpreter" in output, output
    copy = directory / "copy" / "braid_c"
    shutil.copytree(ROOT / "docs" / "examples" / "c_backend" / "braid_c", copy)
    source = copy / "source.py"
    source.write_text(source.read_text().replace('"{} * {}"', '"{} + {}"'))
    wrong = {**environment, "PYTHONPATH": f"{copy.parent}:{environment['PYTHONPATH']}"}
    status, output = verify(wrong, directory)
    assert status == 1 and "first op that differs" in output, output


def sources_of_braid() -> dict[str, bytes]:
    """Every file of the import package, by its path, as a package elsewhere finds it."""
    rooms = [each.resolve() for each in (ROOT / "braid").iterdir() if each.is_dir()]
    files = {file for room in (ROOT / "braid", *rooms) for file in room.rglob("*")}
    return {
        str(file.relative_to(ROOT)): file.read_bytes()
        for file in files
        if file.is_file() and file.suffix not in (".pyc", ".so")
    }


def test_nothing_of_braid_changes(environment: dict[str, str], directory: Path) -> None:
    """The backend consists of separate files, independent of braid's backends."""
    before = sources_of_braid()
    status, output = verify(environment, directory)
    assert status == 0, output
    package = ROOT / "docs" / "examples" / "c_backend"
    own = [f for f in package.rglob("*") if f.is_file() and "__pycache__" not in f.parts]
    assert len(own) <= 6  # with pyproject.toml and __init__.py
    assert sources_of_braid() == before and len(before) > 500
    names = (b"braid_c.", b"c-board", b"c_board", b"CBackend")
    knowing = [path for path, text in before.items() if any(name in text for name in names)]
    assert knowing == []
    # The same command without the package's entry points: braid has nothing of it.
    paths = environment["PYTHONPATH"].split(os.pathsep)
    without = {**environment, "PYTHONPATH": paths[-1]}
    status, output = verify(without, directory)
    assert status == 1 and "c-board" in output, output


def test_without_a_compiler_nothing_is_written(
    environment: dict[str, str], directory: Path
) -> None:
    command = ("braid", "compile", "model.mlir", "--target", "c-board", "-o", "m.braid")
    status, output = run({**environment, "CC": "no-such-compiler"}, directory, *command)
    assert status == 1 and "error: the C compiler 'no-such-compiler' fails" in output, output
    assert not (directory / "m.braid").exists()


def with_backends(environment: dict[str, str], directory: Path, **backends: str) -> dict[str, str]:
    """Return an environment with one more package that has these backends."""
    info = directory / "site" / "other-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1\n")
    entries = "".join(f"{name} = {value}\n" for name, value in backends.items())
    (info / "entry_points.txt").write_text(f"[braid.backends]\n{entries}")
    return {**environment, "PYTHONPATH": f"{directory / 'site'}:{environment['PYTHONPATH']}"}


def test_no_name_means_anything(environment: dict[str, str], directory: Path) -> None:
    """Backend `cpu` under another name, in a copy of the target: all works as before."""
    renamed = with_backends(environment, directory, zzz="braid.lowering.cpu.backend:CpuBackend")
    host = (ROOT / "targets" / "machines" / "host.toml").read_text()
    (directory / "mine.toml").write_text(host.replace('"cpu"', '"zzz"').replace("cpu:0", "zzz:0"))
    for command in (
        ("verify", "model.mlir"),
        ("compile", "model.mlir", "-o", "m.braid"),
        ("compile", "model.mlir", "--emit=linalg"),
        ("explain", "model.mlir", "--layouts", "--memory"),
        ("run", "model.mlir", "--random"),
    ):
        status, output = run(renamed, directory, "braid", *command, "--target", "mine.toml")
        assert status == 0, output
    shown = [
        run(renamed, directory, "braid", "compile", "model.mlir", "--emit=linalg", *target)[1]
        for target in (("--target", "mine.toml"), ())
    ]
    assert "vector.store" in shown[0] and shown[0] == shown[1]


def test_another_name_in_cache_and_artifacts(
    environment: dict[str, str], directory: Path, run_model: Path
) -> None:
    """Kernels are in the cache however the backend is called, and C runs what it made."""
    named = with_backends(environment, directory, zzz="braid.lowering.cpu.backend:CpuBackend")
    named["BRAID_CACHE_DIR"] = str(directory / "cache")
    host = (ROOT / "targets" / "machines" / "host.toml").read_text()
    (directory / "mine.toml").write_text(host.replace('"cpu"', '"zzz"').replace("cpu:0", "zzz:0"))
    kept: list[set[str]] = []
    norms: list[str] = []
    for target in ("mine.toml", "mine.toml", "host"):
        command = ("compile", "model.mlir", "--target", target, "-o", "m.braid", "--jobs", "1")
        status, output = run(named, directory, "braid", *command)
        assert status == 0, output
        files = (file for file in (directory / "cache").rglob("*") if file.is_file())
        # Artifacts are kept by the file of the target, too; kernels are not.
        kept.append({file.name for file in files if file.suffix == ".entry"})
        status, output = run(named, directory, str(run_model), "m.braid")
        assert status == 0 and output.startswith("y: "), output
        norms.append(output)
    assert kept[0] and kept[0] == kept[1] == kept[2]
    assert len(set(norms)) == 1
    inspected = run(named, directory, "braid", "inspect", "m.braid")
    assert inspected[0] == 0, inspected[1]


def test_backends_that_cannot_be_asked(environment: dict[str, str], directory: Path) -> None:
    toml = (ROOT / "docs/examples/c_backend/braid_c/c_board.toml").read_text()
    (directory / "b.toml").write_text(toml.replace('"c"', '"d"'))
    command = ("braid", "compile", "model.mlir", "--target", "b.toml")
    status, output = run(environment, directory, *command)
    assert (
        status == 1 and "there is no backend 'd', only 'c', 'cpu', 'fpga', 'gpu', 'npu'" in output
    ), output
    for value, message in (
        ("no_such:Backend", "'d' of 'braid.backends' cannot be loaded"),
        ("pathlib:PurePath", "backend 'd' has no 'stages', 'families', 'prepare', 'emit'"),
        ("os:sep", "is '/', expected a class"),
    ):
        shutil.rmtree(directory / "site", ignore_errors=True)
        broken = with_backends(environment, directory, d=value)
        status, output = run(broken, directory, *command)
        assert status == 1 and message in output, output
