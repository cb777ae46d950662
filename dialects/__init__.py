"""Dialects: braid's additions to MLIR."""
