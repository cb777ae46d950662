"""The queue and the tokens in the database of the records: migrated, and rescued with it."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from braid.support.diagnostics import Diagnostic, handle_diagnostics
from braid.support.records.database import METADATA, REVISION, sqlite_engine
from braid.support.records.file_store import FileStore
from braid.support.records.record_store import Record
from braid.tools.service.storage import TaskQueue, Tokens, open_database
from braid.tools.service.task import State, TaskOptions

BEFORE = """
CREATE TABLE alembic_version (version_num VARCHAR(32) PRIMARY KEY);
INSERT INTO alembic_version VALUES ('r0002');
CREATE TABLE records (
    number INTEGER PRIMARY KEY,
    kind TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL,
    created DOUBLE NOT NULL, machine TEXT NOT NULL, version TEXT NOT NULL, digest TEXT NOT NULL
);
CREATE INDEX records_by_key ON records (kind, key, number);
"""
"""A file of revision r0002, whose service made its tables itself."""
SERVICE_BEFORE = """
CREATE TABLE service_tasks (
    number INTEGER NOT NULL PRIMARY KEY, id VARCHAR(32) NOT NULL UNIQUE,
    state VARCHAR(16) NOT NULL, options JSON NOT NULL, facts JSON NOT NULL,
    created FLOAT NOT NULL, started FLOAT, finished FLOAT
);
CREATE INDEX ix_service_tasks_state ON service_tasks (state);
CREATE TABLE service_events (
    number INTEGER NOT NULL PRIMARY KEY,
    task VARCHAR(32) NOT NULL REFERENCES service_tasks (id),
    kind VARCHAR(16) NOT NULL, data JSON NOT NULL
);
CREATE INDEX ix_service_events_task ON service_events (task);
CREATE TABLE service_tokens (
    name VARCHAR(64) NOT NULL PRIMARY KEY, digest VARCHAR(64) NOT NULL, created FLOAT NOT NULL
);
INSERT INTO service_tasks VALUES (7, 'old', 'running', '{"name": "m.mlir"}', '{}', 1.5, 2.5, NULL);
INSERT INTO service_events VALUES (9, 'old', 'state', '{"state": "running"}');
INSERT INTO service_tokens VALUES ('ann', 'digest', 1.25);
"""


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BRAID_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("BRAID_RECORDS", raising=False)
    return tmp_path / "records-1.sqlite"


def run(path: Path, *scripts: str) -> None:
    database = sqlite3.connect(path)
    for script in scripts:
        database.executescript(script)
    database.close()


def revision(path: Path) -> str | None:
    with sqlite_engine(lambda: sqlite3.connect(path)).connect() as connection:
        return MigrationContext.configure(connection).get_current_revision()


def test_migrations_make_the_tables_of_the_service(path: Path) -> None:
    open_database()
    with sqlite_engine(lambda: sqlite3.connect(path)).connect() as connection:
        context = MigrationContext.configure(connection)
        assert context.get_current_revision() == REVISION
        assert compare_metadata(context, METADATA) == []


def test_the_tables_of_the_version_before_are_taken_over(path: Path) -> None:
    run(path, BEFORE, SERVICE_BEFORE)
    engine = open_database()
    assert revision(path) == REVISION
    queue, tokens = TaskQueue(engine), Tokens(engine)
    assert tokens.names() == [("ann", 1.25)]
    assert [event.number for event in queue.events("old")] == [9]
    assert queue.resume() == 1
    task = queue.take()
    assert task is not None and (task.id, task.options.name) == ("old", "m.mlir")


def test_a_file_without_a_service_gets_its_tables(path: Path) -> None:
    run(path, BEFORE)
    queue = TaskQueue(open_database())
    queue.add("new", TaskOptions(name="m.mlir"))
    assert revision(path) == REVISION and queue.counts()[State.QUEUED] == 1


def test_the_queue_outlives_a_damaged_record(path: Path) -> None:
    """Whoever reads the records moves the file aside, also while the service has it open."""
    engine = open_database()
    queue, tokens, store = TaskQueue(engine), Tokens(engine), FileStore(path)
    token = tokens.add("ann")
    queue.add("one", TaskOptions(name="m.mlir"))
    store.append([Record("cost", f"key {n}", {"seconds": n / 7}) for n in range(3)])
    run(path, "UPDATE records SET value = '{}' WHERE key = 'key 1'")
    said: list[Diagnostic] = []
    with handle_diagnostics(said.append):
        assert list(store.read("cost")) == ["key 0", "key 2"]
    assert "damaged, 2 of them are kept" in said[0].message
    assert tokens.known_digest(token) and [task.id for task in queue.latest(9)] == ["one"]
    assert [event.kind for event in queue.events("one")] == ["state"]
    queue.add("two", TaskOptions(name="m.mlir"))
    assert [task.id for task in queue.latest(9)] == ["two", "one"]


def test_a_task_ends_once(path: Path) -> None:
    """However many say so at once."""
    queue = TaskQueue(open_database())
    queue.add("one", TaskOptions(name="m.mlir"))
    start = Barrier(8)

    def cancel(_: int) -> bool:
        start.wait()
        return queue.finish("one", State.CANCELLED, was=State.QUEUED)

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(cancel, range(8))) == 1
    states = [event.data["state"] for event in queue.events("one")]
    assert states == ["queued", "cancelled"]
