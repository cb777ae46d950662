"""What ops with a sliding window have in common: four lists, one entry per spatial dim each."""

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import DenseArrayBase, IntegerType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation, attr_def

from braid.dialects.braid.base import element_type_of, integers, require, require_summable
from braid.dialects.braid.tiling import Reads
from braid.dialects.braid.windows import Windows


class WindowedOp(IRDLOperation):
    """The steps, spacing and padding of windows; what they slide over is the op's."""

    strides = attr_def(DenseArrayBase[IntegerType])
    dilations = attr_def(DenseArrayBase[IntegerType])
    pad_low = attr_def(DenseArrayBase[IntegerType])
    pad_high = attr_def(DenseArrayBase[IntegerType])

    def windows_of(self, size: Sequence[int]) -> Windows:
        """The windows of this op if they are `size` elements large."""
        return Windows(
            tuple(size),
            self.strides.get_values(),
            self.dilations.get_values(),
            self.pad_low.get_values(),
            self.pad_high.get_values(),
        )


def padding_of(reads: Reads) -> Mapping[str, Attribute]:
    """The attributes with the padding that a part of the input has around it."""
    if 0 not in reads.pads:
        return {}
    low, high = zip(*reads.pads[0][2:], strict=True)
    return {"pad_low": integers(low), "pad_high": integers(high)}


def require_products(input: SSAValue, weight: SSAValue) -> None:
    """Raises VerifyException unless input and weight have one element type, of numbers."""
    given, other = element_type_of(input), element_type_of(weight)
    require(given == other, f"the input has element type {given}, the weight {other}")
    require_summable(given)


def window_attributes(
    strides: Sequence[int],
    dilations: Sequence[int],
    pad_low: Sequence[int],
    pad_high: Sequence[int],
) -> dict[str, DenseArrayBase[IntegerType]]:
    """The attributes of `WindowedOp` from plain integers."""
    return {
        "strides": integers(strides),
        "dilations": integers(dilations),
        "pad_low": integers(pad_low),
        "pad_high": integers(pad_high),
    }
