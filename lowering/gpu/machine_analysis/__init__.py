"""Predict the speed of GPU kernels from their machine code, without a GPU."""
