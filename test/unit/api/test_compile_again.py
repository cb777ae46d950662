"""`braid.compile` loads what was compiled before, where nothing has changed, and only there."""

import json
import platform
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from xdsl.ir import SSAValue

import braid
from braid.analysis.diagnostics.remarks import collect_remarks
from braid.dialects.braid.settings import settings_of
from braid.driver import lowered_model
from braid.driver.lower_source import Lowering
from braid.frontends.onnx.building.builder import Builder
from braid.frontends.onnx.building.expressions import apply
from braid.frontends.onnx.building.node import Node
from braid.frontends.onnx.building.registry import importer
from braid.frontends.parameters import write_parameters
from braid.runtime.artifact_cache import ArtifactCache
from braid.support import compile_scope, installation
from braid.support.diagnostics import Diagnostic, emit, handle_diagnostics
from braid.support.errors import BraidError
from braid.support.settings import Numerics, Settings
from test.sum_model import sum_model

X = np.arange(128, dtype=np.float32).reshape(2, 64)
EXTERNAL = """
module attributes {braid.parameters = "w.safetensors"} {
  func.func @main(%x: tensor<2x64xf32>) -> tensor<2x64xf32> {
    %w = braid.parameter {key = "w"} : tensor<2x64xf32>
    %y = braid.add %x, %w : (tensor<2x64xf32>, tensor<2x64xf32>) -> tensor<2x64xf32>
    return %y : tensor<2x64xf32>
  }
}
"""


class Compilations:
    """Compiles by `braid.compile`, and says how often nothing was there to load."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        from braid.driver import compile_source

        lowering = compile_source._lowering  # pyright: ignore[reportPrivateUsage]

        def counted(*arguments: Any) -> Any:
            self.count += 1
            return lowering(*arguments)

        monkeypatch.setattr(compile_source, "_lowering", counted)

    def __call__(self, source: Any, **options: Any) -> braid.Model:
        return braid.compile(source, jobs=1, **options)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BRAID_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("BRAID_CACHE_LIMIT")
    return tmp_path / "cache"


@pytest.fixture
def compiled(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Compilations:
    return Compilations(monkeypatch)


def write(path: Path, model: onnx.ModelProto) -> Path:
    path.write_bytes(model.SerializeToString())
    return path


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write(tmp_path / "sum.onnx", sum_model(1.0))


def artifacts(cache: Path) -> list[Path]:
    return sorted((cache / "compiled" / "models").rglob("*.braid"))


def test_the_model_is_the_same(compiled: Compilations, model: Path, tmp_path: Path) -> None:
    first, second = compiled(model), compiled(str(model), threads=2)
    assert compiled.count == 1
    np.testing.assert_array_equal(first(X), X + 1)
    np.testing.assert_array_equal(second(X), X + 1)
    for name in ("inputs", "outputs", "arena_bytes", "memory", "kernels", "devices"):
        assert getattr(first, name) == getattr(second, name)
    assert first.memory[0].output_bytes == X.nbytes
    assert first.kernels.total == 1
    anew = compiled(model, cache=False)
    assert compiled.count == 2
    for number, each in enumerate((first, second, anew)):
        each.save(tmp_path / f"{number}.braid")
    contents = [(tmp_path / f"{number}.braid").read_bytes() for number in range(3)]
    assert contents[0] == contents[1] == contents[2]
    assert braid.load(tmp_path / "0.braid").memory == first.memory


def test_what_bears_on_the_model_compiles_it_anew(
    compiled: Compilations, model: Path, cache: Path
) -> None:
    compiled(model)
    profiled = compiled(model, profile=True)
    compiled(model, numerics="strict")
    compiled(model, memory_budget="1MiB")
    assert compiled.count == len(artifacts(cache)) == 4
    compiled(model, shapes={}, pin=[], load=False)
    assert compiled.count == 4
    write(model, sum_model(2.0))
    np.testing.assert_array_equal(compiled(model)(X), X + 2)
    assert compiled.count == 5
    # Each model counts its own runs.
    again = compiled(model.with_name("sum.onnx"), profile=True)
    assert compiled.count == 6
    twice = compiled(model, profile=True)
    assert compiled.count == 6
    for runs, each in enumerate((profiled, again, twice), 1):
        for _ in range(runs):
            each(X)
    for runs, each in enumerate((profiled, again, twice), 1):
        assert {entry.count for entry in each.profile().values()} == {runs}


def test_bytes(compiled: Compilations, cache: Path) -> None:
    for weight in (1.0, 2.0, 1.0):
        compiled_sum = compiled(sum_model(weight).SerializeToString())
        np.testing.assert_array_equal(compiled_sum(X), X + weight)
    assert compiled.count == len(artifacts(cache)) == 2


@pytest.mark.parametrize(
    "options",
    [
        {"passes": "default"},
        {"emulate": True},
        {"kernels": "best"},
        {"untuned": "library"},
        {"order_seconds": 0.0, "target": "npu-small", "load": False},
        {"measure_orders": 0.0},
        {"parameters": {"v": np.zeros(64, np.float32)}},
        {"recompute": "fusion-rules=default tensor-threshold=1GiB"},
    ],
)
def test_options_without_a_key(
    compiled: Compilations, model: Path, cache: Path, options: dict[str, Any]
) -> None:
    for _ in range(2):
        compiled(model, **options)
    assert compiled.count == 2
    assert artifacts(cache) == []


@pytest.mark.parametrize(
    "options",
    [
        {"passes": []},
        {"numerics": []},
        {"unseen": ()},
        {"memory_budget": {}},
        {"unseen": np.zeros(2)},
    ],
)
def test_what_is_empty_is_not_what_is_left_out(
    compiled: Compilations, model: Path, options: dict[str, Any]
) -> None:
    compiled(model)
    for cache in (True, False):
        with pytest.raises(BraidError):
            compiled(model, cache=cache, **options)


def test_installed_since(
    compiled: Compilations,
    model: Path,
    cache: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The code of this process is older than what is installed."""
    monkeypatch.setattr(installation, "_first", [])
    compiled(model)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    (tmp_path / "added-1.0.dist-info").mkdir()
    for _ in range(2):
        compiled(model)
    assert compiled.count == 3
    assert len(artifacts(cache)) == 1


