"""Artifacts and their execution; knows no IR."""
