"""Decide where in memory values live."""
