"""Decide which ops become one kernel, and the tiles within kernels."""
