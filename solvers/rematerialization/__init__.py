"""Rematerialization under a memory budget: order and recomputation chosen together."""
