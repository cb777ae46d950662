"""Kernels of oneDNN and OpenBLAS: calls of their C interfaces in place of code of braid's own."""
