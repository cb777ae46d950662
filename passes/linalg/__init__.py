"""Tensor ops of `linalg`, `tensor`, `arith` and `math` as ops of braid."""
