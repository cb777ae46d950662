"""The index of weights in a manifest: whether it fits the section that it is about."""

from collections.abc import Sequence
from math import prod

from braid.runtime.dtypes import numpy_dtype
from braid.runtime.manifest import WeightSpec
from braid.support.errors import BraidError

TENSOR_ALIGN = 64


def check_index(index: Sequence[WeightSpec], size: int) -> None:
    """Check that the weights lie in a section of `size` bytes, on 64-byte boundaries, apart.

    Raises:
        BraidError: they do not, or a size is not that of the shape.

    """
    end = 0
    for spec in sorted(index, key=lambda spec: (spec.offset, spec.nbytes)):
        if min(spec.shape, default=0) < 0:
            raise BraidError(f"weight '{spec.name}' has shape {list(spec.shape)}")
        expected = prod(spec.shape) * numpy_dtype(spec.dtype).itemsize
        if spec.nbytes != expected:
            raise BraidError(
                f"weight '{spec.name}' takes {spec.nbytes} bytes, expected {expected} for "
                f"{spec.dtype}{list(spec.shape)}"
            )
        if spec.offset < end or spec.offset % TENSOR_ALIGN or spec.offset + spec.nbytes > size:
            raise BraidError(
                f"weight '{spec.name}' lies at {spec.offset}, expected a multiple of "
                f"{TENSOR_ALIGN} from {end} on, and an end at {size} or before"
            )
        end = spec.offset + spec.nbytes
