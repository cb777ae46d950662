"""Rows are found as they were written, by several processes, through damage and kills."""

import os
import signal
import sqlite3
import subprocess
import sys
import time

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import inspect
from typer.testing import CliRunner

from braid.support import cache_files
from braid.support.diagnostics import Diagnostic, handle_diagnostics
from braid.support.errors import BraidError
from braid.support.records.database import REVISION, sqlite_engine
from braid.support.records.file_store import FileStore
from braid.support.records.record import row_of
from braid.support.records.record_store import Record, default_store
from braid.tools.app import app
from braid.tools.service import tables


@pytest.fixture
def store(tmp_path, monkeypatch) -> FileStore:
    monkeypatch.setattr(cache_files, "_warned", set())
    monkeypatch.setenv("BRAID_CACHE_DIR", str(tmp_path))
    return FileStore(tmp_path / "records-1.sqlite")


def rows(count: int) -> list[Record]:
    return [Record("cost", f"key {n}", {"seconds": n / 7}) for n in range(count)]


def change(store: FileStore, statement: str) -> None:
    with sqlite3.connect(store.path) as database:
        database.execute(statement)
    database.close()


def test_the_last_value_of_a_key_counts(store) -> None:
    assert store.read("cost") == {}
    store.append([*rows(3), Record("schedule", "key 0", {"tile": 4})])
    store.append([Record("cost", "key 1", {"seconds": 9.0}, "a machine")])
    assert store.read("cost") == {
        "key 0": {"seconds": 0.0},
        "key 1": {"seconds": 9.0},
        "key 2": {"seconds": 2 / 7},
    }
    assert store.get("schedule", "key 0") == {"tile": 4}
    assert store.count() == {"cost": 4, "schedule": 1}
    assert not list(store.damage())


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE records SET value = '{\"seconds\": 0.5}' WHERE number = 2",
        "UPDATE records SET key = 'key 7' WHERE number = 2",
        "UPDATE records SET created = 'yesterday' WHERE number = 2",
        "UPDATE records SET machine = 'another' WHERE number = 2",
        "UPDATE records SET value = CAST(X'ff' AS TEXT) WHERE number = 2",
    ],
)
def test_a_row_that_was_changed_is_not_used_and_goes(store, statement) -> None:
    store.append(rows(3))
    change(store, statement)
    assert len(list(store.damage())) == 1
    said: list[Diagnostic] = []
    with handle_diagnostics(said.append):
        assert set(store.read("cost")) == {"key 0", "key 2"}
    assert "2 of them are kept" in said[0].message
    assert not list(store.damage())
    assert store.path.with_name("records-1.sqlite.damaged").exists()


@pytest.mark.parametrize("content", [b"no database at all" * 100, b"\0" * 4096])
def test_what_is_no_database_is_moved_aside(store, content) -> None:
    store.path.write_bytes(content)
    said: list[Diagnostic] = []
    with handle_diagnostics(said.append):
        assert store.read("cost") == {}
    assert "damaged" in said[0].message
    store.append(rows(2))
    assert len(store.read("cost")) == 2 and not list(store.damage())


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
@pytest.mark.parametrize("end", ["", "-wal"])
def test_what_is_no_file_is_moved_aside(store, make, end) -> None:
    if end:
        store.append(rows(2))
    make(f"{store.path}{end}")
    assert list(store.damage())
    store.append(rows(3))
    assert len(store.read("cost")) == 3 and not list(store.damage())


def test_what_cannot_be_written_costs_only_the_records(store, monkeypatch) -> None:
    blocked = store.path.parent / "file"
    blocked.write_text("")
    lost = FileStore(blocked / "records-1.sqlite")
    assert lost.read("cost") == {}
    with pytest.raises(BraidError, match="cannot be kept"):
        lost.append(rows(1))


def test_a_read_only_file_is_read(store, monkeypatch) -> None:
    store.append(rows(3))
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    assert len(store.read("cost")) == 3


