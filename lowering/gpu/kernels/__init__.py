"""Kernel families of GPUs: what they match, their schedules, and the code of their kernels."""
