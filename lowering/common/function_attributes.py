"""Set attributes of functions that steer how LLVM compiles kernels."""

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.dialects.func import FuncOp

UNROLLED = "braid-unrolled"
"""Loops stay as they are, since emitters unroll them where that gains."""


def mark_unrolled(function: FuncOp) -> None:
    """Keep LLVM from unrolling loops of the module that this function is in."""
    function.attributes["llvm.passthrough"] = ArrayAttr([StringAttr(UNROLLED)])
