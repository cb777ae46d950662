"""The table of records, which files of before migrations have already."""

import sqlalchemy as sa
from alembic import op

revision = "r0001"
down_revision = None


def upgrade() -> None:
    """Make the table where it is not there."""
    op.create_table(
        "records",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("value", sa.Text, nullable=False),
        sa.Column("created", sa.Double, nullable=False),
        sa.Column("machine", sa.Text, nullable=False),
        sa.Column("version", sa.Text, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        if_not_exists=True,
    )


def downgrade() -> None:
    """Drop the table."""
    op.drop_table("records")
