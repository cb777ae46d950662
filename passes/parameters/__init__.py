"""Compute what depends on weights alone, once, at compile time."""
