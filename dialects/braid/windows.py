"""Sliding windows over spatial dims: their arithmetic, and the common base of ops with windows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from xdsl.dialects.builtin import DenseArrayBase, IntegerType
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.irdl import IRDLOperation, attr_def

from braid.dialects.braid.base import (
    element_type_of,
    integers,
    require,
    require_computed,
    require_summable,
)
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.size_facts import may_be_at_most, total
from braid.dialects.braid.size_limits import MOST_ELEMENTS
from braid.dialects.braid.tiling import Reads
from braid.support.sizes.expression import Extent, ExtentT


@dataclass(frozen=True)
class Windows:
    """A window per output position; every field has one entry per spatial dim."""

    size: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pad_low: tuple[int, ...]
    pad_high: tuple[int, ...]

    @property
    def is_padded(self) -> bool:
        """Return whether windows reach over the edge."""
        return any(self.pad_low) or any(self.pad_high)

    def padded_shape(self, spatial: Sequence[Extent]) -> tuple[Extent, ...]:
        """Return the extents with padding, DYNAMIC where the size of the input is not known."""
        return tuple(map(total, zip(spatial, self.pad_low, self.pad_high, strict=True)))

    def output_shape(self, spatial: Sequence[ExtentT]) -> tuple[ExtentT, ...]:
        """Return the output positions per dim, DYNAMIC where the size of the input is not known.

        Raises VerifyException for fields of the wrong length or an empty output.
        """
        for name in ("size", "strides", "dilations", "pad_low", "pad_high"):
            length = len(getattr(self, name))
            require(length == len(spatial), f"{name} has {length} entries, expected {len(spatial)}")
        require(min(self.size) > 0, f"the window is {self.size}, expected positive extents")
        require(min(self.strides) > 0, f"strides are {self.strides}, expected positive numbers")
        require(min(self.dilations) > 0, f"dilations are {self.dilations}, expected positive")
        pads = (*self.pad_low, *self.pad_high)
        require(min(pads) >= 0, f"paddings are {pads}, expected no negative numbers")
        return tuple(self._extent(dim, extent) for dim, extent in enumerate(spatial))

    def _extent(self, dim: int, extent: ExtentT) -> ExtentT:
        if extent == DYNAMIC:
            return cast("ExtentT", DYNAMIC)
        padded = extent + self.pad_low[dim] + self.pad_high[dim]
        require(
            may_be_at_most(padded, MOST_ELEMENTS),
            f"spatial dim {dim}: {padded} elements with padding",
        )
        reach = self.dilations[dim] * (self.size[dim] - 1) + 1
        require(
            may_be_at_most(reach, padded),
            f"spatial dim {dim}: window of {reach} on {padded} elements",
        )
        return cast("ExtentT", (padded - reach) // self.strides[dim] + 1)

    def clipped(self, spatial: Sequence[int]) -> "Windows":
        """Return these windows without the elements that only read padding, at both ends of every
        dim.

        They have as many positions. A window larger than the padded input becomes one of its
        size; a window of padding alone keeps one element.
        """
        dims = [self._clipped(dim, extent) for dim, extent in enumerate(spatial)]
        size, low, high = zip(*dims, strict=True)
        return replace(self, size=size, pad_low=low, pad_high=high)

    def _clipped(self, dim: int, extent: int) -> tuple[int, int, int]:
        """Return size and padding of `clipped` along one dim."""
        size, low, high = self.size[dim], self.pad_low[dim], self.pad_high[dim]
        if extent == DYNAMIC:
            return size, low, high
        stride, dilation = self.strides[dim], self.dilations[dim]
        last = (self._extent(dim, extent) - 1) * stride
        # The element w of a window is read at o · stride + w · dilation - low for o ≥ 0.
        before = _count(size - 1, lambda w: last + w * dilation < low)
        before = min(before, low // dilation)
        after = _count(size - 1 - before, lambda w: (size - 1 - w) * dilation - low >= extent)
        after = min(after, high // dilation)
        return size - before - after, low - before * dilation, high - after * dilation

    def input_index(
        self, output: Sequence[AffineExpr], window: Sequence[AffineExpr]
    ) -> list[AffineExpr]:
        """Index into the padded input for an output position and a position in the window."""
        return [
            o * stride + w * dilation
            for o, w, stride, dilation in zip(
                output, window, self.strides, self.dilations, strict=True
            )
        ]


def _count(limit: int, holds: Callable[[int], bool]) -> int:
    """Return for how many of 0, 1, … it holds, at most `limit`; for none behind one that fails."""
    low, high = 0, limit
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if holds(middle) else (low, middle)
    return low


def padded_windows(x: Array, windows: Windows, value: float) -> Array:
    """Return all windows of `x` `[N, C, spatial…]`, as `[N, C, positions…, window…]` (a view)."""
    pads = [(0, 0), (0, 0), *zip(windows.pad_low, windows.pad_high, strict=True)]
    padded = np.pad(x, pads, constant_values=value) if windows.is_padded else x
    reach = [d * (s - 1) + 1 for d, s in zip(windows.dilations, windows.size, strict=True)]
    axes = tuple(range(2, x.ndim))
    views = np.lib.stride_tricks.sliding_window_view(padded, reach, axis=axes)
    every = (slice(None), slice(None))
    positions = tuple(slice(None, None, s) for s in windows.strides)
    inner = tuple(slice(None, None, d) for d in windows.dilations)
    return views[every + positions + inner]


class WindowedOp(IRDLOperation):
    """The steps, spacing and padding of windows; the op decides over which dims they slide."""

    strides = attr_def(DenseArrayBase[IntegerType])
    dilations = attr_def(DenseArrayBase[IntegerType])
    pad_low = attr_def(DenseArrayBase[IntegerType])
    pad_high = attr_def(DenseArrayBase[IntegerType])

    def windows_of(self, size: Sequence[int]) -> Windows:
        """Return the windows of this op if they are `size` elements large."""
        return Windows(
            tuple(size),
            self.strides.get_values(),
            self.dilations.get_values(),
            self.pad_low.get_values(),
            self.pad_high.get_values(),
        )


def padding_of(reads: Reads) -> Mapping[str, Attribute]:
    """Return the attributes with the padding that a part of the input has around it."""
    if 0 not in reads.pads:
        return {}
    low, high = zip(*reads.pads[0][2:], strict=True)
    return {"pad_low": integers(low), "pad_high": integers(high)}


def require_products(input: SSAValue, weight: SSAValue) -> None:
    """Raise VerifyException unless input and weight have the same numeric element type."""
    given, other = element_type_of(input), element_type_of(weight)
    require(given == other, "the input has element type {}, the weight {}", given, other)
    require_computed(given)
    require_summable(given)


def window_attributes(
    strides: Sequence[int],
    dilations: Sequence[int],
    pad_low: Sequence[int],
    pad_high: Sequence[int],
) -> dict[str, DenseArrayBase[IntegerType]]:
    """Return the attributes of `WindowedOp` from plain integers."""
    return {
        "strides": integers(strides),
        "dilations": integers(dilations),
        "pad_low": integers(pad_low),
        "pad_high": integers(pad_high),
    }
