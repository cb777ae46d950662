"""Packing buffers with fixed lifetimes into one arena (dynamic storage allocation)."""

from braid.solvers.packing.pack import pack
from braid.solvers.packing.problem import Buffer, Packing

__all__ = ["Buffer", "Packing", "pack"]
