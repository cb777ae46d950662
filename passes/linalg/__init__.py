"""Conversion of tensor ops of `linalg`, `tensor`, `arith` and `math` to ops of braid."""
