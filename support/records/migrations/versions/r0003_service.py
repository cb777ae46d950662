"""The queue of `braid serve`, which files of before this revision may have already."""

import sqlalchemy as sa
from alembic import op

revision = "r0003"
down_revision = "r0002"

_TABLES = ("service_tokens", "service_events", "service_tasks")


def upgrade() -> None:
    """Make the tables and indices where they are not there."""
    op.create_table(
        "service_tasks",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
        sa.Column("id", sa.String(32), nullable=False, unique=True),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("options", sa.JSON, nullable=False),
        sa.Column("facts", sa.JSON, nullable=False),
        sa.Column("created", sa.Double, nullable=False),
        sa.Column("started", sa.Double),
        sa.Column("finished", sa.Double),
        if_not_exists=True,
    )
    op.create_table(
        "service_events",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
        sa.Column("task", sa.String(32), sa.ForeignKey("service_tasks.id"), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("data", sa.JSON, nullable=False),
        if_not_exists=True,
    )
    op.create_table(
        "service_tokens",
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("created", sa.Double, nullable=False),
        if_not_exists=True,
    )
    for table, column in (("service_tasks", "state"), ("service_events", "task")):
        op.create_index(f"ix_{table}_{column}", table, [column], if_not_exists=True)


def downgrade() -> None:
    """Drop them."""
    for table in _TABLES:
        op.drop_table(table)
