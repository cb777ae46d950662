"""Kernels of groups with open dims: loops over scalars, whose bounds are arguments."""
