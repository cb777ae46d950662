"""Records on a server: as in a file, among processes and machines, through kills.

`apt-get install postgresql` and the extra `postgres`, then
`python -m pytest test/unit/support/test_record_server.py`; or a server that runs already, by
`BRAID_TEST_POSTGRES=postgresql://USER:PASSWORD@HOST/DATABASE`.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import text

from braid.support.errors import BraidError
from braid.support.records.database import REVISION, database_url, server_engine
from braid.support.records.record_store import Record, RecordStore, open_store
from braid.support.records.server_store import ServerStore
from braid.tools.service import tables
from test.postgres import empty_database, postgres_server

pytest.importorskip("psycopg", reason="the extra postgres is not installed")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres_server() as url:
        yield url


@pytest.fixture
def url(server: str) -> Iterator[str]:
    with empty_database(server) as url:
        yield url


@pytest.fixture
def store(url: str) -> RecordStore:
    return open_store(url)


def rows(count: int) -> list[Record]:
    return [Record("cost", f"key {n}", {"seconds": n / 7}) for n in range(count)]


def test_the_last_value_of_a_key_counts(store: RecordStore) -> None:
    assert isinstance(store, ServerStore) and store.read("cost") == {}
    store.append([*rows(3), Record("schedule", "key 0", {"tile": 4})])
    first = store.read("cost")
    assert store.read("cost") is first, "as long as nobody has written"
    store.append([Record("cost", "key 1", {"seconds": 9.0}, "a machine")])
    assert store.read("cost") == {**first, "key 1": {"seconds": 9.0}}
    assert store.get("schedule", "key 0") == {"tile": 4}
    assert store.count() == {"cost": 4, "schedule": 1}
    assert store.drop_replaced() == 1 and store.count() == {"cost": 3, "schedule": 1}
    assert len(store.read("cost")) == 3 and not list(store.damage())


def test_all_or_none(store: RecordStore) -> None:
    with pytest.raises(ValueError, match="JSON"):
        store.append([*rows(3), Record("cost", "x", {"seconds": float("nan")})])
    assert store.count() == {}


def test_a_row_that_was_changed_is_not_used(store: RecordStore, url: str) -> None:
    store.append(rows(3))
    with server_engine(database_url(url)).connect() as connection:
        connection.execute(text("UPDATE records SET key = 'other' WHERE key = 'key 1'"))
        connection.commit()
    assert len(list(store.damage())) == 1
    assert [r.key for r in store.salvaged()] == ["key 0", "key 2"]
    assert list(store.rows()).count(None) == 1


def test_migrations_make_the_tables_of_the_model(store: RecordStore, url: str) -> None:
    store.append(())
    with server_engine(database_url(url)).connect() as connection:
        context = MigrationContext.configure(connection)
        assert context.get_current_revision() == REVISION
        assert compare_metadata(context, tables.Base.metadata) == []


WRITER = """
import sys
from braid.support.records.record_store import Record, default_store
store = default_store()
for n in range(int(sys.argv[2])):
    store.append([Record("cost", f"{sys.argv[1]}-{n}-{i}", {"n": n}) for i in range(5)])
    print(n, flush=True)
"""


def start(program: str, url: str, *arguments: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "BRAID_RECORDS": url}
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def test_processes_upgrade_and_write_at_once(url: str) -> None:
    writers = [start(WRITER, url, str(number), "10") for number in range(3)]
    store = open_store(url)
    while any(process.poll() is None for process in writers):
        store.read("cost")
    for process in writers:
        process.communicate(timeout=60)
    assert [process.returncode for process in writers] == [0] * 3
    assert len(store.read("cost")) == 3 * 10 * 5, "a reader misses none that came late"


def test_a_killed_writer_leaves_whole_appends(store: RecordStore, url: str) -> None:
    for name, lines in (("a", 3), ("b", 17)):
        process = start(WRITER, url, name, "10000")
        assert process.stdout is not None
        for _ in range(lines):
            process.stdout.readline()
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        mine = [key for key in store.read("cost") if key.startswith(name)]
        assert len(mine) % 5 == 0 and len(mine) >= 5 * lines


CLAIM = """
import sys, time
from braid.support.records.record_store import default_store
with default_store().claims() as own, own.claim(sys.argv[1]) as has:
    print(has, flush=True)
    time.sleep(float(sys.argv[2]))
"""


def test_claims(store: RecordStore, url: str) -> None:
    def answer(process: subprocess.Popen[str]) -> str:
        assert process.stdout is not None
        return process.stdout.readline().strip()

    with store.claims() as own:
        with own.claim("a") as has:
            assert has
            assert answer(start(CLAIM, url, "a", "0")) == "False"
            assert answer(start(CLAIM, url, "b", "0")) == "True"
        holder = start(CLAIM, url, "a", "600")
        assert answer(holder) == "True"
        with own.claim("a") as has:
            assert not has
        holder.kill()
        holder.wait()
        is_free = False
        while not is_free:  # the server sees the end of a connection a moment later
            with own.claim("a") as is_free:
                pass


def test_places_that_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BraidError, match="is not the URL of a database"):
        open_store("here")
    with pytest.raises(BraidError, match="databases of 'mysql'"):
        open_store("mysql://host/database")
    with pytest.raises(BraidError, match="names no file"):
        open_store("sqlite://")
    away = open_store("postgresql://user:secret@127.0.0.1:9/none")
    with pytest.raises(BraidError, match="cannot be accessed") as caught:
        away.read("cost")
    assert "secret" not in str(caught.value)
