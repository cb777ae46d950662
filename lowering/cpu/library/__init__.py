"""Kernels of oneDNN: calls of its C interface in place of code of braid's own."""
