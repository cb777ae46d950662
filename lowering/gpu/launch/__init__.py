"""Kernels of GPUs as they are launched: entries in the `gpu` dialect, and what starts them."""