WRITER = """
import sys
from pathlib import Path
from braid.support.records.file_store import FileStore
from braid.support.records.record import row_of
from braid.support.records.record_store import Record, default_store
store = FileStore(Path(sys.argv[1]))
for n in range(int(sys.argv[3])):
    store.append([Record("cost", f"{sys.argv[2]}-{n}-{i}", {"n": n}) for i in range(5)])
    print(n, flush=True)
"""


def writer(store: FileStore, name: str, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(store.path), name, str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_processes_write_at_once(store) -> None:
    writers = [writer(store, str(number), 10) for number in range(4)]
    for process in writers:
        process.communicate(timeout=60)
    assert [process.returncode for process in writers] == [0] * 4
    assert len(store.read("cost")) == 4 * 10 * 5


def test_a_killed_writer_leaves_whole_appends(store) -> None:
    for name, lines in (("a", 3), ("b", 17)):
        process = writer(store, name, 10_000)
        assert process.stdout is not None
        for _ in range(lines):
            process.stdout.readline()
        time.sleep(0.003)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        mine = [key for key in store.read("cost") if key.startswith(name)]
        assert len(mine) % 5 == 0 and len(mine) >= 5 * lines
        assert not list(store.damage())


OLD = """
CREATE TABLE records (
    number INTEGER PRIMARY KEY,
    kind TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL,
    created REAL NOT NULL, machine TEXT NOT NULL, version TEXT NOT NULL, digest TEXT NOT NULL
);
"""


def test_a_file_of_before_migrations_is_upgraded(store) -> None:
    record = Record("cost", "old", {"seconds": 0.25}, "a machine", 1.5, "0.1")
    row = row_of(record)
    with sqlite3.connect(store.path) as database:
        database.executescript(OLD)
        places = ", ".join(f":{name}" for name in row)
        database.execute(f"INSERT INTO records ({', '.join(row)}) VALUES ({places})", row)
    database.close()
    assert store.rows() == [record], "it is read as it is"
    store.append(rows(1))
    assert list(store.read("cost")) == ["old", "key 0"] and not list(store.damage())
    with sqlite_engine(lambda: sqlite3.connect(store.path)).connect() as connection:
        assert MigrationContext.configure(connection).get_current_revision() == REVISION
        assert [index["name"] for index in inspect(connection).get_indexes("records")] == [
            "records_by_key"
        ]


def test_migrations_make_the_tables_of_the_model(store) -> None:
    store.append(rows(1))
    with sqlite_engine(lambda: sqlite3.connect(store.path)).connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), tables.Base.metadata) == []


def test_an_upgrade_that_was_cut_off_goes_on(store) -> None:
    with sqlite3.connect(store.path) as database:
        database.executescript(OLD)
        database.execute("CREATE TABLE alembic_version (version_num VARCHAR(32) PRIMARY KEY)")
    database.close()
    store.append(rows(2))
    assert len(store.read("cost")) == 2


@pytest.mark.parametrize("tables", [(), ("alembic_version (version_num PRIMARY KEY)",)])
def test_a_file_whose_writer_was_killed_before_the_table_is_empty(store, tables) -> None:
    change(store, "PRAGMA journal_mode=WAL")
    for table in tables:
        change(store, f"CREATE TABLE {table}")
    assert store.path.stat().st_size
    diagnostics: list[Diagnostic] = []
    with handle_diagnostics(diagnostics.append):
        assert store.read("cost") == store.count() == {}
        assert list(store.damage()) == []
        store.append(rows(1))
    assert set(store.read("cost")) == {"key 0"}
    assert diagnostics == []


