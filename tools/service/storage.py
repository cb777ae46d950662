"""The queue of the service in the database of the records: tasks, their events, and tokens."""

import hashlib
import hmac
import secrets
import time
from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import URL, ColumnElement, Engine, create_engine, event, func, select
from sqlalchemy import delete as sql_delete
from sqlalchemy import update as sql_update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool

from braid.support.cache_files import own_cache_directory
from braid.support.errors import BraidError
from braid.support.records.file_store import FileStore
from braid.support.records.record_store import default_store
from braid.tools.service.tables import EventRow, TaskRow, TokenRow
from braid.tools.service.task import State, Task, TaskEvent, TaskOptions

_OWN_FILE = "service.sqlite"
_SECONDS_TO_WAIT = 20.0
_OWNER = "owner"


def open_database() -> Engine:
    """Open the file of this user's records, which has the tables of the service.

    If the records are on a server for many machines, the queue is in a file of this machine, as the
    models are.

    Raises:
        BraidError: it cannot be written.

    """
    store = default_store()
    if not isinstance(store, FileStore):
        store = FileStore(own_cache_directory() / _OWN_FILE)
    store.append(())  # makes the file, or brings it up to date
    engine = create_engine(
        URL.create("sqlite", database=str(store.path.resolve())),
        poolclass=NullPool,
        connect_args={"timeout": _SECONDS_TO_WAIT},
    )
    event.listen(engine, "connect", _set_up)
    return engine


def _set_up(connection: Any, _: object) -> None:
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")


