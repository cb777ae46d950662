"""The attributes by which kernels describe the buffers that are their arguments."""

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, UnitAttr

from braid.targets.kernels.kernel_family import InPlace

NOALIAS = DictionaryAttr({"llvm.noalias": UnitAttr()})
_NOTHING = DictionaryAttr({})


def argument_attributes(
    operands: int, results: int, in_place: Sequence[InPlace] = (), sizes: int = 0
) -> ArrayAttr[DictionaryAttr]:
    """Return `llvm.noalias` for all buffers except those that may alias another one.

    The range and the `sizes` after it have no attributes.
    """
    shared = {operand for operand, _ in in_place} | {operands + result for _, result in in_place}
    buffers = [_NOTHING if i in shared else NOALIAS for i in range(operands + results)]
    return ArrayAttr([*buffers, *[_NOTHING] * (2 + sizes)])
