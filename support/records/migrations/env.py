"""The script Alembic runs to upgrade a database; called by `records.database.upgrade`."""

from alembic import context

from braid.support.records.database import METADATA


def run() -> None:
    """Bring the database of the connection that Alembic was given to the revision asked for."""
    connection = context.config.attributes["connection"]
    context.configure(connection=connection, target_metadata=METADATA)
    with context.begin_transaction():
        context.run_migrations()


if __name__ == "env_py":  # the name that Alembic loads it by
    run()