def test_what_is_neither_file_nor_bytes_has_no_key(compiled: Compilations, cache: Path) -> None:
    for _ in range(2):
        compiled(sum_model(1.0))
    assert compiled.count == 2
    assert artifacts(cache) == []


def test_files_that_options_name(
    compiled: Compilations, model: Path, tmp_path: Path, cache: Path
) -> None:
    parameters, profile = tmp_path / "w.safetensors", tmp_path / "profile.json"
    text = tmp_path / "sum.mlir"
    text.write_text(EXTERNAL.replace(' attributes {braid.parameters = "w.safetensors"}', ""))
    for weight in (3.0, 4.0, 3.0):
        with parameters.open("wb") as file:
            write_parameters(file, {"w": np.full((2, 64), weight, np.float32)})
        np.testing.assert_array_equal(compiled(text, parameters=parameters)(X), X + weight)
    assert compiled.count == 2
    ops = {name: {"count": 1, "seconds": 0.0} for name in compiled(model, profile=True).profile()}
    for count in (1, 2, 1):
        for op in ops.values():
            op["count"] = count
        profile.write_text(json.dumps({"ops": ops}))
        compiled(model, use_profile=profile)
    assert compiled.count == 5
    # Files that the model itself names may change while it does not.
    text.write_text(EXTERNAL)
    for weight in (5.0, 6.0):
        with parameters.open("wb") as file:
            write_parameters(file, {"w": np.full((2, 64), weight, np.float32)})
        np.testing.assert_array_equal(compiled(text)(X), X + weight)


