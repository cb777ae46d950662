"""Annotate how often ops run and how long they take, from measurements."""
