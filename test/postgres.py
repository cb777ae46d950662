"""A server of PostgreSQL for tests: that of `BRAID_TEST_POSTGRES`, a URL, or a new one."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from braid.support.records.database import database_url

_DEBIAN = Path("/usr/lib/postgresql")


@contextmanager
def empty_database(server: str) -> Generator[str]:
    """Yield the URL of an empty database on a server, dropped afterwards."""
    url, name = database_url(server), f"braid_{uuid4().hex}"
    engine = create_engine(url, isolation_level="AUTOCOMMIT", poolclass=NullPool)
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    try:
        yield url.set(database=name).render_as_string(hide_password=False)
    finally:
        with engine.connect() as connection:
            connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))


@contextmanager
def postgres_server() -> Generator[str]:
    """Yield the URL of a server; skip the test if none is installed."""
    if url := os.environ.get("BRAID_TEST_POSTGRES"):
        yield url
        return
    programs = _programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed (apt-get install postgresql)")
    with tempfile.TemporaryDirectory(prefix="braid-pg-") as folder:
        data = Path(folder) / "data"
        if os.geteuid() == 0:  # the server refuses to run as root
            shutil.chown(folder, "postgres")
        _run(programs / "initdb", "-D", data, "-U", "braid", "-A", "trust", "--no-sync")
        options = f"-k {folder} -c listen_addresses='' -c fsync=off"
        _run(programs / "pg_ctl", "-D", data, "-l", data / "log", "-w", "-o", options, "start")
        try:
            yield f"postgresql://braid@/postgres?host={folder}"
        finally:
            _run(programs / "pg_ctl", "-D", data, "-w", "-m", "immediate", "stop")


def _programs() -> Path | None:
    if found := shutil.which("pg_ctl"):
        return Path(found).resolve().parent
    versions = sorted(_DEBIAN.glob("*/bin/pg_ctl"), key=lambda path: int(path.parts[-3]))
    return versions[-1].parent if versions else None


def _run(*command: object) -> None:
    words = list(map(str, command))
    owner = "postgres" if os.geteuid() == 0 else None  # The server refuses to be root.
    done = subprocess.run(
        words,
        capture_output=True,
        text=True,
        cwd="/",
        check=False,
        user=owner,
        group=owner,
        extra_groups=None if owner is None else [],
    )
    assert done.returncode == 0, done.stderr + done.stdout
