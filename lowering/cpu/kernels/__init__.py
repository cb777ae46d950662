"""Kernel families of the CPU, one a file."""
