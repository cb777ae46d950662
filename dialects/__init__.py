"""Dialects: what braid adds to MLIR."""
