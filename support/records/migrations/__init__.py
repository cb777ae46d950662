"""How databases of older versions of braid become those of this one: revisions of Alembic."""
