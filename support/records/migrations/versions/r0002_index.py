"""The last record of a key without a look at all others."""

from alembic import op

revision = "r0002"
down_revision = "r0001"


def upgrade() -> None:
    """Add the index."""
    op.create_index("records_by_key", "records", ["kind", "key", "number"], if_not_exists=True)


def downgrade() -> None:
    """Drop it."""
    op.drop_index("records_by_key", "records")
