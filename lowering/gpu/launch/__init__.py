"""Kernels of GPUs as launched: entries in the `gpu` dialect, and the ops that start them."""
