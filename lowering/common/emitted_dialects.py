"""Dialects of upstream whose ops stand in kernels alone, imported where the first op is made.

Every compilation asks families about groups, but emits only kernels that no cache has: to define
the classes of these ops takes longer than to ask all families about a group.
"""

from typing import TYPE_CHECKING

from braid.support.lazy import lazy_module

if TYPE_CHECKING:
    from xdsl.dialects import math, memref, vector
else:
    math = lazy_module("xdsl.dialects.math")
    memref = lazy_module("xdsl.dialects.memref")
    vector = lazy_module("xdsl.dialects.vector")

__all__ = ["math", "memref", "vector"]
