"""Compute the bytes of tensors in memory, their addresses and their live ranges."""
