"""Entries that are damaged, exchanged or no files; directories that cannot be written."""

import errno
import os
import struct
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from braid.runtime.artifact_cache import default_artifacts
from braid.support import cache_files
from braid.support.diagnostics import Diagnostic, handle_diagnostics
from braid.support.object_cache import Kind, ObjectCache, default_cache
from braid.tools.cli import main

KEY, OTHER = "ab" + "0" * 62, "ab" + "1" * 62


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ObjectCache:
    monkeypatch.setenv("BRAID_CACHE_DIR", str(tmp_path / "cache"))
    return default_cache()


@pytest.fixture
def emitted(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cache_files, "_warned", set())
    found: list[Diagnostic] = []
    with handle_diagnostics(found.append):
        yield found


def entry(cache: ObjectCache, key: str = KEY) -> Path:
    cache.put(Kind.OBJECT, key, key.encode() * 10)
    [path] = [p for p in cache.files(Kind.OBJECT) if p.name.startswith(key[2:])]
    return path


def test_every_bit_and_every_length_counts(cache, emitted) -> None:
    path = entry(cache)
    data = path.read_bytes()
    for index in range(len(data)):
        changed = bytearray(data)
        changed[index] ^= 1 << index % 8
        for damaged in (bytes(changed), data[:index]):
            path.write_bytes(damaged)
            assert cache.get(Kind.OBJECT, KEY) is None
            assert not path.exists()
    assert len(emitted) == 1 and "braid cache verify" in (emitted[0].hint or "")


def test_an_entry_under_another_name(cache, emitted) -> None:
    first, second = entry(cache), entry(cache, OTHER)
    second.write_bytes(first.read_bytes())
    assert cache.get(Kind.OBJECT, OTHER) is None
    assert KEY in emitted[0].message
    entry(cache, OTHER)
    assert cache.get(Kind.OBJECT, OTHER) == OTHER.encode() * 10
    assert cache.get(Kind.KERNEL, KEY) is None


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir, lambda path: path.symlink_to("/dev/zero")])
def test_no_file(make, cache, emitted, tmp_path) -> None:
    path = entry(cache)
    for read_first in (True, False):
        path.unlink()
        make(path)
        if read_first:
            assert cache.get(Kind.OBJECT, KEY) is None
        entry(cache)
        assert cache.get(Kind.OBJECT, KEY) == KEY.encode() * 10


@pytest.mark.skipif(
    Path("/proc/sys/vm/overcommit_memory").read_text().strip() == "1",
    reason="the system promises any memory",
)
def test_an_entry_with_holes_that_no_memory_holds(cache, emitted) -> None:
    path = entry(cache)
    header = struct.pack("<8sIQ", b"braidce1", 4, 2**43 - 4) + bytes(32)
    path.write_bytes(header)
    try:
        os.truncate(path, len(header) + 2**43)
    except OSError:  # of this file system
        pytest.skip("needs files of 8 TiB")
    assert cache.damage(Kind.OBJECT, path) == "it is larger than the memory"
    assert cache.get(Kind.OBJECT, KEY) is None
    assert entry(cache) == path
    assert cache.get(Kind.OBJECT, KEY) == KEY.encode() * 10


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read all")
def test_what_may_not_be_read(cache, emitted, capsys) -> None:
    path = entry(cache)
    path.chmod(0)
    assert cache.get(Kind.OBJECT, KEY) is None
    entry(cache)
    assert cache.get(Kind.OBJECT, KEY) == KEY.encode() * 10
    cache.directory.chmod(0)
    for command in ("show", "verify", "clear"):
        assert main(["cache", command]) == 1
        assert "cannot read the cache" in capsys.readouterr().err
    cache.directory.chmod(0o755)


def test_a_directory_that_cannot_be(monkeypatch, capsys) -> None:
    monkeypatch.setenv("BRAID_CACHE_DIR", "x" * 5000)
    for command in ("show", "verify", "clear"):
        status = main(["cache", command])
        said = capsys.readouterr().err
        assert status == 0 or (status == 1 and "cannot read the cache 'xxx" in said)


def test_a_link_does_not_lead_out(cache, emitted, tmp_path) -> None:
    path = entry(cache)
    outside = tmp_path / "outside"
    outside.write_text("mine")
    path.unlink()
    path.symlink_to(outside)
    entry(cache)
    assert outside.read_text() == "mine" and not path.is_symlink()


def test_many_writers(cache, emitted) -> None:
    def work(number: int) -> None:
        for index in range(20):
            key = f"{index:064x}"
            cache.put(Kind.OBJECT, key, key.encode() * 1000)
            found = cache.get(Kind.OBJECT, key)
            assert found == key.encode() * 1000, number

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert not emitted
    assert len(list(cache.files(Kind.OBJECT))) == 20


def test_the_commands(cache, emitted, capsys) -> None:
    path = entry(cache)
    mine = cache.directory / "mine.txt"
    mine.write_text("not braid's")
    assert main(["cache", "show"]) == 0
    assert main(["cache", "verify"]) == 0
    path.write_bytes(path.read_bytes()[:-1])
    capsys.readouterr()
    assert main(["cache", "verify"]) == 1
    out, err = capsys.readouterr()
    assert str(path) in out and "1 entries of the cache are damaged" in err
    assert main(["cache", "clear"]) == 0
    assert not path.parent.exists() and mine.exists()
    assert main(["cache", "clear"]) == 0
    assert "removed 0 files" in capsys.readouterr().out.splitlines()[-1]


def unusable(directory: Path) -> list[Path]:
    """Places where no cache can be: below a file, a device, and where no directory can be."""
    (directory / "file").write_text("no directory")
    return [
        directory / "file",
        directory / "file" / "below",
        Path("/dev/null"),
        Path("/proc/braid"),
    ]


def test_a_cache_that_cannot_be_used_is_warned_of_once(tmp_path, emitted, monkeypatch) -> None:
    for count, place in enumerate(unusable(tmp_path), 1):
        monkeypatch.setenv("BRAID_CACHE_DIR", str(place))
        for key in (KEY, OTHER):
            default_cache().put(Kind.OBJECT, key, b"content")
            assert default_cache().get(Kind.OBJECT, key) is None
            assert not default_artifacts().put(key, lambda path: path.write_bytes(b"content"))
        assert len(emitted) == count and emitted[-1].severity == "warning"
        assert emitted[-1].message.startswith(f"the cache '{place}' cannot be used: ")
        assert "BRAID_CACHE_DIR" in (emitted[-1].hint or "")


def test_a_full_disk_is_warned_of(cache, emitted) -> None:
    def write(path: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    assert not default_artifacts().put(KEY, write)
    assert "No space left" in emitted[0].message
    assert not list(cache.directory.rglob(".*"))


def test_show_says_that_a_cache_cannot_be_used(tmp_path, monkeypatch, capsys) -> None:
    for place in unusable(tmp_path):
        monkeypatch.setenv("BRAID_CACHE_DIR", str(place))
        assert main(["cache", "show"]) == 0
        assert f"{place} cannot be used: " in capsys.readouterr().out


def test_show_makes_no_directory(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setenv("BRAID_CACHE_DIR", str(tmp_path / "new" / "cache"))
    assert main(["cache", "show"]) == 0
    assert "cannot be used" not in capsys.readouterr().out and not (tmp_path / "new").exists()
