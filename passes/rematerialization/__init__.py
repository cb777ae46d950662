"""Decide which values are computed again instead of kept."""
