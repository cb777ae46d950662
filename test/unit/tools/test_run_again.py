"""`braid run` and `braid compile` use what was compiled before, where nothing has changed."""

import hashlib
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import braid.driver.compilation_key
from braid.driver.compilation_key import compilation_key, state_of
from braid.driver.options import CompileOptions
from braid.runtime.artifact_cache import ArtifactCache
from braid.support.records.record import Record
from braid.support.records.record_store import default_store
from test.sum_model import sum_model

DEFAULTS = CompileOptions()
COMPILER = {"xdsl", "onnx", "llvmlite", "torch_mlir", "ortools", "braid.driver.compile_source"}
PROGRAM = """
import sys
from braid.tools.cli import main
sys.argv = ["braid", *sys.argv[1:]]
try:
    main()
finally:
    print(*sys.modules, sep="\\n", file=sys.stderr)
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BRAID_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("BRAID_CACHE_LIMIT")
    return tmp_path / "cache"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_model(tmp_path / "sum.onnx", 1.0)


def write_model(path: Path, weight: float, *, external: bool = False) -> Path:
    """Write a model that adds 64 weights to its input."""
    proto = sum_model(weight, rows="n")
    onnx.save(  # pyright: ignore[reportUnknownMemberType]
        proto, path, save_as_external_data=external, location="weights.bin", size_threshold=0
    )
    return path


def run(model: Path, output: Path, *options: str) -> bool:
    """Run the model on zeros in a new process; return whether that imported the compiler."""
    zeros = output.with_suffix(".in.npy")
    np.save(zeros, np.zeros((2, 64), np.float32))
    arguments = [f"--input=x={zeros}", f"--output-dir={output}", "--shape=x=2,64", *options]
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, "run", model, *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-2000:]
    return bool(COMPILER & set(result.stderr.split()))


def result_of(output: Path) -> float:
    """Return the value that all elements of the output have."""
    (value,) = np.unique(np.load(output / "y.npy"))
    return float(value)


def artifacts(cache: Path) -> list[Path]:
    return sorted((cache / "compiled" / "models").rglob("*.braid"))


def test_second_run_imports_no_compiler(model: Path, cache: Path, tmp_path: Path) -> None:
    assert run(model, tmp_path / "first")
    assert len(artifacts(cache)) == 1
    assert not run(model, tmp_path / "second")
    assert result_of(tmp_path / "first") == result_of(tmp_path / "second") == 1.0
    assert run(model, tmp_path / "third", "--no-cache")
    # Another model under the same name.
    write_model(model, 2.0)
    assert run(model, tmp_path / "fourth")
    assert result_of(tmp_path / "fourth") == 2.0


def compile_to(output: Path, model: Path, *options: str) -> bool:
    """Compiles the model in a process of its own; whether that imported the compiler."""
    arguments = ["compile", model, "-o", output, *options]
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr[-2000:]
    return bool(COMPILER & set(result.stderr.split()))


def test_compiling_again_copies(model: Path, cache: Path, tmp_path: Path) -> None:
    first, second, profiled = (tmp_path / f"{name}.braid" for name in ("a", "b", "c"))
    assert compile_to(first, model, "--shape=x=2,64")
    assert not compile_to(second, model, "--shape=x=2,64", "--emit=artifact", "--jobs=1")
    assert first.read_bytes() == second.read_bytes()
    assert len(artifacts(cache)) == 1
    assert compile_to(second, model, "--shape=x=2,64", "--no-cache")
    assert first.read_bytes() == second.read_bytes()
    # What was compiled for one command serves the other, if results are to be alike.
    assert not run(model, tmp_path / "run")
    assert run(model, tmp_path / "strict", "--numerics=strict")
    assert not compile_to(second, model, "--shape=x=2,64", "--numerics=strict")
    assert compile_to(profiled, model, "--shape=x=2,64", "--profile")
    assert compile_to(second, model, "--shape=x=2,64", "--inter-op-threads=2")
    assert len(artifacts(cache)) == 4
    write_model(model, 2.0)
    assert compile_to(second, model, "--shape=x=2,64")
    assert first.read_bytes() != second.read_bytes()


def test_memory_is_told_of_what_is_kept(model: Path, cache: Path, tmp_path: Path) -> None:
    output = tmp_path / "sum.braid"
    reports: list[bytes] = []
    for is_first in (True, False):
        report = tmp_path / f"{is_first}.json"
        options = ("--shape=x=2,64", "--memory-report", f"--memory-json={report}")
        assert compile_to(output, model, *options) == is_first
        reports.append(report.read_bytes())
    assert reports[0] == reports[1]
    (function,) = json.loads(reports[0])
    assert function["output_bytes"] == 2 * 64 * 4


@pytest.mark.parametrize("option", ["--order-seconds=1", "--verify-decisions", "--emulate"])
def test_what_measures_or_looks_on_compiles_each_time(
    model: Path, cache: Path, tmp_path: Path, option: str
) -> None:
    for _ in range(2):
        assert compile_to(tmp_path / "sum.braid", model, "--shape=x=2,64", option)
    assert artifacts(cache) == []


@pytest.mark.parametrize("damage", ["cut", "changed"])
def test_damaged_artifact_is_made_again(
    model: Path, cache: Path, tmp_path: Path, damage: str
) -> None:
    run(model, tmp_path / "first")
    (artifact,) = artifacts(cache)
    data = bytearray(artifact.read_bytes())
    if damage == "changed":
        data[4096] ^= 255  # among the weights
    kept = {"cut": len(data) // 2, "changed": len(data)}[damage]
    artifact.write_bytes(data[:kept])
    assert run(model, tmp_path / "second")
    assert not run(model, tmp_path / "third")
    assert result_of(tmp_path / "second") == result_of(tmp_path / "third") == 1.0


def test_key_changes_with_what_bears_on_the_model(
    model: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "target.toml"

    def key(**options: Any) -> str | None:
        given = CompileOptions(**options)
        state = state_of(model, given)
        assert state is not None
        return compilation_key(state, given)

    def changed_records() -> str | None:
        default_store().append([Record("cost", "key", {"seconds": 1.0})])
        return key()

    def changed_target() -> str | None:
        target.write_text("# two")
        return key(target=target)

    def changed_variable() -> str | None:
        monkeypatch.setenv("BRAID_VERIFY_DECISIONS", "0")
        return key()

    def changed_model() -> str | None:
        write_model(model, 3.0)
        return key()

    target.write_text("# one")
    keys = [key(), key(profile=True), key(shapes={"x": (2, 64)}), key(target="npu-small")]
    keys += [key(target=target), changed_target(), changed_records(), changed_variable()]
    keys.append(changed_model())
    assert None not in keys
    assert len(set(keys)) == len(keys)
    assert key() == keys[-1]


@pytest.mark.parametrize("piece", [1, 2, 7, 16, 2**20])
def test_models_with_other_files_have_no_key(
    cache: Path, tmp_path: Path, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What lies in other files may change while the model's own does not."""
    monkeypatch.setattr(braid.driver.compilation_key, "_PIECE", piece)
    external = write_model(tmp_path / "external.onnx", 1.0, external=True)
    text = tmp_path / "parameters.mlir"
    text.write_text('module attributes {braid.parameters = "weights.safetensors"} {}')
    escaped = tmp_path / "escaped.mlir"
    escaped.write_text('module attributes {"braid\\2Eparameters" = "weights.safetensors"} {}')
    for path in (external, text, escaped, tmp_path / "missing.onnx", tmp_path):
        assert state_of(path, DEFAULTS) is None
    whole = write_model(tmp_path / "whole.onnx", 1.0)
    data = whole.read_bytes()
    state, of_bytes = state_of(whole, DEFAULTS), state_of(data, DEFAULTS)
    assert state is not None and of_bytes is not None
    assert state.digests == of_bytes.digests == {"model": hashlib.sha256(data).hexdigest()}
    for path in (external, text, escaped):
        assert state_of(path.read_bytes(), DEFAULTS) is None