class Tokens:
    """Names and digests of tokens; nobody can read the tokens themselves again."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def add(self, name: str) -> str:
        """Return a new token. Raises BraidError where the name is taken or is invalid."""
        if not (name.isprintable() and 0 < len(name) <= 64):
            raise BraidError(f"{name!r} is no name: it needs 1 to 64 printable characters")
        token = secrets.token_urlsafe(32)
        try:
            with Session(self.engine) as session, session.begin():
                session.add(TokenRow(name=name, digest=_digest(token), created=time.time()))
        except IntegrityError:
            raise BraidError(
                f"there is a token '{name}' already", hint="braid serve token remove removes it"
            ) from None
        return token

    def names(self) -> list[tuple[str, float]]:
        """Return names, and when their tokens were made."""
        with Session(self.engine) as session:
            rows = session.scalars(select(TokenRow).order_by(TokenRow.created))
            return [(row.name, row.created) for row in rows]

    def remove(self, name: str) -> None:
        """Remove a token, which then gives no access. Raises BraidError if there is none."""
        with Session(self.engine) as session, session.begin():
            row = session.get(TokenRow, name)
            if row is None:
                raise BraidError(
                    f"there is no token '{name}'", hint="braid serve token list lists them"
                )
            session.delete(row)

    def known_digest(self, token: str) -> str | None:
        """Return the digest of a valid token, else None, in constant time."""
        digest, found = _digest(token), False
        for known in self.digests():
            found |= hmac.compare_digest(known, digest)
        return digest if found else None

    def name_of(self, digest: str) -> str:
        """Return the name of the token with this digest; empty where it was removed."""
        with Session(self.engine) as session:
            found = session.scalar(select(TokenRow.name).where(TokenRow.digest == digest))
            return found or ""

    def digests(self) -> frozenset[str]:
        """Return the digests of all valid tokens."""
        with Session(self.engine) as session:
            return frozenset(session.scalars(select(TokenRow.digest)))


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()


class TaskQueue:
    """Tasks, in the order in which they came."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def add(self, identity: str, options: TaskOptions, owner: str = "") -> Task:
        """Add a task at the end, for the user whose token is called `owner`, and return it."""
        with Session(self.engine) as session, session.begin():
            row = TaskRow(
                id=identity,
                state=State.QUEUED,
                options=options.model_dump(),
                facts={_OWNER: owner},
                created=time.time(),
            )
            session.add(row)
            session.flush()
            session.add(EventRow(task=identity, kind="state", data={"state": State.QUEUED}))
            return _task(row)

    def get(self, identity: str) -> Task | None:
        """Return the task of this name, None if there is none."""
        with Session(self.engine) as session:
            row = session.scalar(select(TaskRow).where(TaskRow.id == identity))
            return None if row is None else _task(row)

    def latest(self, count: int, user: str | None = None) -> list[Task]:
        """Return the last tasks that a user may see, the newest first; those of all for None."""
        chosen = select(TaskRow).order_by(TaskRow.number.desc()).limit(count)
        if user is not None:
            chosen = chosen.where(_owner().in_((user, "")))
        with Session(self.engine) as session:
            return list(map(_task, session.scalars(chosen)))

    def active_of(self, user: str) -> int:
        """Return how many tasks of a user wait or run."""
        states = State.QUEUED, State.RUNNING
        counted = select(func.count()).where(TaskRow.state.in_(states), _owner() == user)
        with Session(self.engine) as session:
            return session.scalar(counted) or 0

    def counts(self) -> dict[State, int]:
        """Return how many tasks are in each state."""
        with Session(self.engine) as session:
            rows = session.execute(select(TaskRow.state, func.count()).group_by(TaskRow.state))
            found = {State(state): count for state, count in rows}
        return {state: found.get(state, 0) for state in State}

    def take(self) -> Task | None:
        """Return the first task that is queued, which is running from now on, None if none is."""
        first = (
            select(TaskRow.id)
            .where(TaskRow.state == State.QUEUED)
            .order_by(TaskRow.number)
            .limit(1)
            .scalar_subquery()
        )
        taken = (
            sql_update(TaskRow)
            .where(TaskRow.id == first, TaskRow.state == State.QUEUED)
            .values(state=State.RUNNING, started=time.time())
            .returning(TaskRow)
            .execution_options(synchronize_session=False)
        )
        with Session(self.engine) as session, session.begin():
            row = session.scalar(taken)
            if row is None:
                return None
            row.facts = _fresh(row)
            session.add(EventRow(task=row.id, kind="state", data={"state": State.RUNNING}))
            return _task(row)

    def finish(
        self, identity: str, state: State, *, was: State, facts: Mapping[str, Any] | None = None
    ) -> bool:
        """Change a task from the state `was` to another one, which ends it; False where it is in a
        third."""
        with Session(self.engine) as session, session.begin():
            row = _held(session, identity)
            if row is None or row.state != was:
                return False
            row.state, row.finished = state, time.time()
            row.facts = {**row.facts, "asks": False, "step": "", **(facts or {})}
            session.add(EventRow(task=identity, kind="state", data={"state": state}))
            return True

    def remove(self, identity: str) -> bool:
        """Delete a task that has ended, with its events; it is false if it has not."""
        with Session(self.engine) as session, session.begin():
            row = _held(session, identity)
            if row is None or not State(row.state).is_final:
                return False
            session.execute(sql_delete(EventRow).where(EventRow.task == identity))
            session.delete(row)
            return True

    def happened(self, identity: str, events: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
        """Add events (kind, data), and update the task by them."""
        with Session(self.engine) as session, session.begin():
            row = _held(session, identity)
            if row is None:
                return
            for kind, data in events:
                session.add(EventRow(task=identity, kind=kind, data=dict(data)))
                if kind != "line":
                    row.facts = {**row.facts, **data}

    def events(self, identity: str, after: int = 0, count: int = 256) -> list[TaskEvent]:
        """Return at most `count` events of a task after the event numbered `after`."""
        with Session(self.engine) as session:
            rows = session.scalars(
                select(EventRow)
                .where(EventRow.task == identity, EventRow.number > after)
                .order_by(EventRow.number)
                .limit(count)
            )
            return [
                TaskEvent.model_validate({"number": r.number, "kind": r.kind, "data": r.data})
                for r in rows
            ]

    def resume(self) -> int:
        """Queue tasks that a dead server left running; return their number."""
        with Session(self.engine) as session, session.begin():
            rows = list(session.scalars(select(TaskRow).where(TaskRow.state == State.RUNNING)))
            for row in rows:
                row.state, row.started, row.facts = State.QUEUED, None, _fresh(row)
                session.add(EventRow(task=row.id, kind="state", data={"state": State.QUEUED}))
            return len(rows)


def _owner() -> ColumnElement[str]:
    """Return who queued a task; empty of tasks of versions that did not know owners."""
    return func.coalesce(TaskRow.facts[_OWNER].as_string(), "")


def _fresh(row: TaskRow) -> dict[str, Any]:
    """Return the facts of a task that nothing was done for yet."""
    return {_OWNER: row.facts.get(_OWNER, "")}


def _held(session: Session, identity: str) -> TaskRow | None:
    """Return the row of a task, locked until the transaction ends.

    A row that is only read could change before it is written.
    """
    held = (
        sql_update(TaskRow)
        .where(TaskRow.id == identity)
        .values(state=TaskRow.state)
        .returning(TaskRow)
        .execution_options(synchronize_session=False)
    )
    return session.scalar(held)


def _task(row: TaskRow) -> Task:
    of_row = {"id", "options", "given", "state", "created", "started", "finished"}
    known = Task.model_fields.keys() - of_row
    usual = TaskOptions.model_validate({"name": row.options["name"]}).model_dump()
    given = {name: value for name, value in row.options.items() if value != usual.get(name)}
    return Task.model_validate(
        {
            **{name: value for name, value in row.facts.items() if name in known},
            "id": row.id,
            "options": row.options,
            "given": given,
            "state": row.state,
            "created": row.created,
            "started": row.started,
            "finished": row.finished,
        }
    )
