"""Kernels of oneDNN and OpenBLAS: calls of their C interfaces instead of generated code."""
