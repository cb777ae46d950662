"""Tensors as streams of pixels."""

from xdsl.ir import SSAValue

from braid.dialects.braid.base import shape_of
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid_hls.stage import Pair
from braid.support.errors import UnsupportedError


def pixels_of(value: SSAValue) -> tuple[Pair, int]:
    """Return the rows and columns of pixels of one image, and the channels of a pixel.

    `[1, C, H, W]` is H × W pixels, `[M, C]` is 1 × M.
    Raises UnsupportedError for open dims, several images and other ranks.
    """
    shape = shape_of(value)
    if DYNAMIC in shape:
        raise UnsupportedError(
            f"a tensor of shape {list(shape)} on an FPGA", hint="give its open dims a size"
        )
    if len(shape) == 4:
        if shape[0] != 1:
            raise UnsupportedError(
                f"a tensor of {shape[0]} images on an FPGA",
                hint="a design takes image by image; make the first dim 1",
            )
        return (shape[2], shape[3]), shape[1]
    if len(shape) == 2:
        return (1, shape[0]), shape[1]
    raise UnsupportedError(
        f"a tensor of rank {len(shape)} on an FPGA", hint="streams are of rank 2 or 4"
    )