def keep(cache: ArtifactCache, key: str, size: int, *, age: int) -> None:
    """Keep bytes, which were last used long ago once they are kept."""
    if cache.put(key, lambda path: path.write_bytes(bytes(size))):
        os.utime(cache._path(key), ns=(10**18 - age, 10**18 - age))


def test_artifacts_that_were_not_used_for_longest_go_first(tmp_path: Path) -> None:
    cache = ArtifactCache(tmp_path, limit=300)
    for age, key in enumerate(("aa1", "bb2", "cc3")):
        keep(cache, key, 100, age=age)
    assert [path.name for path in cache.files()] == ["1.braid", "3.braid"]
    # What is too much alone takes the place of no other.
    keep(cache, "dd4", 300, age=0)
    assert [path.name for path in cache.files()] == ["1.braid", "3.braid"]


def test_only_their_owner_may_read_artifacts(tmp_path: Path) -> None:
    cache = ArtifactCache(tmp_path / "compiled" / "models")
    keep(cache, "aa1", 100, age=0)
    assert len(list(cache.files())) == 1
    assert cache.directory.stat().st_mode & 0o777 == 0o700


def test_what_a_killed_process_left(tmp_path: Path) -> None:
    cache = ArtifactCache(tmp_path)
    keep(cache, "aa1", 100, age=0)
    left, written = (tmp_path / "aa" / f".{name}.braid.x" for name in ("2", "3"))
    for half in (left, written):
        half.write_bytes(bytes(100))
    os.utime(left, ns=(0, 0))
    keep(cache, "bb4", 100, age=0)
    assert not left.exists()
    assert written.exists()
    assert len(list(cache.files())) == 2