def test_code_of_this_process_that_adds_to_the_compiler(
    compiled: Compilations, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An op that a script imports: the next script may do so otherwise."""
    model = write(tmp_path / "own.onnx", sum_model(1.0, op="TwiceSum", domain="own"))
    monkeypatch.setattr(compile_scope, "_extending", {"braid"})

    @importer("TwiceSum", domain="own")
    def own_sum(builder: Builder, node: Node) -> SSAValue:
        return apply(builder, "add", node.input(0), node.input(1))

    del own_sum
    for _ in range(2):
        compiled(model)
    assert compiled.count == 2
    assert artifacts(cache) == []


def test_settings_of_the_code_around(compiled: Compilations, model: Path, cache: Path) -> None:
    compiled(model)
    with collect_remarks() as remarks:
        compiled(model)
    assert remarks
    assert compiled.count == 2
    assert len(artifacts(cache)) == 1


def test_settings_are_part_of_the_key_whoever_gives_them(
    compiled: Compilations, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled(model)
    compiled(model, numerics="strict")
    assert compiled.count == 2
    monkeypatch.setenv("BRAID_NUMERICS", "strict")
    compiled(model)
    assert compiled.count == 2
    compiled(model, numerics="fast")
    assert compiled.count == 2
    monkeypatch.setenv("BRAID_NUMERICS", "no such numerics")
    with pytest.raises(BraidError, match="numerics are 'no such numerics', expected one of"):
        compiled(model)


def test_what_is_warned_of_is_seen_each_time(
    compiled: Compilations, model: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from braid.driver import lower_source

    check = lower_source.check_model

    def warn(module: Any) -> None:
        check(module)
        emit(Diagnostic("warning", "something is odd"))

    monkeypatch.setattr(lower_source, "check_model", warn)
    seen: list[Diagnostic] = []
    with handle_diagnostics(seen.append):
        for _ in range(2):
            compiled(model)
    assert [each.message for each in seen] == ["something is odd"] * 2
    compiled(model)
    assert compiled.count == 3
    assert artifacts(cache) == []


def test_a_library_is_linked_from_what_is_compiled_again(
    compiled: Compilations, model: Path, tmp_path: Path
) -> None:
    first, second = compiled(model), compiled(model)
    first.save_c_library(tmp_path / "first.so")
    assert compiled.count == 1
    second.save_c_library(tmp_path / "second.so")
    assert compiled.count == 2
    assert (tmp_path / "second.h").exists()
    write(model, sum_model(2.0))
    np.testing.assert_array_equal(second(X), X + 1)
    with pytest.raises(BraidError, match=r"'sum\.onnx', or a file that options name, is not"):
        second.save_c_library(tmp_path / "third.so")
    assert not (tmp_path / "third.so").exists()


def test_a_library_is_compiled_by_the_settings_of_the_model(
    compiled: Compilations, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled(model, numerics="strict")
    kept, seen = compiled(model, numerics="strict"), list[Settings]()
    lower = Lowering.within

    def noted(self: Lowering, *arguments: Any) -> Any:
        seen.append(settings_of(self.read().module))
        return lower(self, *arguments)

    monkeypatch.setattr(Lowering, "within", noted)
    kept.save_c_library(tmp_path / "kept.so")
    assert seen == [Settings(numerics=Numerics.STRICT)]


def test_a_library_is_compiled_where_other_things_have_changed(
    compiled: Compilations, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled(model)
    kept = compiled(model)
    monkeypatch.setenv("BRAID_SOMETHING", "else")
    kept.save_c_library(tmp_path / "kept.so")
    assert (tmp_path / "kept.h").exists()


def test_models_hold_no_descriptors(compiled: Compilations, cache: Path, tmp_path: Path) -> None:
    models = [compiled(sum_model(0.0).SerializeToString())]
    before = len(list(Path("/proc/self/fd").iterdir()))
    models += [compiled(sum_model(float(n)).SerializeToString()) for n in range(1, 4)]
    assert len(artifacts(cache)) == 4
    assert len(list(Path("/proc/self/fd").iterdir())) <= before
    for number, each in enumerate(models):
        np.testing.assert_array_equal(each(X), X + number)
        each.save_c_library(tmp_path / f"{number}.so")
    assert compiled.count == 4


def test_nothing_is_written_without_a_linker(
    compiled: Compilations, model: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("weights are written")

    monkeypatch.setenv("CC", "/nonexistent/cc")
    monkeypatch.setattr(lowered_model, "fill_artifact", refuse)
    np.testing.assert_array_equal(compiled(model)(X), X + 1)
    assert artifacts(cache) == []


@pytest.mark.parametrize("hindrance", ["file", "limit", "small", "name"])
def test_where_nothing_can_be_kept(
    compiled: Compilations,
    model: Path,
    cache: Path,
    hindrance: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if hindrance == "file":
        (cache / "compiled").mkdir(parents=True)
        (cache / "compiled" / "models").write_text("")
    elif hindrance == "name":
        monkeypatch.setenv("BRAID_CACHE_DIR", str(cache / ("x" * 300)))
    else:
        monkeypatch.setenv("BRAID_CACHE_LIMIT", {"limit": "0", "small": "100"}[hindrance])
    for _ in range(2):
        np.testing.assert_array_equal(compiled(model)(X), X + 1)
    assert compiled.count == 2
    assert artifacts(cache) == []


def test_a_model_outlives_its_artifact(
    compiled: Compilations, model: Path, cache: Path, tmp_path: Path
) -> None:
    first, second = compiled(model), compiled(model)
    (artifact,) = artifacts(cache)
    artifact.unlink()
    for each in (first, second):
        np.testing.assert_array_equal(each(X), X + 1)
        each.save(tmp_path / "saved.braid")
        np.testing.assert_array_equal(braid.load(tmp_path / "saved.braid")(X), X + 1)


def test_a_damaged_artifact_is_made_again(compiled: Compilations, model: Path, cache: Path) -> None:
    compiled(model)
    (artifact,) = artifacts(cache)
    data = bytearray(artifact.read_bytes())
    data[4096] ^= 255
    artifact.unlink()
    artifact.write_bytes(data)
    for _ in range(2):
        np.testing.assert_array_equal(compiled(model)(X), X + 1)
    assert compiled.count == 2


def test_for_another_cpu(compiled: Compilations, model: Path) -> None:
    saved = compiled(model, load=False)
    with pytest.raises(BraidError, match="compiled to be saved"):
        saved(X)
    again = compiled(model, load=False)
    with pytest.raises(BraidError, match="compiled to be saved"):
        again(X)
    np.testing.assert_array_equal(compiled(model)(X), X + 1)
    assert compiled.count == 1
    other = "neoverse-n1" if platform.machine() == "x86_64" else "haswell"
    for _ in range(2):
        with pytest.raises(BraidError, match="cannot run here"):
            compiled(model, cpu=other)(X)


def test_values_of_options_are_checked_first(compiled: Compilations, model: Path) -> None:
    compiled(model)
    for options in ({"threads": -1}, {"jobs": 0}, {"cache": "no"}, {"load": 1}):
        with pytest.raises(BraidError):
            braid.compile(model, **options)  # pyright: ignore[reportArgumentType]
    assert compiled.count == 1


def test_an_entry_that_another_process_replaces_is_not_read(
    model: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Between writing it and opening it: the artifact is in memory as well."""
    opened = ArtifactCache.opened

    def replaced(self: ArtifactCache, key: str) -> Any:
        for path in artifacts(cache):
            data = bytearray(path.read_bytes())
            data[data.index(b"\x7fELF") + 100] ^= 1
            (path.parent / "other").write_bytes(data)
            (path.parent / "other").replace(path)
        return opened(self, key)

    monkeypatch.setattr(ArtifactCache, "opened", replaced)
    braid.compile(model, load=False).save(tmp_path / "saved.braid")
    np.testing.assert_array_equal(braid.load(tmp_path / "saved.braid")(X), X + 1)
