"""The tables of the service, next to those of the records; revision r0003 makes them."""

from typing import Any, ClassVar

from sqlalchemy import JSON, Double, ForeignKey, String
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from braid.support.records.database import METADATA, NUMBER


class Base(DeclarativeBase):
    """The base of the tables in the database of the records."""

    metadata = METADATA
    type_annotation_map: ClassVar[dict[Any, Any]] = {float: Double()}


class TaskRow(Base):
    """A task; `facts` are the fields of `Task` that its worker reports."""

    __tablename__ = "service_tasks"
    number: Mapped[int] = mapped_column(NUMBER, primary_key=True)
    id: Mapped[str] = mapped_column(String(32), unique=True)
    state: Mapped[str] = mapped_column(String(16), index=True)
    options: Mapped[dict[str, Any]] = mapped_column(JSON)
    facts: Mapped[dict[str, Any]] = mapped_column(JSON, default=dict)
    created: Mapped[float]
    started: Mapped[float | None]
    finished: Mapped[float | None]


class EventRow(Base):
    """An event of a task, in the order of `number`."""

    __tablename__ = "service_events"
    number: Mapped[int] = mapped_column(NUMBER, primary_key=True)
    task: Mapped[str] = mapped_column(ForeignKey("service_tasks.id"), index=True)
    kind: Mapped[str] = mapped_column(String(16))
    data: Mapped[dict[str, Any]] = mapped_column(JSON)


class TokenRow(Base):
    """Who may use the service: SHA-256 of a random token, which needs no salt."""

    __tablename__ = "service_tokens"
    name: Mapped[str] = mapped_column(String(64), primary_key=True)
    digest: Mapped[str] = mapped_column(String(64))
    created: Mapped[float]
