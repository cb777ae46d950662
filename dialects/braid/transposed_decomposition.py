"""Transposed convolutions as convolutions and rearrangements."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from xdsl.builder import Builder
from xdsl.ir import SSAValue

from braid.dialects.braid.base import extents_of, shape_of
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.movement import ConcatOp, PadOp, ReshapeOp, SliceOp, TransposeOp
from braid.dialects.braid.sized_ops import slice_of
from braid.support.sizes.expression import Extent, ExtentT
from braid.support.sizes.operators import ceildiv


@dataclass(frozen=True)
class TransposedWindows:
    """The window that every input element adds its multiple of; one entry per spatial dim.

    `cut_low` and `cut_high` elements are cut off at the edges, after `extra` ones were added
    behind the last.
    """

    size: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    cut_low: tuple[int, ...]
    cut_high: tuple[int, ...]
    extra: tuple[int, ...]

    @property
    def reach(self) -> tuple[int, ...]:
        """Elements from the first to the last that a window covers."""
        return tuple(d * (k - 1) + 1 for k, d in zip(self.size, self.dilations, strict=True))

    def full_extent(self, dim: int, extent: ExtentT) -> ExtentT:
        """Return the output elements along spatial dim `dim` before the edges are cut off."""
        full = self.strides[dim] * (extent - 1) + self.reach[dim] + self.extra[dim]
        return cast("ExtentT", full)

    def kept_extent(self, dim: int, extent: ExtentT) -> ExtentT:
        """Return the output elements along spatial dim `dim` of an input of `extent` elements."""
        kept = self.full_extent(dim, extent) - self.cut_low[dim] - self.cut_high[dim]
        return cast("ExtentT", kept)


@dataclass(frozen=True)
class _Phases:
    """Output elements `first` to `first + count` of every stride, which see `taps` of a window."""

    first: int
    count: int
    taps: int


@dataclass(frozen=True)
class TransposedConvolution:
    """A transposed convolution, whose parts `builder` inserts; channels and windows are known.

    `input` is `[N, C, spatial…]`, `weight` `[C, O / groups, window…]`.
    """

    builder: Builder
    input: SSAValue
    weight: SSAValue
    windows: TransposedWindows
    groups: int

    def decomposed(self, is_finite: bool) -> SSAValue:
        """Return the result `[N, O, …]`.

        It is computed by phases, unless windows are dilated or all steps are of one element. Phases
        and `_dilated` multiply zeros that do not exist. So if a weight may be infinite or NaN (not
        `is_finite`), the results of 1×1 convolutions are spread out instead, unless windows are
        disjoint.
        """
        windows = self.windows
        is_dense = set(windows.dilations) == {1}
        is_disjoint = is_dense and windows.strides == windows.size
        if not is_finite and not is_disjoint:
            return self._summed()
        return self._phases() if is_dense and math.prod(windows.strides) > 1 else self._dilated()

    @property
    def _spatial(self) -> tuple[Extent, ...]:
        return extents_of(self.input)[2:]

    @property
    def _ends(self) -> list[Extent]:
        """The ends of the elements of the result that are kept, before any is cut off."""
        return [
            self.windows.full_extent(dim, extent) - self.windows.cut_high[dim]
            for dim, extent in enumerate(self._spatial)
        ]

    def _phases(self) -> SSAValue:
        """Insert convolutions that make whole strides of the result, one per number of taps.

        With strides s, element s · q + r of the result is the sum over m of x[q - m] · w[s · m +
        r]: for every phase r this is a convolution of x with every s-th element of the window.
        Phases that see as many elements are channels of one convolution; all are interleaved then.

        Shi et al., "Is the deconvolution layer the same as a convolutional layer?", 2016.
        """
        b, windows = self.builder, self.windows
        strides, rank = windows.strides, len(windows.strides)
        first = [cut // stride for cut, stride in zip(windows.cut_low, strides, strict=True)]
        steps = [
            ceildiv(end, stride) - begin
            for end, stride, begin in zip(self._ends, strides, first, strict=True)
        ]
        kinds = [_kinds(k, stride) for k, stride in zip(windows.size, strides, strict=True)]
        parts = [self._phase(phases, first, steps) for phases in itertools.product(*kinds)]
        for dim in reversed(range(rank)):
            count = len(kinds[dim])
            rows = [parts[i : i + count] for i in range(0, len(parts), count)]
            parts = [self._joined(row, dim) for row in rows]
        apart = parts[0]
        pairs = [dim for i in range(rank) for dim in (2 + rank + i, 2 + i)]
        interleaved = b.insert(TransposeOp.get(apart, (0, 1, *pairs)))
        full = [step * stride for step, stride in zip(steps, strides, strict=True)]
        whole = b.insert(ReshapeOp.get(interleaved, (*extents_of(apart)[:2], *full)))
        starts = [begin * stride for begin, stride in zip(first, strides, strict=True)]
        low = [start - cut for start, cut in zip(starts, windows.cut_low, strict=True)]
        high = [_number(e - s - n) for e, s, n in zip(self._ends, starts, full, strict=True)]
        return _with_edges(b, whole.output, low, high)

    def _phase(
        self, phases: Sequence[_Phases], first: Sequence[int], steps: Sequence[Extent]
    ) -> SSAValue:
        """Return `[N, O, phases…, steps…]` of some phases, from steps `first` on."""
        b, ones = self.builder, [1] * len(phases)
        low = [p.taps - 1 - begin for p, begin in zip(phases, first, strict=True)]
        ends = zip(first, steps, self._spatial, strict=True)
        high = [_number(begin + count - extent) for begin, count, extent in ends]
        input = self.input
        if min(*low, *high) < 0:
            input, low, high = _with_edges(b, input, low, high), [0] * len(low), [0] * len(low)
        conv = ConvOp.get(
            input,
            self._phase_weight(phases),
            strides=ones,
            dilations=ones,
            pad_low=low,
            pad_high=high,
            groups=self.groups,
        )
        channels = self.groups * shape_of(self.weight)[1]
        shape = (extents_of(self.input)[0], channels, *(p.count for p in phases), *steps)
        return b.insert(ReshapeOp.get(b.insert(conv), shape)).output

    def _phase_weight(self, phases: Sequence[_Phases]) -> SSAValue:
        """Return every stride-th element of the window, reversed.

        Its shape is `[O · phases…, C / groups, taps…]`.
        """
        b, w, strides, rank = self.builder, shape_of(self.weight), self.windows.strides, len(phases)
        # Whole strides: of their elements only those in the window are taken.
        whole = [p.taps * stride for p, stride in zip(phases, strides, strict=True)]
        begins = [p.first for p in phases]
        ends = [n - k + begin for n, k, begin in zip(whole, w[2:], begins, strict=True)]
        weight = _with_edges(b, self.weight, [-begin for begin in begins], ends)
        pairs = zip(phases, strides, strict=True)
        split_window = [entry for p, stride in pairs for entry in (p.taps, stride)]
        shape = (self.groups, w[0] // self.groups, w[1], *split_window)
        split: SSAValue = b.insert(ReshapeOp.get(weight, shape)).output
        taken = [*shape[:3], *(entry for p in phases for entry in (p.taps, p.count))]
        if taken != [*shape]:
            split = b.insert(SliceOp.get(split, [0] * len(shape), taken)).output
        places, taps = range(4, 4 + 2 * rank, 2), range(3, 3 + 2 * rank, 2)
        turned = b.insert(TransposeOp.get(split, (0, 2, *places, 1, *taps)))
        channels = self.groups * w[1] * math.prod(p.count for p in phases)
        joined = (channels, w[0] // self.groups, *(p.taps for p in phases))
        return _reversed_window(b, b.insert(ReshapeOp.get(turned, joined)).output)

    def _joined(self, parts: Sequence[SSAValue], dim: int) -> SSAValue:
        """Return all phases of a spatial dim, with zeros for those that see nothing of a window."""
        b, place = self.builder, 2 + dim
        whole = parts[0] if len(parts) == 1 else b.insert(ConcatOp.get(parts, place)).output
        shape = shape_of(whole)  # of which the phases are known
        missing = self.windows.strides[dim] - shape[place]
        if not missing:
            return whole
        high = [missing if entry == place else 0 for entry in range(len(shape))]
        return b.insert(PadOp.get(whole, [0] * len(shape), high, 0)).output

    def _window_products(self) -> SSAValue:
        """Return the contributions of an input element: `[N, O, window…, spatial…]`, by a 1×1
        convolution."""
        b, x, w, groups = self.builder, extents_of(self.input), shape_of(self.weight), self.groups
        window, rank = w[2:], len(x) - 2
        split = b.insert(ReshapeOp.get(self.weight, (groups, w[0] // groups, *w[1:])))
        turned = b.insert(TransposeOp.get(split, (0, *range(2, 3 + rank), 1)))
        channels = groups * w[1] * math.prod(window)
        weight = b.insert(ReshapeOp.get(turned, (channels, w[0] // groups, *[1] * rank)))
        ones, zeros = [1] * rank, [0] * rank
        blocks = ConvOp.get(
            self.input,
            weight,
            strides=ones,
            dilations=ones,
            pad_low=zeros,
            pad_high=zeros,
            groups=groups,
        )
        shape = (x[0], groups * w[1], *window, *x[2:])
        return b.insert(ReshapeOp.get(b.insert(blocks), shape)).output

    def _summed(self) -> SSAValue:
        """Return the sum of the products of each place in the window, spread out with zeros."""
        b, windows, spatial = self.builder, self.windows, self._spatial
        products = self._window_products()
        shape = extents_of(products)
        total: SSAValue | None = None
        for place in np.ndindex(*windows.size):
            begin = (0, 0, *place, *[0] * len(spatial))
            extents = (*shape[:2], *[1] * len(spatial), *spatial)
            part = b.insert(slice_of(products, begin, extents))
            own = b.insert(ReshapeOp.get(part.output, (*shape[:2], *spatial)))
            spread = _with_zeros_between(b, own.output, windows.strides)
            starts = [p * d for p, d in zip(place, windows.dilations, strict=True)]
            low = [start - cut for start, cut in zip(starts, windows.cut_low, strict=True)]
            sizes = zip(spatial, windows.strides, strict=True)
            filled = [start + n * s for start, (n, s) in zip(starts, sizes, strict=True)]
            high = [_number(end - size) for end, size in zip(self._ends, filled, strict=True)]
            placed = _with_edges(b, spread, low, high)
            if total is not None:
                placed = b.insert(elementwise("add", total, placed)).output
            total = placed
        assert total is not None
        return total

    def _dilated(self) -> SSAValue:
        """Insert a convolution of the input with zeros in between, with the flipped weight.

        Dumoulin and Visin, "A guide to convolution arithmetic for deep learning", section 4.
        """
        b, windows, rank = self.builder, self.windows, len(self._spatial)
        spread = _with_zeros_between(b, self.input, windows.strides)
        low = [reach - 1 - cut for reach, cut in zip(windows.reach, windows.cut_low, strict=True)]
        # The dilated input ends in stride - 1 zeros, which replace that much of the padding.
        sizes = zip(self._spatial, windows.strides, strict=True)
        high = [_number(end - n * s) for end, (n, s) in zip(self._ends, sizes, strict=True)]
        if min(*low, *high) < 0:
            spread = _with_edges(b, spread, low, high)
            low = high = [0] * rank
        conv = ConvOp.get(
            spread,
            self._flipped_weight(),
            strides=[1] * rank,
            dilations=windows.dilations,
            pad_low=low,
            pad_high=high,
            groups=self.groups,
        )
        return b.insert(conv).output

    def _flipped_weight(self) -> SSAValue:
        """Return the weight of a convolution: `[O, C / groups, window…]`, window reversed."""
        b, w, groups = self.builder, shape_of(self.weight), self.groups
        grouped = b.insert(ReshapeOp.get(self.weight, (groups, w[0] // groups, *w[1:])))
        turned = b.insert(TransposeOp.get(grouped, (0, 2, 1, *range(3, 1 + len(w)))))
        shape = (groups * w[1], w[0] // groups, *w[2:])
        return _reversed_window(b, b.insert(ReshapeOp.get(turned, shape)).output)


def _number(extent: Extent) -> int:
    """Return a difference of sizes in which these are no more."""
    assert isinstance(extent, int), "edges do not depend on the size of the input"
    return extent


def _kinds(window: int, stride: int) -> list[_Phases]:
    """Return the phases of a dim by their part of the window, without empty ones."""
    taps, more = divmod(window, stride)
    kinds = [_Phases(0, more, taps + 1), _Phases(more, stride - more, taps)]
    return [kind for kind in kinds if kind.count and kind.taps]


def _reversed_window(builder: Builder, weight: SSAValue) -> SSAValue:
    """Return the weight of a convolution with every window back to front."""
    shape = shape_of(weight)
    if all(extent == 1 for extent in shape[2:]):
        return weight
    offsets = [0, 0, *(extent - 1 for extent in shape[2:])]
    steps = [1, 1, *[-1] * (len(shape) - 2)]
    return builder.insert(SliceOp.get(weight, offsets, shape, steps)).output


def _with_zeros_between(builder: Builder, value: SSAValue, strides: Sequence[int]) -> SSAValue:
    """Return `value` with stride - 1 zeros after every element along its spatial dims."""
    if all(stride == 1 for stride in strides):
        return value
    shape, rank = extents_of(value), len(strides)
    paired = [entry for extent in shape[2:] for entry in (extent, 1)]
    high = [0, 0, *(entry for stride in strides for entry in (0, stride - 1))]
    apart = builder.insert(ReshapeOp.get(value, (*shape[:2], *paired)))
    padded = builder.insert(PadOp.get(apart, [0] * (2 + 2 * rank), high, 0))
    spatial = [extent * stride for extent, stride in zip(shape[2:], strides, strict=True)]
    return builder.insert(ReshapeOp.get(padded, (*shape[:2], *spatial))).output


def _with_edges(
    builder: Builder, value: SSAValue, low: Sequence[int], high: Sequence[int]
) -> SSAValue:
    """Return `value` with zeros around its spatial dims; a negative number cuts elements off.

    The zeros come first, since more may be cut off at one end than there are elements.
    """
    if max(*low, *high) > 0:
        before, after = ([0, 0, *(max(n, 0) for n in side)] for side in (low, high))
        value = builder.insert(PadOp.get(value, before, after, 0)).output
    if min(*low, *high) < 0:
        shape = extents_of(value)
        cuts = zip(shape[2:], low, high, strict=True)
        sizes = [*shape[:2], *(extent + min(a, 0) + min(b, 0) for extent, a, b in cuts)]
        offsets = [0, 0, *(max(-n, 0) for n in low)]
        value = builder.insert(slice_of(value, offsets, sizes)).output
    return value
