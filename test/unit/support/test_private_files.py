"""Caches and records are private: modes, owners, umasks, planted and exchanged entries."""

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import braid
from braid.support import cache_files
from braid.support.atomic_file import atomic_file
from braid.support.cache_files import OBJECTS, RECORDS
from braid.support.claims import claims
from braid.support.errors import BraidError
from braid.support.object_cache import Kind, ObjectCache, default_cache
from braid.support.private_files import open_private, private_directory
from braid.support.records.record_store import default_store
from braid.targets.costs.cost_records import append_records, load_records
from braid.tools.cli import main
from braid.tools.service.storage import Tokens, open_database

MODEL = """
func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {{
  %y = braid.{op} %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  func.return %y : tensor<4x8xf32>
}}
"""
NOBODY = 65534
only_root = pytest.mark.skipif(os.geteuid() != 0, reason="gives files to other users")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BRAID_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("BRAID_CACHE_LIMIT", raising=False)
    monkeypatch.setattr(cache_files, "_warned", set[Path]())
    return tmp_path / "cache"


@pytest.fixture(params=[0o000, 0o002, 0o022, 0o077, 0o777], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def compile_model(folder: Path, op: str = "exp") -> np.ndarray:
    path = folder / f"{op}.mlir"
    if not path.exists():
        path.write_text(MODEL.format(op=op))
        path.chmod(0o644)
    return np.asarray(braid.compile(path, jobs=1)(np.full((4, 8), 0.25, np.float32)))


def modes(root: Path) -> dict[str, int]:
    found = {root: root.stat()} | {path: path.lstat() for path in root.rglob("*")}
    return {str(path.relative_to(root)): stat.S_IMODE(s.st_mode) for path, s in found.items()}


def test_all_that_is_kept_is_private_whatever_the_umask(
    cache: Path, tmp_path: Path, umask: int
) -> None:
    (tmp_path / "exp.mlir").write_text(MODEL.format(op="exp"))
    (tmp_path / "exp.mlir").chmod(0o644)
    compile_model(tmp_path)
    append_records({"key": 1.0}, {"key": "a kernel"})
    with claims(cache / "tuning.lock") as own, own.claim("work") as is_claimed:
        assert is_claimed
    default_cache().put(Kind.STREAM, "0123", b"stream")
    assert load_records() == {"key": 1.0}
    assert {str(Path(OBJECTS) / "models"), RECORDS, "tuning.lock"} <= modes(cache).keys()
    for name, mode in modes(cache).items():
        assert mode == (0o700 if (cache / name).is_dir() else 0o600), f"{name}: {mode:o}"
    assert os.umask(umask) == umask


def test_outputs_are_as_ordinary_files_are(tmp_path: Path, umask: int) -> None:
    if umask == 0o777:
        pytest.skip("nobody could read them")
    with (tmp_path / "ordinary").open("wb"), atomic_file(tmp_path / "atomic"):
        pass
    assert len({mode for name, mode in modes(tmp_path).items() if name != "."}) == 1


def test_a_file_is_never_more_open_than_it_will_be(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_bytes(b"old")
    path.chmod(0o600)
    with atomic_file(path):
        assert set(modes(tmp_path).values()) - {modes(tmp_path)["."]} == {0o600}


@pytest.mark.parametrize("mode", [0o775, 0o777, 0o707, 0o770])
def test_own_directories_are_tightened(cache: Path, tmp_path: Path, mode: int) -> None:
    """As those of before, with a umask of 002: what is in them was written by nobody else."""
    first = compile_model(tmp_path)
    directories = [cache, *(path for path in cache.rglob("*") if path.is_dir())]
    for directory in directories:
        directory.chmod(mode)
    np.testing.assert_array_equal(compile_model(tmp_path), first)
    for directory in (cache, cache / OBJECTS, cache / OBJECTS / "models"):
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700


@only_root
@pytest.mark.parametrize("place", [".", OBJECTS, f"{OBJECTS}/models", f"{OBJECTS}/kernels"])
def test_directories_of_others_are_refused(cache: Path, tmp_path: Path, place: str) -> None:
    compile_model(tmp_path)
    os.chown(cache / place, NOBODY, -1)
    assert main(["cache", "verify"]) == 1
    for models in (cache / OBJECTS / "models").glob("*/*.braid"):
        models.unlink()  # the kernels are looked for
    with pytest.raises(BraidError, match=f"belongs to user {NOBODY}, and this is user 0") as caught:
        compile_model(tmp_path)
    assert "BRAID_CACHE_DIR" in str(caught.value) and "chown" in str(caught.value)


@only_root
def test_a_directory_that_cannot_be_tightened_is_refused(tmp_path: Path) -> None:
    """One of the superuser that all may write to, for a process of another user."""
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    for directory in (tmp_path, *tmp_path.parents):
        if directory.stat().st_uid == 0 and directory != Path("/"):
            directory.chmod(directory.stat().st_mode | 0o011)
    program = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from braid.support.errors import BraidError\n"
        "from braid.support.private_files import check_private_directory as check\n"
        f"os.setuid({NOBODY})\n"
        "try: check(Path(sys.argv[1]))\n"
        "except BraidError as error: print(error)\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "open")]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "is writable by others, and its mode cannot be changed" in said and "hint:" in said


def test_a_shared_directory_stays_as_it_is(cache: Path, tmp_path: Path) -> None:
    cache.mkdir()
    cache.chmod(0o1777)
    compile_model(tmp_path)
    assert stat.S_IMODE(cache.stat().st_mode) == 0o1777
    assert modes(cache)[OBJECTS] == 0o700


def test_a_lock_is_never_a_link(tmp_path: Path) -> None:
    """In a directory that others share, it could lead to any file of this user."""
    (tmp_path / "other").touch(0o644)
    (tmp_path / "lock").symlink_to(tmp_path / "other")
    with pytest.raises(OSError, match="symbolic links"):
        open_private(tmp_path / "lock")
    with claims(tmp_path / "lock") as own, own.claim("work") as is_claimed:
        assert is_claimed  # nobody is locked out
    assert stat.S_IMODE((tmp_path / "other").stat().st_mode) == 0o644


def make_writable(path: Path) -> None:
    path.chmod(0o666)


def give_away(path: Path) -> None:
    os.chown(path, NOBODY, -1)


def link(path: Path) -> None:
    path.rename(path.with_suffix(".other"))
    path.symlink_to(path.with_suffix(".other"))


def link_of_others(path: Path) -> None:
    link(path)
    os.chown(path, NOBODY, -1, follow_symlinks=False)


@only_root
@pytest.mark.parametrize("plant", [make_writable, give_away, link, link_of_others])
@pytest.mark.parametrize("kind", ["models/*/*.braid", "objects/*/*.entry"])
def test_files_that_others_may_have_written_are_not_run(
    cache: Path, tmp_path: Path, kind: str, plant, capsys: pytest.CaptureFixture[str]
) -> None:
    first = compile_model(tmp_path)
    planted = min((cache / OBJECTS).glob(kind))
    if kind.startswith("objects"):
        for other in (cache / OBJECTS).glob("models/*/*.braid"):
            other.unlink()
    plant(planted)
    assert main(["cache", "verify"]) == 1
    said = capsys.readouterr()
    assert str(planted) in said.out
    whys = "others may write to it", f"belongs to user {NOBODY}", "is a symbolic link"
    assert any(why in said.out for why in whys)
    np.testing.assert_array_equal(compile_model(tmp_path), first)
    assert planted.is_file() and planted.lstat().st_uid == 0
    assert stat.S_IMODE(planted.lstat().st_mode) == 0o600


@pytest.mark.parametrize("kind", ["models/*/*.braid", "objects/*/*.entry", "kernels/*/*.entry"])
def test_exchanged_entries_are_a_miss(
    cache: Path, tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    truth = {op: compile_model(tmp_path, op) for op in ("exp", "neg")}
    first, second, *_ = sorted((cache / OBJECTS).glob(kind))
    if not kind.startswith("models"):
        for other in (cache / OBJECTS).glob("models/*/*.braid"):
            other.unlink()
    content = first.read_bytes(), second.read_bytes()
    first.write_bytes(content[1])
    second.write_bytes(content[0])
    assert main(["cache", "verify"]) == 1
    said = capsys.readouterr().out
    assert str(first) in said and str(second) in said
    for op, result in truth.items():
        np.testing.assert_array_equal(compile_model(tmp_path, op), result)
    assert main(["cache", "verify"]) == 0


@only_root
@pytest.mark.parametrize("end", ["", "-wal", "-journal"])
def test_records_of_others_are_refused(cache: Path, end: str) -> None:
    append_records({"key": 1.0}, {"key": "a kernel"})
    file = cache / f"{RECORDS}{end}"
    file.touch()
    os.chown(file, NOBODY, -1)
    with pytest.raises(BraidError, match=f"belongs to user {NOBODY}"):
        default_store().append(())
    with pytest.raises(BraidError, match=f"belongs to user {NOBODY}"):
        default_store().read("cost")
    os.chown(file, 0, -1)
    file.chmod(0o666)
    default_store().append(())
    assert not file.exists() or stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize("name", [b"records", b"alembic_version", b"records_by_key"])
def test_a_schema_that_is_no_text_is_damage(cache: Path, name: bytes) -> None:
    """What SQLite says of it is no text either."""
    append_records({"key": 1.0}, {"key": "a kernel"})
    file = cache / RECORDS
    file.write_bytes(file.read_bytes().replace(name, b"\xee" + name[1:]))
    assert load_records().items() <= {"key": 1.0}.items()
    append_records({"new": 2.0}, {"new": "a kernel"})
    assert load_records()["new"] == 2.0


@pytest.mark.parametrize("name", ["a?b", "a#b", "a%41b", "a?mode=ro&immutable=1", "a b;c", "größe"])
def test_any_name_is_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("BRAID_CACHE_DIR", str(tmp_path / name))
    compile_model(tmp_path)
    append_records({"key": 1.0}, {"key": "a kernel"})
    assert load_records() == {"key": 1.0}
    tokens = Tokens(open_database())
    tokens.add("ann")
    assert [who for who, _ in tokens.names()] == ["ann"]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([name, "exp.mlir"])
    assert main(["cache", "verify"]) == 0
    monkeypatch.setenv("BRAID_RECORDS", f"sqlite:///{tmp_path}/{name}.sqlite")
    append_records({"other": 2.0}, {"other": "a kernel"})
    assert load_records() == {"other": 2.0}
    assert (tmp_path / f"{name}.sqlite").stat().st_size > 0


def test_records_that_several_users_share_keep_their_mode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "shared.sqlite"
    monkeypatch.setenv("BRAID_RECORDS", f"sqlite:///{file}")
    append_records({"key": 1.0}, {"key": "a kernel"})
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.chmod(0o660)
    append_records({"other": 1.0}, {"other": "a kernel"})
    assert {stat.S_IMODE(path.stat().st_mode) for path in default_store().files()} == {0o660}


def test_a_file_that_is_there_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "there").write_bytes(b"")
    (tmp_path / "there").chmod(0o640)
    os.close(open_private(tmp_path / "there"))
    assert stat.S_IMODE((tmp_path / "there").stat().st_mode) == 0o640


def test_what_stands_in_the_way_of_a_directory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for place in (tmp_path / "file", tmp_path / "file" / "inside"):
        with pytest.raises(OSError, match=r"File exists|Not a directory"):
            private_directory(place)
    ObjectCache(tmp_path / "file").put(Kind.OBJECT, "0123", b"")
    assert ObjectCache(tmp_path / "file").get(Kind.OBJECT, "0123") is None


def test_the_umask_of_the_process_is_never_changed() -> None:
    root = Path(__file__).parents[3]
    files = [
        file
        for place in (*(root / "braid").glob("*/"), root / "braid")
        for file in place.rglob("*.py")
    ]
    assert len(files) > 500
    assert [str(file) for file in files if "umask(" in file.read_text()] == []
