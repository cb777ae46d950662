"""Transposed convolution."""

import math
from collections.abc import Sequence

import numpy as np
from xdsl.builder import Builder
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, IntegerType, TensorType, UnitAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import attr_def, irdl_op_definition, operand_def, opt_attr_def, result_def

from braid.dialects.braid.base import (
    AnyTensor,
    DecomposableOp,
    element_type_of,
    integer,
    integers,
    require,
    shape_of,
)
from braid.dialects.braid.boxes import Box, Range
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.dtypes import numpy_from_dense
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.movement import PadOp, ReshapeOp, SliceOp, TransposeOp
from braid.dialects.braid.numpy_functions import wide
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.tiling import IterationDim, Tile
from braid.dialects.braid.windows import WindowedOp, require_products, window_attributes
from braid.support.errors import UnsupportedError


@irdl_op_definition
class ConvTransposeOp(WindowedOp, DecomposableOp):
    """Transposed convolution: every input element adds its multiple of the weight's window.

    Operands: input `[N, C, spatial…]`, weight `[C, O / groups, window…]`.
    Result: `[N, O, stride · (spatial - 1) + dilation · (window - 1) + 1 + output_padding -
    pad_low - pad_high …]`; `pad_low` and `pad_high` count elements cut off at the edges,
    `output_padding` elements that are added after the last one before cutting.
    All lists have one entry per spatial dim.
    `finite_weight` says that no weight is infinite or NaN.
    Fails verification for other ranks or element types, channel counts that do not fit, lists of
    the wrong length, or an empty result.

    ```mlir
    %y = braid.conv_transpose %x, %w {strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>,
        pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>,
        output_padding = array<i64: 0, 0>, groups = 1 : i64}
        : (tensor<1x64x28x28xf32>, tensor<64x32x2x2xf32>) -> tensor<1x32x56x56xf32>
    ```
    """

    name = "braid.conv_transpose"

    input = operand_def(TensorType)
    weight = operand_def(TensorType)
    output_padding = attr_def(DenseArrayBase[IntegerType])
    groups = attr_def(IntegerAttr[IntegerType])
    finite_weight = opt_attr_def(UnitAttr)
    output = result_def(TensorType)

    @staticmethod
    def get(
        input: SSAValue | Operation,
        weight: SSAValue | Operation,
        *,
        strides: Sequence[int],
        pad_low: Sequence[int],
        pad_high: Sequence[int],
        dilations: Sequence[int],
        output_padding: Sequence[int] | None = None,
        groups: int = 1,
        finite_weight: bool = False,
    ) -> "ConvTransposeOp":
        """Builds a transposed convolution from plain integers."""
        known = {"finite_weight": UnitAttr()} if finite_weight else {}
        return ConvTransposeOp.on(
            input,
            weight,
            **window_attributes(strides, dilations, pad_low, pad_high),
            output_padding=integers(output_padding or [0] * len(strides)),
            groups=integer(groups),
            **known,
        )

    def infer_result_types(self) -> Sequence[AnyTensor]:
        """See the class."""
        x, w, groups = shape_of(self.input), shape_of(self.weight), self.groups.value.data
        require(len(x) >= 3, f"the input has rank {len(x)}, expected at least 3")
        require(len(w) == len(x), f"the weight has rank {len(w)}, expected {len(x)}")
        require(x[1] in (DYNAMIC, w[0]), f"the input has {x[1]} channels, expected {w[0]}")
        require(DYNAMIC not in w, f"the weight has shape {list(w)}, expected no open dims")
        require(groups > 0, f"groups is {groups}, expected a positive number")
        require_products(self.input, self.weight)
        require(w[0] % groups == 0, f"{w[0]} input channels do not divide by {groups} groups")
        self._verify_lists(len(x) - 2)
        spatial = [
            DYNAMIC if extent == DYNAMIC else self._extent(d, extent)
            for d, extent in enumerate(x[2:])
        ]
        require(
            all(extent > 0 for extent in spatial if extent != DYNAMIC),
            f"the result has spatial extents {spatial}, expected positive ones",
        )
        return [TensorType(element_type_of(self.input), (x[0], w[1] * groups, *spatial))]

    def _verify_lists(self, rank: int) -> None:
        for name in ("strides", "dilations", "pad_low", "pad_high", "output_padding"):
            values = getattr(self, name).get_values()
            require(len(values) == rank, f"{name} has {len(values)} entries, expected {rank}")
            least = 1 if name in ("strides", "dilations") else 0
            require(min(values) >= least, f"{name} is {values}, expected at least {least}")

    def _extent(self, dim: int, extent: int) -> int:
        low, high = self.pad_low.get_values()[dim], self.pad_high.get_values()[dim]
        return self._full_extent(dim, extent) - low - high

    def _full_extent(self, dim: int, extent: int) -> int:
        """Output elements along spatial dim `dim` before the edges are cut off."""
        stride, padding = self.strides.get_values()[dim], self.output_padding.get_values()[dim]
        return stride * (extent - 1) + self._reach[dim] + padding

    @property
    def _reach(self) -> tuple[int, ...]:
        """Elements from the first to the last that a window covers."""
        sizes, dilations = shape_of(self.weight)[2:], self.dilations.get_values()
        return tuple(d * (k - 1) + 1 for k, d in zip(sizes, dilations, strict=True))

    def evaluate(self, *operands: Array) -> tuple[Array, ...]:
        """Adds the products of every window position at strided slices of the result."""
        x, w = map(wide, operands)
        groups, spatial = self.groups.value.data, x.shape[2:]
        full = [self._full_extent(dim, extent) for dim, extent in enumerate(spatial)]
        xs = x.reshape(x.shape[0], groups, -1, *spatial)
        ws = w.reshape(groups, -1, *w.shape[1:])
        y = np.zeros((x.shape[0], groups, w.shape[1], *full), x.dtype)
        strides, dilations = self.strides.get_values(), self.dilations.get_values()
        for position in np.ndindex(*w.shape[2:]):
            products = np.einsum("ngc...,gco->ngo...", xs, ws[(..., *position)])
            target = tuple(
                slice(p * dilation, p * dilation + (extent - 1) * stride + 1, stride)
                for p, dilation, stride, extent in zip(
                    position, dilations, strides, spatial, strict=True
                )
            )
            y[(..., *target)] += products
        kept = tuple(
            slice(low, extent - high)
            for low, high, extent in zip(
                self.pad_low.get_values(), self.pad_high.get_values(), full, strict=True
            )
        )
        return (y.reshape(x.shape[0], -1, *full)[(..., *kept)].astype(operands[0].dtype),)

    def iteration_domain(self) -> list[IterationDim]:
        """Output channels in whole groups, positions in whole steps where these divide them."""
        shape, groups = self.result_type().get_shape(), self.groups.value.data
        units = (1, shape[1] // groups if groups > 1 else 1, *self.strides.get_values())
        return [
            IterationDim(extent, unit if extent % unit == 0 else 1)
            for extent, unit in zip(shape, units, strict=True)
        ]

    def tile(self, box: Box) -> Tile | None:
        """The channels of whole groups, and the elements whose windows reach into the box."""
        w, groups = shape_of(self.weight), self.groups.value.data
        (first, count), outputs = box[1], box[1]
        channels = (0, w[0])
        if groups > 1:
            if first % w[1] or count % w[1]:
                return None
            inputs, outputs = w[0] // groups, (0, w[1])
            groups, channels = count // w[1], (first // w[1] * inputs, count // w[1] * inputs)
        parts = [self._reaching(dim, part) for dim, part in enumerate(box[2:])]
        spatial, low, high, extra = zip(*parts, strict=True)
        attributes: dict[str, Attribute] = {
            "groups": integer(groups),
            "pad_low": integers(low),
            "pad_high": integers(high),
            "output_padding": integers(extra),
        }
        window = ((0, extent) for extent in w[2:])
        return Tile(((box[0], channels, *spatial), (channels, outputs, *window)), attributes)

    def _reaching(self, dim: int, part: Range) -> tuple[Range, int, int, int]:
        """The elements that add to a part of spatial dim `dim`, the padding and output padding."""
        fields = (self.pad_low, self.pad_high, self.output_padding, self.strides)
        low, high, extra, stride = (field.get_values()[dim] for field in fields)
        extent, reach = shape_of(self.input)[2 + dim], self._reach[dim]
        if part == (0, self.result_type().get_shape()[2 + dim]):
            return (0, extent), low, high, extra
        begin, end = part[0] + low, part[0] + low + part[1]
        first = max(0, min(-((reach - 1 - begin) // stride), begin // stride, extent - 1))
        last = min((end - 1) // stride, extent - 1)
        cut = begin - first * stride
        rest = stride * (last - first) + reach - cut - part[1]
        return (first, last - first + 1), cut, max(rest, 0), max(-rest, 0)

    def decompose(self, builder: Builder) -> Sequence[SSAValue]:
        """Disjoint windows are a 1×1 convolution and a rearrangement; else see `_dilated`.

        That multiplies zeros which are not there, so where a weight may be infinite or NaN what
        1×1 convolutions make is spread out instead: see `_summed`.

        Raises UnsupportedError for open spatial dims.
        """
        if DYNAMIC in (*shape_of(self.input), *shape_of(self.weight)):
            raise UnsupportedError(f"{self.name} on open dims")
        disjoint = (
            self.strides.get_values() == shape_of(self.weight)[2:]
            and set(self.dilations.get_values()) == {1}
            and not any(self.output_padding.get_values())
        )
        if disjoint:
            return [self._disjoint(builder)]
        is_finite = self.finite_weight is not None or _is_finite(self.weight)
        return [self._dilated(builder) if is_finite else self._summed(builder)]

    def _disjoint(self, builder: Builder) -> SSAValue:
        """Windows that do not overlap: each input element makes one block of the result."""
        x, w, groups = shape_of(self.input), shape_of(self.weight), self.groups.value.data
        rank = len(x) - 2
        apart = self._window_products(builder)
        pairs = [dim for i in range(rank) for dim in (2 + rank + i, 2 + i)]
        interleaved = builder.insert(TransposeOp.get(apart, (0, 1, *pairs)))
        full = [self._full_extent(dim, extent) for dim, extent in enumerate(x[2:])]
        whole = builder.insert(ReshapeOp.get(interleaved, (x[0], groups * w[1], *full)))
        if not any(self.pad_low.get_values()) and not any(self.pad_high.get_values()):
            return whole.output
        offsets, shape = (0, 0, *self.pad_low.get_values()), self.result_type().get_shape()
        return builder.insert(SliceOp.get(whole, offsets, shape)).output

    def _window_products(self, builder: Builder) -> SSAValue:
        """What each input element makes: `[N, O, window…, spatial…]`, by a 1×1 convolution."""
        x, w, groups = shape_of(self.input), shape_of(self.weight), self.groups.value.data
        window, rank = w[2:], len(x) - 2
        split = builder.insert(ReshapeOp.get(self.weight, (groups, w[0] // groups, *w[1:])))
        order = (0, *range(2, 3 + rank), 1)
        turned = builder.insert(TransposeOp.get(split, order))
        channels = groups * w[1] * math.prod(window)
        weight = builder.insert(ReshapeOp.get(turned, (channels, w[0] // groups, *[1] * rank)))
        ones, zeros = [1] * rank, [0] * rank
        blocks = builder.insert(
            ConvOp.get(
                self.input,
                weight,
                strides=ones,
                dilations=ones,
                pad_low=zeros,
                pad_high=zeros,
                groups=groups,
            )
        )
        shape = (x[0], groups * w[1], *window, *x[2:])
        return builder.insert(ReshapeOp.get(blocks, shape)).output

    def _summed(self, builder: Builder) -> SSAValue:
        """For each place in the window its products, spread out with zeros in between, added up."""
        products = self._window_products(builder)
        shape, window = shape_of(products), shape_of(self.weight)[2:]
        strides, spatial = self.strides.get_values(), shape_of(self.input)[2:]
        total: SSAValue | None = None
        for place in np.ndindex(*window):
            begin = (0, 0, *place, *[0] * len(spatial))
            extents = (*shape[:2], *[1] * len(spatial), *spatial)
            part = builder.insert(SliceOp.get(products, begin, extents))
            own = builder.insert(ReshapeOp.get(part, (*shape[:2], *spatial)))
            spread = _with_zeros_between(builder, own.output, strides)
            edges = [
                (p * dilation - low, self._full_extent(d, n) - p * dilation - n * stride - high)
                for d, (p, dilation, n, stride, low, high) in enumerate(
                    zip(
                        place,
                        self.dilations.get_values(),
                        spatial,
                        strides,
                        self.pad_low.get_values(),
                        self.pad_high.get_values(),
                        strict=True,
                    )
                )
            ]
            placed = _with_edges(builder, spread, *map(list, zip(*edges, strict=True)))
            if total is not None:
                placed = builder.insert(elementwise("add", total, placed)).output
            total = placed
        assert total is not None
        return total

    def _dilated(self, builder: Builder) -> SSAValue:
        """Convolution of the input with zeros in between, with the flipped weight.

        Dumoulin and Visin, "A guide to convolution arithmetic for deep learning", section 4.
        """
        strides, rank = self.strides.get_values(), len(shape_of(self.input)) - 2
        spread = _with_zeros_between(builder, self.input, strides)
        edges = [reach - 1 for reach in self._reach]
        low = [edge - cut for edge, cut in zip(edges, self.pad_low.get_values(), strict=True)]
        # The spread input ends in stride - 1 zeros, which stand for that much of the padding.
        high = [
            edge - cut + extra - (stride - 1)
            for edge, cut, extra, stride in zip(
                edges,
                self.pad_high.get_values(),
                self.output_padding.get_values(),
                strides,
                strict=True,
            )
        ]
        if min(*low, *high) < 0:
            spread = _with_edges(builder, spread, low, high)
            low = high = [0] * rank
        conv = ConvOp.get(
            spread,
            self._flipped_weight(builder),
            strides=[1] * rank,
            dilations=self.dilations.get_values(),
            pad_low=low,
            pad_high=high,
            groups=self.groups.value.data,
        )
        return builder.insert(conv).output

    def _flipped_weight(self, builder: Builder) -> SSAValue:
        """The weight as one of a convolution: `[O, C / groups, window…]`, window reversed."""
        w, groups = shape_of(self.weight), self.groups.value.data
        window, rank = w[2:], len(w) - 2
        grouped = builder.insert(ReshapeOp.get(self.weight, (groups, w[0] // groups, *w[1:])))
        turned = builder.insert(TransposeOp.get(grouped, (0, 2, 1, *range(3, 3 + rank))))
        joined = builder.insert(ReshapeOp.get(turned, (groups * w[1], w[0] // groups, *window)))
        offsets, steps = [0, 0, *(k - 1 for k in window)], [1, 1, *[-1] * rank]
        return builder.insert(SliceOp.get(joined, offsets, shape_of(joined.output), steps)).output


def _is_finite(value: SSAValue) -> bool:
    """Whether `value` is a constant without infinities and NaN, perhaps in another shape."""
    op = value.owner
    while isinstance(op, ReshapeOp | TransposeOp | SliceOp):
        op = op.operands[0].owner
    return isinstance(op, ConstantOp) and bool(np.isfinite(wide(numpy_from_dense(op.value))).all())


def _with_zeros_between(builder: Builder, value: SSAValue, strides: Sequence[int]) -> SSAValue:
    """`value` with stride - 1 zeros after every element along its spatial dims."""
    if all(stride == 1 for stride in strides):
        return value
    shape, rank = shape_of(value), len(strides)
    paired = [entry for extent in shape[2:] for entry in (extent, 1)]
    high = [0, 0, *(entry for stride in strides for entry in (0, stride - 1))]
    apart = builder.insert(ReshapeOp.get(value, (*shape[:2], *paired)))
    padded = builder.insert(PadOp.get(apart, [0] * (2 + 2 * rank), high, 0))
    spatial = [extent * stride for extent, stride in zip(shape[2:], strides, strict=True)]
    return builder.insert(ReshapeOp.get(padded, (*shape[:2], *spatial))).output


def _with_edges(
    builder: Builder, value: SSAValue, low: Sequence[int], high: Sequence[int]
) -> SSAValue:
    """`value` with zeros around its spatial dims, or elements cut off where it says less than 0.

    The zeros come first, since more may be cut off at one end than there are elements.
    """
    zeros_low, zeros_high = [max(n, 0) for n in low], [max(n, 0) for n in high]
    padded = builder.insert(PadOp.get(value, [0, 0, *zeros_low], [0, 0, *zeros_high], 0))
    shape = shape_of(padded.output)
    cuts = zip(shape[2:], low, high, strict=True)
    sizes = [*shape[:2], *(extent + min(a, 0) + min(b, 0) for extent, a, b in cuts)]
    offsets = [0, 0, *(max(-n, 0) for n in low)]
    return builder.insert(SliceOp.get(padded, offsets, sizes)).output
