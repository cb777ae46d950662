"""Decide which device runs which ops: clusters, and the functions that these become."""
