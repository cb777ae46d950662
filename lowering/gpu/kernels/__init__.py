"""Emitters of entries that are better than a thread a point: which nests they take, and code."""