def test_the_variable_names_a_file(store, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("BRAID_RECORDS", f"sqlite:///{tmp_path}/other.sqlite")
    default_store().append(rows(2))
    assert default_store() == FileStore(tmp_path / "other.sqlite", is_own=False)
    assert len(default_store().read("cost")) == 2 and not store.path.exists()


@pytest.mark.parametrize("what", ["directory", "text", "database"])
def test_what_the_variable_names_is_left_alone(what, tmp_path, monkeypatch) -> None:
    """It may be anything of the user's, such as their home directory."""
    place = tmp_path / "place"
    kept = place
    if what == "directory":
        place.mkdir()
        kept = place / "thesis"
        kept.write_text("years of work")
    elif what == "text":
        kept.write_text("years of work")
    else:
        with sqlite3.connect(place) as database:
            database.execute("CREATE TABLE addresses (name TEXT)")
        database.close()
    before = kept.read_bytes()
    monkeypatch.setenv("BRAID_RECORDS", f"sqlite:///{place}")
    for use in (
        lambda: default_store().read("cost"),
        lambda: default_store().append(rows(2)),
        lambda: default_store().rows(),
        lambda: list(default_store().damage()),
        lambda: default_store().count(),
        lambda: default_store().salvaged(),
        lambda: default_store().drop_replaced(),
    ):
        with pytest.raises(BraidError, match="is no database of records"):
            use()
    result = CliRunner().invoke(app, ["cache", "clear"])
    assert result.exit_code == 0 and kept.read_bytes() == before
    assert not [path for path in tmp_path.glob("place*") if "damaged" in path.name]


def test_damage_elsewhere_is_moved_aside_and_never_removed(tmp_path, monkeypatch) -> None:
    place = tmp_path / "place.sqlite"
    monkeypatch.setenv("BRAID_RECORDS", f"sqlite:///{place}")
    for _ in range(3):
        default_store().append(rows(2))
        with place.open("r+b") as file:
            file.seek(100)
            file.write(b"\xff" * 8000)
        assert default_store().read("cost") == {}
    names = sorted(path.name for path in tmp_path.glob("*.damaged*"))
    assert names == [f"place.sqlite.damaged{end}" for end in ("", "-2", "-3")]


def test_clearing_the_cache_keeps_records_elsewhere(store, tmp_path, monkeypatch) -> None:
    store.append(rows(2))
    monkeypatch.setenv("BRAID_RECORDS", f"sqlite:///{tmp_path}/other.sqlite")
    default_store().append(rows(2))
    assert CliRunner().invoke(app, ["cache", "clear"]).exit_code == 0
    assert len(default_store().read("cost")) == 2 and not store.path.exists()


def test_records_that_cannot_be_read_are_not_none(store, monkeypatch) -> None:
    """Else an export would be empty, and taken for all that there was."""
    store.append(rows(2))

    def unreadable(_: FileStore, *, write: bool) -> sqlite3.Connection:
        raise OSError("disk I/O error")

    monkeypatch.setattr(FileStore, "_connected", unreadable)
    with pytest.raises(BraidError, match="cannot be read: disk I/O error"):
        store.salvaged()
    assert store.readable() == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")
def test_records_on_a_full_disk_are_read(store, tmp_path) -> None:
    """Readers share memory in a file beside, for which there is no room."""
    place = tmp_path / "small"
    place.mkdir()
    mount = ("mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", place)
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        full = FileStore(place / "records.sqlite")
        full.append(rows(2))
        rest = os.open(place / "rest", os.O_WRONLY | os.O_CREAT)
        with pytest.raises(OSError, match="No space left"):
            while True:
                os.write(rest, bytes(512))
        os.close(rest)
        assert full.salvaged() == full.rows() and len(full.read("cost")) == 2
        with pytest.raises(BraidError, match="cannot be kept"):
            full.append(rows(1))
    finally:
        subprocess.run(("umount", "-l", place), check=True)


def test_reading_imports_no_toolkit(store) -> None:
    """Every compilation reads."""
    store.append(rows(2))
    program = (
        "import sys, braid; from braid.support.records.record_store import default_store\n"
        "assert len(default_store().read('cost')) == 2 and 'sqlalchemy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
