"""Digests of what braid emits for the models of the benchmarks: they change when the code does."""