def test_artifacts_that_only_their_owner_may_touch(
    model: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cache of another user, or on a file system that is read-only."""
    run(model, tmp_path / "first")
    (artifact,) = artifacts(cache)
    models = ArtifactCache(cache / "compiled" / "models")

    def refuse(*_: Any) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "utime", refuse)
    found = models.get(artifact.parent.name + artifact.stem)
    assert found is not None and found.path == artifact

    def deny(*_: Any) -> bool:
        return False

    monkeypatch.setattr(os, "access", deny)
    assert models.get(artifact.parent.name + artifact.stem) is None
    assert artifact.exists()


def test_what_cannot_be_written_is_not_kept(tmp_path: Path) -> None:
    def fail(path: Path) -> None:
        raise OSError(28, "No space left on device")

    cache = ArtifactCache(tmp_path / "file")
    (tmp_path / "file").write_text("")
    cache.put("aa1", fail)
    assert list(cache.files()) == []


def test_two_processes_at_once(model: Path, cache: Path, tmp_path: Path) -> None:
    outputs = [tmp_path / str(number) for number in range(2)]
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(partial(run, model), outputs))
    assert [result_of(output) for output in outputs] == [1.0, 1.0]
    assert len(artifacts(cache)) == 1
    assert not run(model, tmp_path / "third")


def test_commands_know_models(model: Path, cache: Path, tmp_path: Path) -> None:
    def command(name: str) -> subprocess.CompletedProcess[str]:
        arguments = [sys.executable, "-m", "braid.tools.cli", "cache", name]
        return subprocess.run(arguments, capture_output=True, text=True, check=False)

    run(model, tmp_path / "first")
    assert "models" in command("show").stdout
    assert command("verify").returncode == 0
    (artifact,) = artifacts(cache)
    data = artifact.read_bytes()
    artifact.write_bytes(data[:-1])
    verdict = command("verify")
    assert verdict.returncode == 1
    assert str(artifact) in verdict.stdout.replace("\n", "")
    assert command("clear").returncode == 0
    assert artifacts(cache) == []
