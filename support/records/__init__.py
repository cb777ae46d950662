"""Stores of records: files of SQLite, databases of PostgreSQL, and their one table.

`braid.support.records.record_store` opens them.
"""
