"""Migrate databases of older versions of braid to this one: revisions of Alembic."""
