"""Kernels of groups that no family takes: `linalg`, upstream's passes, and a grid of loops."""
