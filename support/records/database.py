"""The tables of braid's database, SQLite or PostgreSQL, and how an older one is upgraded.

Imports SQLAlchemy: whoever may not need it imports this module where it does.
"""

from collections.abc import Callable
from pathlib import Path

from sqlalchemy import (
    URL,
    BigInteger,
    Column,
    Connection,
    Double,
    Engine,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    create_engine,
    make_url,
)
from sqlalchemy import inspect as inspected
from sqlalchemy import text as sql
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import NullPool

from braid.support.distribution import install_command
from braid.support.errors import BraidError

REVISION = "r0003"
"""The newest of `migrations/versions`."""

METADATA = MetaData()
"""The metadata of all tables; those of the service are in `braid.tools.service.tables`."""
NUMBER = BigInteger().with_variant(Integer, "sqlite")
"""The type of keys that count up; only an INTEGER does so in SQLite."""

RECORDS = Table(
    "records",
    METADATA,
    Column("number", NUMBER, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("value", Text, nullable=False),
    Column("created", Double, nullable=False),
    Column("machine", Text, nullable=False),
    Column("version", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Index("records_by_key", "kind", "key", "number"),
)

_FILE = "sqlite:///"
"""The prefix of URLs of files; the rest is a path as it is, with any `?`, `#` and `%`."""
_WHERE = "BRAID_RECORDS is sqlite:///FILE or postgresql+psycopg://USER:PASSWORD@HOST/DATABASE"
_UPGRADE_LOCK = 0x62726169
"""The number of the lock in PostgreSQL whose holder upgrades the database."""


def database_url(text: str) -> URL:
    """Return the URL in `text`, `postgresql://` with psycopg as its driver.

    Raises:
        BraidError: it is no database, or of a kind that braid does not know.

    """
    if text.startswith(_FILE) and len(text) > len(_FILE):
        return URL.create("sqlite", database=text.removeprefix(_FILE))  # whatever is in its name
    try:
        url = make_url(text)
    except (ArgumentError, ValueError) as error:  # such as of a port that is no number
        raise BraidError(
            f"'{text.partition(':')[0]}:…' is not the URL of a database",  # no password
            hint=_WHERE,
        ) from error
    if "@" in (url.host or ""):  # the rest of a password, which no message may contain
        raise BraidError(
            "the URL of the database has several '@'", hint="write %40 for those of a password"
        )
    if url.drivername in ("postgresql", "postgres"):
        url = url.set(drivername="postgresql+psycopg")
    if url.drivername == "sqlite" and not url.database:
        raise BraidError(f"'{shown(url)}' names no file", hint="sqlite:///FILE")
    if url.drivername not in ("sqlite", "postgresql+psycopg"):
        raise BraidError(
            f"records are not kept in databases of '{url.drivername}'",
            hint=_WHERE,
        )
    return url


def shown(url: URL) -> str:
    """Return a URL for messages, without its password and parameters that may contain one."""
    return url.set(query={}).render_as_string()


def sqlite_engine(connect: Callable[[], object]) -> Engine:
    """Return an engine of SQLite whose connections `connect` makes, and that keeps none."""
    return create_engine("sqlite://", creator=connect, poolclass=NullPool)


def server_engine(url: URL) -> Engine:
    """Return an engine of a server. Raises BraidError where its driver is not installed."""
    try:
        return create_engine(url, pool_pre_ping=True, connect_args={"connect_timeout": 10})
    except ImportError as error:
        raise BraidError(
            f"'{shown(url)}' needs psycopg, which is not installed",
            hint=install_command("postgres"),
        ) from error


def upgrade(connection: Connection) -> None:
    """Make the tables, or bring those of an older version to `REVISION`.

    Safe to be killed in, and, on a server, to be called by many at once.
    """
    if _revision(connection) == REVISION:
        return
    if connection.dialect.name == "postgresql":
        connection.execute(sql("SELECT pg_advisory_xact_lock(:key)"), {"key": _UPGRADE_LOCK})
        if _revision(connection) == REVISION:
            connection.commit()
            return
    from alembic import command
    from alembic.config import Config

    config = Config(attributes={"connection": connection})
    migrations = str(Path(__file__).parent / "migrations")
    config.set_main_option("script_location", migrations.replace("%", "%%"))
    config.set_main_option("path_separator", "newline")
    command.upgrade(config, REVISION)
    connection.commit()


def _revision(connection: Connection) -> str | None:
    """Return the version that the database states, None for a new one or one older than migrations.

    One of a newer braid counts as up to date: tables only grow.
    """
    if not inspected(connection).has_table("alembic_version"):
        return None
    found = connection.execute(sql("SELECT version_num FROM alembic_version")).scalar()
    return REVISION if found is not None and found > REVISION else found
